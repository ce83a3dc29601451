// When instructions issue and how long scoreboards are up: a chart for each block, cycles from the left, one warp alone.

/** Instructions of a block up to which each has a row of its own at first. */
const MOST_ROWS = 48;
/** Height of a row of the chart; that of `.schedule-labels div` in the style. */
const TRACK = 18;

/** Widths of a cycle to choose from, in pixels. */
const SCALES = [0.5, 1, 2, 4, 8, 16];

/** Room at the left of a chart, for marks at its first cycle. */
const MARGIN = 6;

/** How a schedule is shown. */
const view = { scale: null, rows: null };

/** What a block needs to be drawn. */
function blockTimes(picture, index) {
  const block = picture.blocks[index];
  const instructions = picture.instructions.slice(block.first, block.first + block.count);
  const boards = [...new Set(instructions.flatMap((i) => [...i.raises.map(([board]) => board), ...i.waits]))].sort();
  const ends = instructions.flatMap((i) => i.raises.map(([, until]) => until));
  return { block, index, instructions, boards, end: Math.max(block.cycles, 1, ...ends) };
}

/** A width of a cycle at which the longest block is not much wider than a page. */
function fittingScale(times) {
  const longest = Math.max(...times.map((t) => t.end));
  return [...SCALES].reverse().find((scale) => scale <= 4 && longest * scale <= 2600) ?? SCALES[0];
}

/** Distance of the lines of the axis, in cycles. */
function axisStep(scale) {
  return [5, 10, 20, 50, 100, 200, 500].find((step) => step * scale >= 48) ?? 1000;
}

/** The chart of a block. */
function blockChart({ block, index, instructions, boards, end }, scale, hasRows) {
  const tracks = hasRows ? instructions.length : 1;
  const top = TRACK;
  const height = top + (tracks + boards.length) * TRACK + 4;
  const width = MARGIN + end * scale + 42;
  const x = (cycle) => (MARGIN + cycle * scale).toFixed(1);
  const chart = drawing('svg', {
    class: 'timeline', width, height, role: 'img',
    'aria-label': `Block L${index}: ${counted(instructions.length, 'instruction')} in ${counted(block.cycles, 'cycle')}`,
  });
  const step = axisStep(scale);
  for (let cycle = 0; cycle <= end; cycle += step) {
    chart.append(drawing('line', { class: 'grid', x1: x(cycle), x2: x(cycle), y1: top - 4, y2: height }),
      drawing('text', { x: MARGIN + cycle * scale + 2, y: 11 }, String(cycle)));
  }
  // Where the next block starts, if scoreboards are up behind it.
  chart.append(drawing('line', { class: 'block-end', x1: x(block.cycles), x2: x(block.cycles), y1: top - 6, y2: height }));
  instructions.forEach((i, n) => {
    const next = instructions[n + 1]?.issue ?? block.cycles;
    const y = top + (hasRows ? n : 0) * TRACK;
    const group = drawing('g', { 'data-key': i.source || null },
      drawing('title', {}, `${i.text}  ${i.control}\ncycle ${i.issue}, the next ${next - i.issue} later`));
    const waited = n > 0 ? instructions[n - 1].issue + 1 : 0;
    // The cycles before an instruction are its wait if it waits for a scoreboard, else the stall field of the one before.
    if (i.issue > waited) {
      group.append(drawing('rect', { class: i.waits.length ? 'gap-wait' : 'gap-stall', x: x(waited), y: y + 6, width: (i.issue - waited) * scale, height: TRACK - 11 }));
    }
    group.append(drawing('rect', { class: `issue${i.purpose ? ` is-${i.purpose}` : ''}`, x: x(i.issue), y: y + 2, width: Math.max(1.5, scale - 0.5), height: TRACK - 4 }));
    chart.append(group);
  });
  boards.forEach((board, row) => {
    const y = top + (tracks + row) * TRACK;
    for (const i of instructions) {
      for (const [raised, until] of i.raises) {
        if (raised !== board) continue;
        chart.append(drawing('g', { 'data-key': i.source || null },
          drawing('title', {}, `scoreboard ${board}: raised by ${i.text} in cycle ${i.issue}, zero in cycle ${until}`),
          drawing('rect', { class: 'board', x: x(i.issue), y: y + 4, width: Math.max(1, (until - i.issue) * scale), height: TRACK - 8 })));
      }
      if (i.waits.includes(board)) {
        const at = MARGIN + i.issue * scale;
        chart.append(drawing('g', { 'data-key': i.source || null },
          drawing('title', {}, `${i.text} waits for scoreboard ${board} until cycle ${i.issue}`),
          drawing('path', { class: 'wait', d: `M${at} ${y + 1}v${TRACK - 2}M${at - 4} ${y + 1}h8l-4 6z` })));
      }
    }
  });
  const labels = hasRows ? instructions.map((i) => i.text) : ['issue'];
  for (const board of boards) labels.push(`scoreboard ${board}`);
  return element('div', { class: 'schedule-block' },
    element('div', { class: 'schedule-labels', 'aria-hidden': 'true' }, element('div', {}, 'cycle'), ...labels.map((text) => element('div', { title: text }, text))),
    element('div', { class: 'schedule-scroll', tabindex: '0', role: 'group', 'aria-label': `Schedule of block L${index}` }, chart));
}

/** The schedule of a variant. */
function schedule({ variant }) {
  const { picture } = variant;
  const times = picture.blocks.map((_, index) => blockTimes(picture, index)).filter((t) => t.instructions.length);
  const box = element('div', {});
  let scale = view.scale ?? fittingScale(times);
  const draw = () => {
    const hasRows = (t) => (view.rows ?? (t.instructions.length <= MOST_ROWS ? 'rows' : 'line')) === 'rows';
    box.replaceChildren(...times.map((t) => element('div', {},
      element('h4', {}, `L${t.index}`, element('span', { class: 'dim' }, ` ${counted(t.instructions.length, 'instruction')}, ${counted(t.block.cycles, 'cycle')}${t.block.depth ? `, loop depth ${t.block.depth}` : ''}${t.block.divergent ? ', divergent' : ''}`)),
      blockChart(t, scale, hasRows(t)))));
  };
  draw();
  const controls = element('p', {},
    choice('Rows of the schedule', [[null, 'Rows as they fit'], ['rows', 'A row an instruction'], ['line', 'One row']], view.rows, (value) => { view.rows = value; draw(); }), ' ',
    choice('Pixels a cycle', SCALES.map((s) => [s, `${s}`]), scale, (value) => { view.scale = value; scale = value; draw(); }), ' pixels a cycle');
  return element('div', {}, controls, box);
}

/** What the marks of a schedule mean. */
function scheduleLegend() {
  const sample = (mark, text) => element('span', { class: 'sample' }, drawing('svg', { width: 22, height: 14, 'aria-hidden': 'true' }, mark), ` ${text} `);
  return element('p', { class: 'legend' },
    sample(drawing('rect', { class: 'issue', x: 6, y: 1, width: 5, height: 12 }), 'issue'),
    sample(drawing('rect', { class: 'gap-stall', x: 1, y: 4, width: 20, height: 7 }), 'held back by a stall field'),
    sample(drawing('rect', { class: 'gap-wait', x: 1, y: 4, width: 20, height: 7 }), 'waits for a scoreboard'),
    sample(drawing('rect', { class: 'board', x: 1, y: 3, width: 20, height: 8 }), 'scoreboard is up'),
    sample(drawing('path', { class: 'wait', d: 'M11 1v13M7 1h8l-4 6z' }), 'waited for here'),
    sample(drawing('line', { class: 'block-end', x1: 11, x2: 11, y1: 0, y2: 14 }), 'the next block starts'));
}
