// With `#self-test` in its address the page checks itself and says the result in its title and at its top, where a program can read it.

/** What holds and what does not. */
class Checks {
  passed = 0;

  failures = [];

  /** Notes whether something holds. */
  that(holds, what) {
    if (holds) this.passed += 1;
    else this.failures.push(what);
  }
}

/** Every line of the report is on the page, with its text, and marks the lines of its key in all columns. */
function checkLines(checks) {
  for (const column of columns) {
    const rows = column.rows.filter((row) => !row.filler);
    const elements = column.elements.filter((line) => !line.classList.contains('filler'));
    checks.that(rows.length === elements.length, `${column.title}: ${elements.length} of ${rows.length} lines`);
    const wrong = rows.findIndex((row, i) => !elements[i] || !elements[i].textContent.includes(lineText(column, row)));
    checks.that(wrong < 0, `${column.title}: line ${wrong} is not on the page`);
    const untold = rows.findIndex((row, i) => Boolean(row.madeBy) !== Boolean(elements[i]?.querySelector('.tag.made'))
      || Boolean(row.removedBy) !== Boolean(elements[i]?.querySelector('.tag.removed')));
    checks.that(untold < 0, `${column.title}: line ${untold} does not say its pass`);
  }
}

/** Lines of instructions have a cell for each part of the cost, those of instructions that never ran too, so that all cells stand below their titles. */
function checkCosts(checks) {
  for (const column of columns.filter((c) => c.isAssembly && c.model.costs)) {
    const kinds = (line) => [...line.children].map((part) => part.className).filter((name) => COSTS.some(([kind]) => kind === name)).join();
    const expected = COSTS.map(([kind]) => kind).join();
    const wrong = column.rows.findIndex((row, i) => !row.filler && row.instruction !== null && kinds(column.elements[i]) !== expected);
    checks.that(wrong < 0, `${column.title}: line ${wrong} has other cells than ${expected}`);
  }
}

/** What stands in a column is as wide and as high as was computed for it, so that lines are where scrolling takes them. */
function checkPlaces(checks) {
  for (const column of columns.filter((c) => !c.panel.hidden)) {
    const last = column.elements[column.elements.length - 1];
    reveal(column, last);
    const place = last.getBoundingClientRect().top - column.scroll.getBoundingClientRect().top + column.scroll.scrollTop;
    checks.that(Math.abs(place - column.scroll.clientTop - topOf(last)) < 1, `${column.title}: the last line is at ${place} for ${topOf(last)}`);
    const width = column.box.getBoundingClientRect().right;
    const wide = column.elements.find((line) => [...line.children].some((part) => part.getBoundingClientRect().right > width + 0.5));
    checks.that(!wide, `${column.title}: wider than its box: ${wide?.textContent}`);
  }
}

/** What a line must show. */
function lineText(column, row) {
  if (row.instruction === null || row.instruction === undefined) return row.text.trim();
  return column.model.variant.picture.instructions[row.instruction].text;
}

/** The text of an instruction in the report's assembly is that of its picture: branches name places by then. */
function checkPicture(checks, shown) {
  const { picture } = shown.variant;
  const rows = shown.columns.find((column) => column.id === 'control').rows.filter((row) => row.instruction !== null);
  checks.that(rows.length === picture.instructions.length, `${rows.length} lines for ${picture.instructions.length} instructions`);
  const wrong = rows.find((row) => !row.text.trim().startsWith(picture.instructions[row.instruction]?.text));
  checks.that(!wrong, `not the instruction of the picture: ${wrong?.text}`);
  const astray = rows.find((row) => {
    const block = picture.blocks[row.block];
    return !block || row.instruction < block.first || row.instruction >= block.first + block.count;
  });
  checks.that(!astray, `in the wrong block: ${astray?.text}`);
}

/** Pointing at a line of a key marks exactly those lines that have it, in all columns, and scrolls shown columns to one. */
function checkLinks(checks, keys) {
  for (const key of keys) {
    const from = columns.find((column) => column.byKey.has(key));
    from.byKey.get(key)[0].dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
    const marked = new Set(document.querySelectorAll('.line.linked'));
    const expected = columns.flatMap((column) => column.elements.filter((_, i) => column.rows[i].key === key));
    checks.that(marked.size === expected.length && expected.every((line) => marked.has(line)), `key ${key}: ${marked.size} lines marked of ${expected.length}`);
    for (const column of columns) {
      if (column === from || column.panel.hidden || !column.byKey.has(key)) continue;
      checks.that(column.byKey.get(key).some((line) => isSeen(column, line)), `key ${key}: not in view in ${column.title}`);
    }
  }
  link(0);
}

/** Keys of lines that have a place in at least two columns, at most so many, from all over the function. */
function someKeys(most) {
  const all = [...new Set(columns.flatMap((column) => [...column.byKey.keys()]))];
  const step = Math.max(1, Math.floor(all.length / most));
  return all.filter((_, i) => i % step === 0);
}

/** Keys of the keyboard do what the pointer does. */
function checkKeyboard(checks) {
  const column = columns.find((c) => !c.panel.hidden);
  const [key, [line]] = [...column.byKey][0];
  const press = (name) => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true }));
  focusLine(column, line);
  // A page that has no focus itself fires no event for that of its elements.
  line.dispatchEvent(new FocusEvent('focusin', { bubbles: true }));
  checks.that(linked.key === key, 'the line with the focus is not marked');
  press('Enter');
  checks.that(linked.isKept && line.getAttribute('aria-selected') === 'true', 'Enter does not keep the marks');
  press('Escape');
  checks.that(!linked.isKept && document.querySelectorAll('.linked').length === 0, 'Escape does not drop the marks');
  press('ArrowDown');
  checks.that(document.activeElement !== line && column.elements.includes(document.activeElement), 'the arrow does not move the focus');
}

/** Nothing sticks out of the page; what is longer scrolls inside of its own box. */
function checkWidth(checks) {
  const width = document.documentElement.clientWidth;
  checks.that(document.documentElement.scrollWidth <= width, `the page is ${document.documentElement.scrollWidth} wide in a window of ${width}`);
  const wide = [...document.querySelectorAll('header *, section > *, .panel, .schedule-block, .graph-scroll, .table-scroll, .chart-box, .legend, button, select, p, h2, h3, h4')]
    .filter((part) => part.getClientRects().length && !part.parentElement.closest('.scroll, .schedule-scroll, .graph-scroll, .table-scroll, .chart-box'))
    .find((part) => part.getBoundingClientRect().right > width + 0.5);
  checks.that(!wide, `wider than the window: ${wide?.tagName} ${wide?.className} ${wide?.textContent.slice(0, 40)}`);
}

/** Whether two rectangles have an area in common. */
function overlap(a, b) {
  return a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5;
}

/** Boxes of blocks are apart, texts stay in their box and apart from each other. */
function checkGraph(checks, layout) {
  for (const chart of document.querySelectorAll('.graph')) {
    const nodes = [...chart.querySelectorAll('.node')];
    const places = nodes.map((node) => node.querySelector('rect').getBoundingClientRect());
    let pair = '';
    places.forEach((a, i) => places.forEach((b, j) => { if (i < j && overlap(a, b)) pair = `${i} and ${j}`; }));
    checks.that(!pair, `${layout}: boxes of blocks ${pair} overlap`);
    const crowded = nodes.find((node, i) => {
      const texts = [...node.querySelectorAll('text')].filter((text) => text.textContent).map((text) => text.getBoundingClientRect());
      return texts.some((text, k) => text.left < places[i].left || text.right > places[i].right || text.bottom > places[i].bottom
        || texts.some((other, l) => k < l && overlap(text, other)));
    });
    checks.that(!crowded, `${layout}: texts overlap or stick out: ${crowded?.textContent}`);
    const names = [...chart.querySelectorAll('.barrier text')].map((text) => text.getBoundingClientRect());
    checks.that(!names.some((name, i) => places.some((place) => overlap(name, place)) || names.some((other, j) => i < j && overlap(name, other))), `${layout}: names of barriers overlap`);
    const whole = chart.getBoundingClientRect();
    checks.that([...chart.querySelectorAll('.node, .barrier text')].every((part) => {
      const place = part.getBoundingClientRect();
      return place.left >= whole.left && place.right <= whole.right && place.top >= whole.top && place.bottom <= whole.bottom;
    }), `${layout}: parts lie outside of the drawing`);
  }
}

/** Blocks of the graph and rows of the dearest instructions lead to their lines of the assembly. */
function checkWays(checks) {
  const shown = shownVariants();
  document.querySelectorAll('.graph').forEach((chart, n) => {
    for (const node of [...chart.querySelectorAll('.node')].slice(0, 8)) {
      node.dispatchEvent(new MouseEvent('click', { bubbles: true }));
      const line = document.activeElement;
      const column = line.closest('.line') && columnOf(line);
      checks.that(column && column.variant === shown[n] && isSeen(column, line) && line.textContent.includes(`L${node.dataset.block}:`), `block ${node.dataset.block} leads to ${line.textContent.slice(0, 40)}`);
    }
  });
  for (const button of document.querySelectorAll('.dearest button')) {
    button.click();
    checks.that(document.activeElement.querySelector?.('.offset')?.textContent === button.textContent, `${button.textContent} leads elsewhere`);
  }
}

/** All edges, barriers, instructions, waits and marks are drawn. */
function checkCharts(checks, func) {
  const pictures = shownVariants().map((index) => func.variants[index].picture);
  const sum = (of) => pictures.reduce((total, picture) => total + of(picture), 0);
  const drawn = (selector) => document.querySelectorAll(selector).length;
  const expect = (selector, count, what) => checks.that(drawn(selector) === count, `${drawn(selector)} of ${count} ${what}`);
  expect('#graph .node', sum((p) => p.blocks.length), 'blocks');
  expect('#graph .edge', sum((p) => p.blocks.reduce((n, block) => n + new Set(block.successors).size, 0)), 'edges');
  expect('#graph .barrier', sum((p) => p.blocks.reduce((n, block) => n + block.sets.filter(([, to]) => to !== null).length, 0)), 'barriers');
  expect('#schedule .timeline .issue', sum((p) => p.instructions.length), 'issues');
  expect('#schedule .timeline .board', sum((p) => p.instructions.reduce((n, i) => n + i.raises.length, 0)), 'scoreboards raised');
  expect('#schedule .timeline .wait', sum((p) => p.instructions.reduce((n, i) => n + i.waits.length, 0)), 'waits');
  expect('#resources .kernel-mark', func.variants.filter((variant) => variant.resources).length, 'marks of kernels');
  checks.that(drawn('#resources .staircase') === 1, 'no chart of occupancy');
  for (const strip of document.querySelectorAll('.strip')) checks.that(strip.querySelector('.life-alive').getAttribute('d') !== '' || registersOf(pictures[0]).length === 0, 'the strip of registers is empty');
  // Names of marks may not lie over each other, whatever the block size.
  const select = document.getElementById('threads');
  for (const option of select.options) {
    select.value = option.value;
    select.dispatchEvent(new Event('change'));
    const texts = [...document.querySelectorAll('.kernel-mark text')].map((text) => text.getBoundingClientRect());
    checks.that(!texts.some((a, i) => texts.some((b, j) => i < j && overlap(a, b))), `names of marks overlap in blocks of ${option.value} threads`);
  }
}

/** Costs on the page add up to those of the profile. */
function checkCosts(checks) {
  for (const index of shownVariants()) {
    const shown = model(chosen.func, index);
    if (!shown.costs) continue;
    const expected = report.profile.instructions.filter((i) => i.function === shown.func.name)
      .reduce((sum, i) => sum + i.issues + Object.values(i.stalls).reduce((a, b) => a + b, 0), 0);
    checks.that(shown.costs.total === expected, `costs are ${shown.costs.total} of ${expected}`);
    checks.that(document.querySelectorAll('.dearest tbody tr').length > 0 && document.querySelectorAll('.reasons tbody tr').length > 1, 'the tables of costs are empty');
    checks.that(document.querySelectorAll('.panel[id^="column-control"] .line .issues').length > 0, 'no costs beside the assembly');
  }
}

/** Two variants beside each other have their lines at the same height, and every line has its mark. */
function checkComparison(checks) {
  const [a, b] = columns.filter((column) => column.isAssembly);
  checks.that(a.elements.length === b.elements.length, 'variants are not lined up');
  const wrong = a.rows.findIndex((row, i) => row.filler && b.rows[i].filler);
  checks.that(wrong < 0, `row ${wrong} is empty in both variants`);
  const same = a.rows.findIndex((row, i) => {
    if (row.filler || b.rows[i].filler || row.instruction === null || a.elements[i].querySelector('.difference').textContent !== ' ') return false;
    return lineText(a, row) !== lineText(b, b.rows[i]);
  });
  checks.that(same < 0, `row ${same} differs and is not marked`);
}

/** How bright a colour is to the eye, 0 to 1, by the formula of the web's accessibility guidelines. */
function luminance(colour) {
  const [r, g, b] = colour.map((part) => {
    const value = part / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** Texts can be read on every background that they stand on, in the scheme of colours that is in force. */
function checkContrast(checks) {
  const probe = document.body.appendChild(element('span', {}));
  const colour = (value) => {
    probe.style.color = value;
    return getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  };
  const of = (name) => colour(`var(--${name})`);
  const page = of('page');
  // The dearest line: the colour of heat at its strongest over that of the page.
  const heatColour = colour('rgb(var(--heat-colour))').map((part, i) => 0.3 * part + 0.7 * page[i]);
  const backgrounds = { page, panel: of('panel'), linked: of('linked'), heat: heatColour };
  for (const name of ['text-colour', 'dim', 'accent', 'made', 'removed', 'spill', 'reload', 'copy']) {
    for (const [on, background] of Object.entries(backgrounds)) {
      const [low, high] = [luminance(of(name)), luminance(background)].sort((a, b) => a - b);
      const contrast = (high + 0.05) / (low + 0.05);
      checks.that(contrast >= 4.5, `contrast of ${name} on ${on} is ${contrast.toFixed(2)}`);
    }
  }
  probe.remove();
}

/** Checks what is shown for one choice. */
function checkChoice(checks) {
  drawAll();
  const func = report.functions[chosen.func];
  checkLines(checks);
  checkPlaces(checks);
  checkCosts(checks);
  checkLinks(checks, someKeys(24));
  checkKeyboard(checks);
  if (chosen.variant === 'both') checkComparison(checks);
  else checkPicture(checks, model(chosen.func, chosen.variant));
  checkGraph(checks, 'flow');
  for (const button of document.querySelectorAll('#graph .buttons button:last-child')) button.click();
  checkGraph(checks, 'tree');
  for (const button of document.querySelectorAll('#graph .buttons button:first-child')) button.click();
  checkWays(checks);
  checkCharts(checks, func);
  checkCosts(checks);
  checkWidth(checks);
}

/** The whole test: each function, each variant and both beside each other. */
function selfTest() {
  const checks = new Checks();
  window.addEventListener('error', (event) => checks.failures.push(event.message));
  try {
    report.functions.forEach((func, index) => {
      for (const variant of [...func.variants.keys(), ...(func.variants.length > 1 ? ['both'] : [])]) {
        Object.assign(chosen, { func: index, variant });
        drawPickers();
        draw();
        checkChoice(checks);
      }
    });
    checkContrast(checks);
  } catch (error) {
    checks.failures.push(String(error.stack ?? error));
  }
  const result = `self-test: ${checks.passed} passed, ${checks.failures.length} failed`;
  document.title = result;
  const box = document.getElementById('self-test');
  box.hidden = false;
  box.textContent = [result, ...checks.failures].join('\n');
  // In a frame, whose width is that of a phone, say, the page around it wants to know.
  if (window.parent !== window) window.parent.postMessage(box.textContent, '*');
}
