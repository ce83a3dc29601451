// Columns of lines side by side, and how lines that belong together are found and marked.

/** Purposes that the report gives instructions, with their letter: colour alone tells nothing to who does not see it. */
const PURPOSES = {
  spill: ['S', 'spill: stores a register to memory'],
  reload: ['L', 'reload: loads a register from memory'],
  copy: ['C', 'copy: moves registers only'],
};

/** Columns that are on the page: id, title, element, rows, rows' elements, elements by key. */
let columns = [];

/** Widest text of some, in characters. */
function widest(texts) {
  return texts.reduce((most, text) => Math.max(most, text.length), 0);
}

/** Widths of an instruction's text and of that with its control bits, in characters. Nine of ten texts fit, so that control bits stand below each other; longer
 * texts push theirs to the right. */
function codeWidths(rows, instructions) {
  const parts = rows.filter((row) => row.instruction !== null).map((row) => {
    const { text, control } = instructions[row.instruction];
    return [text.length + row.note.length, control.length + 2];
  });
  const lengths = parts.map(([text]) => text).sort((a, b) => a - b);
  const most = lengths[Math.floor(lengths.length * 0.9)] ?? 0;
  return [most, Math.max(most + 9, ...parts.map(([text, control]) => Math.max(text, most) + control))];
}

/** Lines of a part of a column. */
const PART = 60;
/** Height of the head of a column; that of `.column-header` in the style. */
const HEAD = 36;

/** Lines as the content of a column, in parts that a browser lays out when they come into view: most of a long text is never seen. That needs sizes that do not
 * depend on the content: rows are equally high, and `width` says how wide the widest is. */
function linesBox(lines, width) {
  const parts = [];
  for (let at = 0; at < lines.length; at += PART) {
    const part = lines.slice(at, at + PART);
    parts.push(`<div class="part" role="presentation" style="height:${part.length * ROW}px">${part.join('')}</div>`);
  }
  const box = element('div', { class: 'lines', style: `width:${width}` });
  box.innerHTML = parts.join('');
  return box;
}

/** Widest line of a text column: characters of its text, pixels of what stands around it. */
function textWidth(rows, isNumbered, hasCost) {
  const text = widest(rows.map((row) => row.text));
  // Names of passes have no fixed width; eight pixels a letter are more than enough.
  const marks = Math.max(0, ...rows.map((row) => [row.madeBy, row.removedBy].reduce((sum, pass) => sum + (pass ? 34 + 8 * pass.length : 0), 0)));
  return `calc(${text + (isNumbered ? 4 : 0) + (hasCost ? 6 : 0)}ch + ${marks + 30}px)`;
}

/** The mark of a line without partner. */
function tags(row) {
  let text = '';
  if (row.madeBy) text += `<span class="tag made" title="made by ${escaped(row.madeBy)}">+&thinsp;${escaped(row.madeBy)}</span>`;
  if (row.removedBy) text += `<span class="tag removed" title="removed by ${escaped(row.removedBy)}">−&thinsp;${escaped(row.removedBy)}</span>`;
  return text;
}

/** How strongly a line is coloured for its part of the dearest one's cost. The root keeps cheap lines apart from those that cost nothing. */
function heat(cost, most) {
  return cost && most ? Math.sqrt(cost / most).toFixed(2) : 0;
}

/** The attributes of a line's element. */
function lineAttributes(row, index, extra) {
  const key = row.key ? ` data-key="${row.key}"` : '';
  return `class="line${extra}" role="option" tabindex="-1" aria-selected="false" data-row="${index}"${key}`;
}

/** A column of CLIF or VCode. Where there is a profile, lines carry the sum of what their instructions cost. */
function textColumn(column, { func, costs: cost }) {
  const numbers = column.id === 'source' ? func.lines : null;
  const lines = column.rows.map((row, index) => {
    const sum = cost && row.key ? cost.byKey.get(row.key) ?? 0 : 0;
    const style = sum ? ` style="--heat:${heat(sum, cost.mostOfKey)}"` : '';
    const share = cost ? `<span class="share" title="${sum ? `${sum} cycles of warps in its instructions` : ''}">${sum ? percent(sum, cost.total) : ''}</span>` : '';
    const place = numbers ? `<span class="number">${numbers[row.key] ?? ''}</span>` : '';
    return `<div ${lineAttributes(row, index, row.madeBy ? ' is-made' : row.removedBy ? ' is-removed' : '')}${style}>${place}${share}<span class="text">${escaped(row.text) || ' '}</span>${tags(row)}</div>`;
  });
  const box = linesBox(lines, textWidth(column.rows, Boolean(numbers), Boolean(cost)));
  const header = element('div', { class: 'column-header' },
    numbers ? element('span', { class: 'number', title: 'line of the file' }, 'line') : null,
    cost ? element('span', { class: 'share', title: 'share of what the launch spent in this function' }, 'cost') : null,
    element('span', { class: 'text' }, 'instruction'));
  return { header, body: box, box };
}

/** The columns of what an instruction cost, with their titles. */
const COSTS = [['share', 'cost'], ['c issues', 'issues'], ['c lanes', 'lanes'], ['c stall', 'largest stall'], ['c sectors', 'sectors'], ['c conflicts', 'conflicts']];

/** What stands in each of those columns: text and title. */
function costTexts(cost, all) {
  const [reason, cycles] = cost.stalls[0] ?? ['', 0];
  const others = cost.stalls.map(([name, count]) => `${name} ${count}`).join(', ');
  return [
    [percent(cost.cost, all.total), `${cost.cost} of ${all.total} cycles of warps`],
    [number(cost.issues)],
    [cost.issues ? (cost.lanes / cost.issues).toFixed(1) : ''],
    [reason ? `${reason} ${number(cycles)}` : '', others],
    [cost.sectors ? number(cost.sectors) : ''],
    [cost.bank_conflicts ? number(cost.bank_conflicts) : ''],
  ];
}

/** What an instruction cost, as columns; those of one that never ran are there and empty. */
function costCells(cost, all) {
  const texts = cost ? costTexts(cost, all) : [];
  return COSTS.map(([kind], index) => {
    const [text, title] = texts[index] ?? [''];
    return `<span class="${kind}"${title ? ` title="${escaped(title)}"` : ''}>${escaped(text)}</span>`;
  }).join('');
}

/** A column of assembly with control bits, what is alive and, where there is a profile, the cost. `differences` has a mark for each row. */
function assemblyColumn(rows, { variant, costs: cost }, differences) {
  const { picture } = variant;
  const { instructions } = picture;
  const most = Math.max(1, ...instructions.map((i) => generalCount(i.alive)));
  const lines = rows.map((row, index) => {
    const difference = differences ? `<span class="difference">${differences[index]}</span>` : '';
    if (row.filler) return `<div class="line filler" aria-hidden="true" data-row="${index}">${difference}</div>`;
    if (row.instruction === null) {
      return `<div ${lineAttributes(row, index, ' label')}>${difference}<span class="offset"></span><span class="purpose"></span><span class="text">${escaped(row.text.trim())}</span></div>`;
    }
    const i = instructions[row.instruction];
    const spent = cost?.all[row.instruction];
    const purpose = PURPOSES[i.purpose];
    const alive = generalCount(i.alive);
    const classes = `${i.purpose ? ` is-${i.purpose}` : ''}${row.madeBy ? ' is-made' : ''}${differences && differences[index] !== ' ' ? ' differs' : ''}`;
    const style = spent ? ` style="--heat:${heat(spent.cost, cost.most)}"` : '';
    return `<div ${lineAttributes(row, index, classes)}${style}>${difference}<span class="offset">${hexadecimal(i.offset)}</span>`
      + `<span class="purpose"${purpose ? ` title="${purpose[1]}"` : ''}>${purpose ? purpose[0] : ''}</span>`
      + `<span class="code"><span class="text">${escaped(i.text)}<span class="note">${escaped(row.note)}</span></span><span class="control">${escaped(i.control)}</span></span><span class="tags">${tags(row)}</span>`
      + (cost ? costCells(spent, cost) : '')
      + `<span class="alive" title="${counted(alive, 'general-purpose register')} alive behind it"><i style="width:${Math.round((20 * alive) / most)}px"></i>${alive}</span></div>`;
  });
  const { strip, header: names } = registerStrip(rows, picture);
  const [shortWidth, codeWidth] = codeWidths(rows, instructions);
  const tagWidth = rows.some((row) => row.madeBy) ? widest(rows.map((row) => row.madeBy ?? '')) + 3 : 0;
  const reason = (spent) => (spent?.stalls.length ? `${spent.stalls[0][0]} ${number(spent.stalls[0][1])}` : '');
  const stallWidth = cost ? Math.max(13, widest(cost.all.map(reason))) : 0;
  // The columns of the style: what they are wide in characters, then what is given in pixels, gaps included.
  const characters = (differences ? 2 : 0) + 4 + 1.5 + codeWidth + tagWidth + (cost ? 6 + 8 + 5 + stallWidth + 9 + 9 : 0);
  const box = linesBox(lines, `calc(${characters}ch + ${62 + 5 * (4 + (differences ? 1 : 0) + (cost ? 6 : 0))}px)`);
  const body = element('div', { class: 'assembly', style: [
    `--text:${shortWidth}ch`, `--code:${codeWidth}ch`, `--tags:${tagWidth}ch`, `--stall:${stallWidth}ch`,
  ].join(';') }, box, strip);
  const cells = [['offset', 'at'], ['purpose', ''], ['code', [['text', 'instruction'], ['control', 'control']]], ['tags', tagWidth ? 'made by' : '']];
  if (differences) cells.unshift(['difference', '']);
  if (cost) cells.push(...COSTS);
  cells.push(['alive', 'alive']);
  const header = element('div', { class: 'column-header', style: body.getAttribute('style') },
    ...cells.map(([kind, title]) => (Array.isArray(title)
      ? element('span', { class: kind }, ...title.map(([part, name]) => element('span', { class: part }, name)))
      : element('span', { class: kind }, title))), names);
  return { header, body, box };
}

/** Puts a column on the page. */
function addColumn(parent, id, title, rows, { header, body, box }) {
  const name = `column-${id}`;
  box.setAttribute('role', 'listbox');
  box.setAttribute('aria-multiselectable', 'true');
  box.setAttribute('aria-label', title);
  const scroll = element('div', { class: 'scroll' }, header, body);
  const panel = element('div', { class: 'panel', id: name, 'data-column': id }, element('h3', {}, title), scroll);
  const elements = [...box.querySelectorAll('.line')];
  const byKey = new Map();
  for (const line of elements) {
    const key = Number(line.dataset.key);
    if (!key) continue;
    if (!byKey.has(key)) byKey.set(key, []);
    byKey.get(key).push(line);
  }
  // One line of each column can be reached by Tab, the others from there by arrow keys.
  elements.find((line) => !line.classList.contains('filler'))?.setAttribute('tabindex', '0');
  parent.append(panel);
  const column = { id, title, panel, scroll, box, rows, elements, byKey };
  columns.push(column);
  return column;
}

/** The key whose lines are marked, and whether they stay marked. */
const linked = { key: 0, isKept: false, elements: [] };

/** Writes what is marked, or what the pointer is at, below the columns. */
function say(text) {
  document.getElementById('linked').textContent = text;
}

/** Where a line of a column starts. It is not asked of the browser, which would have to lay out parts that are not seen. */
function topOf(line) {
  return HEAD + Number(line.dataset.row) * ROW;
}

/** Whether a line of a column can be seen without scrolling. */
function isSeen(column, line) {
  const top = topOf(line) - column.scroll.scrollTop;
  return top >= HEAD && top + ROW <= column.scroll.clientHeight;
}

/** Scrolls a column so that a line of it stands in the middle; the page itself stays. */
function reveal(column, line) {
  column.scroll.scrollTop = Math.max(0, topOf(line) - column.scroll.clientHeight / 2);
}

/** Marks all lines of a key in all columns and scrolls them into view, but not in the column that they are pointed at in. */
function link(key, from) {
  for (const line of linked.elements) line.classList.remove('linked');
  linked.key = key;
  linked.elements = [];
  const counts = [];
  for (const column of columns) {
    const lines = key ? column.byKey.get(key) ?? [] : [];
    for (const line of lines) line.classList.add('linked');
    linked.elements.push(...lines);
    counts.push(`${column.title} ${lines.length}`);
    column.count?.replaceChildren(key ? ` (${lines.length})` : '');
    if (lines.length && column !== from && !lines.some((line) => isSeen(column, line))) reveal(column, lines[0]);
  }
  say(key ? `Lines that belong together: ${counts.join(', ')}` : '');
}

/** Keeps the marks of a key until it is chosen once more. */
function keep(key, from) {
  const isOn = !(linked.isKept && linked.key === key) && key !== 0;
  for (const line of linked.elements) line.setAttribute('aria-selected', 'false');
  linked.isKept = isOn;
  link(isOn ? key : 0, from);
  for (const line of linked.elements) line.setAttribute('aria-selected', String(isOn));
  document.body.classList.toggle('is-kept', isOn);
}

/** Which pass made a line and which removed it, in words. Lines with partners were made by passes too: the place of a spill is that of the code around it. */
function sayOf(line) {
  const row = columnOf(line)?.rows[Number(line.dataset.row)];
  if (!row) return;
  const marks = [row.made && row.made !== FIRST_PASS && `made by ${row.made}`, row.removedBy && `removed by ${row.removedBy}`].filter(Boolean);
  if (marks.length) document.getElementById('linked').append(`${linked.key ? '; ' : ''}this line was ${marks.join(' and ')}`);
}

/** The column of an element, if it is in one. */
function columnOf(target) {
  const panel = target.closest('.panel');
  return panel ? columns.find((column) => column.panel === panel) : undefined;
}

/** What pointing at a line does. Parts of other charts carry keys too. */
function pointed(target) {
  const line = target.closest?.('[data-key], .line');
  if (!line || linked.isKept) return;
  link(Number(line.dataset.key) || 0, columnOf(line));
  sayOf(line);
}

/** Moves between the lines of a column by keys. */
function moved(event, line) {
  const column = columnOf(line);
  const lines = column.elements.filter((other) => !other.classList.contains('filler'));
  const at = lines.indexOf(line);
  const page = Math.max(1, Math.floor(column.scroll.clientHeight / ROW) - 3);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: lines.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = lines[Math.max(0, Math.min(lines.length - 1, to))];
  focusLine(column, next);
}

/** Puts the focus on a line. */
function focusLine(column, line) {
  for (const other of column.box.querySelectorAll('[tabindex="0"]')) other.setAttribute('tabindex', '-1');
  line.setAttribute('tabindex', '0');
  if (!isSeen(column, line)) reveal(column, line);
  line.focus({ preventScroll: true });
}

/** Listens for pointers, taps and keys, once for the whole page. */
function listen() {
  document.addEventListener('mouseover', (event) => pointed(event.target));
  document.addEventListener('focusin', (event) => pointed(event.target));
  document.addEventListener('click', (event) => {
    const line = event.target.closest?.('[data-key], .line');
    if (!line) return;
    keep(Number(line.dataset.key) || 0, columnOf(line));
    sayOf(line);
  });
  document.addEventListener('keydown', (event) => {
    if (event.key === 'Escape') return keep(0);
    const line = event.target.closest?.('.line');
    if (!line) return undefined;
    if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      keep(Number(line.dataset.key) || 0, columnOf(line));
      return sayOf(line);
    }
    return moved(event, line);
  });
}

/** Shows the assembly at a block or an instruction of a variant. */
function goTo(variantIndex, predicate) {
  const column = columns.find((c) => c.variant === variantIndex && c.isAssembly) ?? columns.find((c) => c.isAssembly);
  const index = column?.rows.findIndex(predicate) ?? -1;
  if (index < 0) return;
  showColumn(column.id);
  column.panel.scrollIntoView({ block: 'nearest' });
  const line = column.elements[index];
  reveal(column, line);
  focusLine(column, line);
}
