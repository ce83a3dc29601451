// The page: what is chosen, and which parts are drawn for that. The parts themselves are in the files of `page/`.

/** What is chosen: a function, and a variant's index or `both`. */
const chosen = { func: 0, variant: 0 };

/** Columns that are shown side by side, by id, and the one that a narrow page shows. */
const shownColumns = { wide: new Set(), narrow: 'control' };

/** Whether the page has room for one column only; the style has the same width. */
const narrow = window.matchMedia('(max-width: 800px)');

/** The variants that the choice shows. */
function shownVariants() {
  return chosen.variant === 'both' ? [0, 1] : [chosen.variant];
}

/** Shows those columns that are chosen, and says so on their buttons. */
function applyColumns() {
  for (const column of columns) {
    const isShown = narrow.matches ? column.id === shownColumns.narrow : shownColumns.wide.has(column.id);
    column.panel.hidden = !isShown;
    column.button.setAttribute('aria-pressed', String(isShown));
  }
  const shown = columns.filter((column) => !column.panel.hidden);
  // Assembly has more beside its text than the others. Shares below 1fr in sum would leave a gap.
  document.getElementById('panels').style.gridTemplateColumns = shown
    .map((column) => `minmax(0, ${column.isAssembly ? 15 : column.id === 'source' ? 4 : 4.8}fr)`).join(' ');
}

/** Makes sure that a column is shown. */
function showColumn(id) {
  if (narrow.matches) shownColumns.narrow = id;
  else shownColumns.wide.add(id);
  applyColumns();
}

/** What the button of a column does: one column is shown on a narrow page, any number on a wide one. */
function pressed(id) {
  if (narrow.matches) shownColumns.narrow = id;
  else if (!shownColumns.wide.delete(id)) shownColumns.wide.add(id);
  applyColumns();
  // A column that was hidden could not be scrolled.
  if (linked.key) link(linked.key);
}

/** The columns of lines. */
function drawColumns() {
  const panels = document.getElementById('panels');
  panels.replaceChildren();
  columns = [];
  linked.elements = [];
  linked.isKept = false;
  if (chosen.variant === 'both') {
    const both = [0, 1].map((index) => model(chosen.func, index));
    const [source] = both[0].columns;
    addColumn(panels, 'source', source.title, source.rows, textColumn(source, both[0]));
    const sides = aligned(...both);
    sides.forEach(({ rows, marks }, index) => {
      const column = addColumn(panels, `control-${index}`, `Assembly ${variantName(both[0].func, index)}`, rows, assemblyColumn(rows, both[index], marks));
      Object.assign(column, { variant: index, isAssembly: true, model: both[index] });
    });
    scrollTogether(columns[1], columns[2]);
    Object.assign(shownColumns, { wide: new Set(['control-0', 'control-1']), narrow: 'control-0' });
  } else {
    const shown = model(chosen.func, chosen.variant);
    for (const column of shown.columns) {
      const isAssembly = column.id === 'control';
      const made = addColumn(panels, column.id, column.title, column.rows, isAssembly ? assemblyColumn(column.rows, shown) : textColumn(column, shown));
      Object.assign(made, { variant: chosen.variant, isAssembly, model: shown });
    }
    // Costs stand beside the source and the assembly and take room; the other columns are a press away.
    const ids = columns.map((column) => column.id);
    Object.assign(shownColumns, { wide: new Set(shown.costs ? ['source', 'control'] : ids), narrow: 'control' });
  }
  const buttons = columns.map((column) => {
    column.count = element('span', { class: 'count' });
    column.button = element('button', { type: 'button', 'aria-pressed': 'false', 'aria-controls': column.panel.id, onclick: () => pressed(column.id) }, column.title, column.count);
    return column.button;
  });
  document.getElementById('panel-buttons').replaceChildren(...buttons);
  drawLegend();
  applyColumns();
  say('');
}

/** What the marks beside the lines mean. */
function drawLegend() {
  const item = (kind, mark, text) => element('span', { class: 'sample' }, element('b', { class: kind }, mark), ` ${text} `);
  const items = [
    item('tag made', '+ pass', 'made this line, it has no partner in the column before'),
    item('tag removed', '− pass', 'removed this line, it has none in the next'),
    ...Object.entries(PURPOSES).map(([purpose, [letter, text]]) => item(`purpose is-${purpose}`, letter, text)),
    item('sample-life', '', 'register alive behind the instruction'), item('sample-read', '', 'read'), item('sample-write', '', 'written'),
  ];
  if (chosen.variant === 'both') items.push(item('difference', '~', 'same operation, other operands or control bits'), item('difference', '− +', 'only in A, only in B'));
  document.getElementById('code-legend').replaceChildren(...items);
}

/** Parts below the columns, with what draws each: a function of a model and its variant's index. */
const PARTS = {
  schedule: (shown) => schedule(shown),
  graph: (shown, index) => graph(shown, index),
  cost: (shown, index) => launchCost(shown, index),
};
const LEGENDS = { schedule: scheduleLegend, graph: graphLegend };

/** Parts that are not drawn yet for the choice. */
let waiting = new Set();

/** Draws a part if that has not been done. */
function drawPart(id) {
  if (!waiting.delete(id)) return;
  const box = document.querySelector(`#${id} .drawn`);
  const func = report.functions[chosen.func];
  if (id === 'resources') return box.replaceChildren(resources(func));
  const variants = shownVariants();
  return box.replaceChildren(...(LEGENDS[id] ? [LEGENDS[id]()] : []), ...variants.map((index) =>
    element('div', {}, variants.length > 1 ? element('h3', {}, variantName(func, index)) : null, PARTS[id](model(chosen.func, index), index))));
}

/** Draws parts when they come near what is seen: long schedules take time that the first look need not wait for. */
const nearby = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawPart(entry.target.id);
}, { rootMargin: '300px' });

/** Draws the page for what is chosen. */
function draw() {
  drawColumns();
  waiting = new Set(['schedule', 'graph', 'resources', 'cost']);
  if (!report.profile) waiting.delete('cost');
  for (const id of waiting) {
    const part = document.getElementById(id);
    part.querySelector('.drawn').replaceChildren();
    nearby.unobserve(part);
    nearby.observe(part);
  }
}

/** Draws all parts at once. */
function drawAll() {
  for (const id of [...waiting]) drawPart(id);
}

/** The choices at the top. */
function drawPickers() {
  const pickers = document.getElementById('pickers');
  const parts = [];
  if (report.functions.length > 1) {
    const select = element('select', { id: 'function', onchange: () => {
      chosen.func = Number(select.value);
      chosen.variant = 0;
      drawPickers();
      draw();
    } }, ...report.functions.map((func, index) => element('option', { value: index, selected: index === chosen.func }, `${func.name}${func.kernel ? ' (kernel)' : ''}`)));
    parts.push(element('label', { for: 'function' }, 'Function '), select, ' ');
  }
  const func = report.functions[chosen.func];
  if (func.variants.length > 1) {
    const options = [...func.variants.map((_, index) => [index, variantName(func, index)]), ['both', 'A beside B']];
    parts.push(choice('Variant', options, chosen.variant, (value) => {
      chosen.variant = value;
      draw();
    }));
  } else if (func.variants[0].name !== 'default') {
    parts.push(element('span', { class: 'dim' }, func.variants[0].name));
  }
  pickers.replaceChildren(...parts);
}

/** Starts the page. */
function start() {
  const name = report.file.split('/').pop();
  document.title = `${name} – explore`;
  document.getElementById('title').replaceChildren(name, element('small', {}, ` clif-util ${report.version}`));
  const hasCost = Boolean(report.profile);
  document.getElementById('cost').hidden = !hasCost;
  document.getElementById('to-cost').hidden = !hasCost;
  if (!report.functions.length) {
    document.getElementById('linked').textContent = 'The file has no functions.';
    return;
  }
  drawPickers();
  draw();
  listen();
  narrow.addEventListener('change', applyColumns);
  if (location.hash === '#self-test') selfTest();
}

start();
