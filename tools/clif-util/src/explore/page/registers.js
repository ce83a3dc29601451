// The strip of registers beside the assembly: a column for each register that the function uses, filled where it is alive behind the instruction.
// One path for each kind of mark: thousands of small elements would make scrolling slow.

/** Height of a row; that of `.line` in the style. */
const ROW = 18;

/** Width of a register's column: all of them fit where a few are used, and many are narrow. */
function registerWidth(count) {
  return Math.max(2, Math.min(12, Math.floor(280 / Math.max(1, count))));
}

/** What is alive behind a row: rows that are no instructions keep what was alive before them, labels have what is alive at the start of their block. */
function aliveByRow(rows, picture) {
  let alive = [];
  return rows.map((row) => {
    if (row.instruction !== null && row.instruction !== undefined) alive = picture.instructions[row.instruction].alive;
    else if (row.block !== null && row.block !== undefined) alive = picture.blocks[row.block].alive;
    else if (!row.filler) alive = [];
    return alive;
  });
}

/** The strip of a column of assembly. */
function registerStrip(rows, picture) {
  const names = registersOf(picture);
  const columns = new Map(names.map((name, index) => [name, index]));
  const width = registerWidth(names.length);
  const paths = { alive: [], wide: [], read: [], write: [] };
  // Very narrow columns have no room for a gap.
  const gap = width > 3 ? 1 : 0;
  const since = new Map();
  const lives = aliveByRow(rows, picture);
  const end = (name, row) => {
    const start = since.get(name);
    const x = columns.get(name) * width;
    paths[name.startsWith('R') ? 'alive' : 'wide'].push(`M${x} ${start * ROW}h${width - gap}v${(row - start) * ROW}h${gap - width}z`);
    since.delete(name);
  };
  lives.forEach((alive, row) => {
    const now = new Set(alive);
    for (const name of [...since.keys()]) if (!now.has(name)) end(name, row);
    for (const name of now) if (!since.has(name)) since.set(name, row);
    const { instruction } = rows[row];
    if (instruction === null || instruction === undefined) return;
    const { reads, writes } = picture.instructions[instruction];
    // A read is a bar at the top of its row, a write one at its bottom that is as wide as the column.
    const inset = width > 5 ? 2 : 0;
    for (const name of reads) paths.read.push(`M${columns.get(name) * width + inset} ${row * ROW + 2}h${width - gap - 2 * inset}v5h${2 * inset + gap - width}z`);
    for (const name of writes) paths.write.push(`M${columns.get(name) * width} ${row * ROW + ROW - 6}h${width - gap}v5h${gap - width}z`);
  });
  for (const name of [...since.keys()]) end(name, rows.length);
  const strip = drawing('svg', {
    class: 'strip', width: names.length * width, height: rows.length * ROW, role: 'img',
    'aria-label': `Registers alive: ${names.length} of them are used`,
  }, ...Object.entries(paths).map(([kind, d]) => drawing('path', { class: `life-${kind}`, d: d.join('') })));
  strip.addEventListener('mousemove', (event) => {
    const place = strip.getBoundingClientRect();
    const row = Math.floor((event.clientY - place.top) / ROW);
    const name = names[Math.floor((event.clientX - place.left) / width)];
    if (rows[row] && name) say(registerSentence(rows[row], name, lives[row], picture));
  });
  return { strip, header: registerHeader(names, width) };
}

/** What a place of the strip means. */
function registerSentence(row, name, alive, picture) {
  if (row.instruction === null || row.instruction === undefined) return `${name}: ${alive.includes(name) ? 'alive' : 'not alive'} here`;
  const instruction = picture.instructions[row.instruction];
  const does = [instruction.reads.includes(name) && 'read', instruction.writes.includes(name) && 'written'].filter(Boolean);
  return `${name}: ${does.length ? `${does.join(' and ')} by` : 'not touched by'} ${instruction.text}, ${alive.includes(name) ? 'alive' : 'not alive'} behind it`;
}

/** The names above the columns; where those are narrow, of every eighth register and the first of each file. */
function registerHeader(names, width) {
  const isNarrow = width < 9;
  const fileOf = (name) => name.replace(/\d+$/, '');
  let last = -100;
  const texts = names.map((name, index) => {
    const isFirst = index === 0 || fileOf(names[index - 1]) !== fileOf(name);
    const isRound = Number(name.replace(/^\D+/, '')) % 8 === 0;
    const x = index * width + width / 2;
    if (isNarrow && (!(isFirst || isRound) || x - last < 10)) return null;
    last = x;
    return drawing('text', { x: 0, y: 0, transform: `translate(${x + 3.5} 32) rotate(-90)` }, name);
  });
  return drawing('svg', { class: 'strip-names', width: names.length * width, height: 34, 'aria-hidden': 'true' }, ...texts);
}
