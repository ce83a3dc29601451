// What the report says, as the parts of the page need it: rows of a column, partners of lines, cost of instructions.

/** Lines that stand at the margin: heads, ends and labels. */
const AT_MARGIN = /^(function |kernel |\}|(block|L)\d+.*:( |$)|[^ ]+ \{$)/;

/** The lines of a text with the same indentation in all columns: where dumps print places, they indent as deep as those are long. */
function indented(lines) {
  return lines.map((line) => {
    const text = line.text.trim();
    return { ...line, text: text === '' || AT_MARGIN.test(text) ? text : `  ${text}` };
  });
}

/** The keys of lines. */
function keysOf(lines) {
  return new Set(lines.filter((line) => line.key !== 0).map((line) => line.key));
}

/** Where the code of a block goes on that does not come next, in the order of the code. */
function target(picture, block) {
  return picture.blocks[block].successors.find((next) => next !== block + 1);
}

/** What a branch says of its place: code that is not linked has no offsets yet. */
function placeNote(picture, block, index) {
  const { text } = picture.instructions[index];
  const operation = text.replace(/^@!?U?P\w+ /, '');
  if (/^(BRA|BRX)\b/.test(operation)) {
    const place = target(picture, block) ?? picture.blocks[block].successors[0];
    return place === undefined ? '' : ` → L${place}`;
  }
  if (/^BSSY\b/.test(operation)) {
    const set = picture.blocks[block].sets.find(([name]) => text.includes(name));
    return set && set[1] !== null ? ` → L${set[1]}` : '';
  }
  return '';
}

/** The rows of the assembly: labels and instructions, those with their index in the picture. */
function assemblyRows(lines, picture) {
  const rows = [];
  let instruction = 0;
  let block = -1;
  for (const line of lines) {
    if (line.made !== null) {
      // An instruction of the text: those of the picture are in the same order.
      if (picture.blocks[block + 1]?.first === instruction) block += 1;
      rows.push({ ...line, instruction, block, note: placeNote(picture, block, instruction) });
      instruction += 1;
    } else {
      const label = /^L(\d+):/.exec(line.text.trim());
      if (label) block = Number(label[1]);
      rows.push({ ...line, instruction: null, block: label ? block : null, note: '' });
    }
  }
  return rows;
}

/** Of one function the texts of a variant, in the order of the columns. Made once each, since two views may need it. */
const models = new Map();
function model(functionIndex, variantIndex) {
  const name = `${functionIndex} ${variantIndex}`;
  if (!models.has(name)) {
    const func = report.functions[functionIndex];
    const variant = func.variants[variantIndex];
    const columns = [{ id: 'source', title: 'Source', rows: indented(func.source) }];
    for (const stage of variant.stages) {
      columns.push({ id: stage.pass, title: stage.title, rows: indented(stage.lines) });
    }
    const assembly = columns.find((column) => column.id === 'control');
    if (assembly) assembly.rows = assemblyRows(assembly.rows, variant.picture);
    const keys = columns.map((column) => keysOf(column.rows));
    columns.forEach((column, index) => {
      for (const row of column.rows) mark(row, index, keys, variant.removed);
    });
    models.set(name, { func, variant, columns, costs: costs(func, variant) });
  }
  return models.get(name);
}

/** The pass that takes the source: what it "made" was written there, declarations too, which have no places. */
const FIRST_PASS = 'verify';

/** Says of a line that has no partner in the column before which pass made it, and of one that has none in the next which removed it. */
function mark(row, column, keys, removed) {
  const before = keys[column - 1];
  const behind = keys[column + 1];
  if (row.made !== null && row.made !== FIRST_PASS && before && !before.has(row.key)) row.madeBy = row.made;
  if (row.key !== 0 && behind && !behind.has(row.key)) {
    // What comes back in a later text was not removed; the report names a pass only for what is gone.
    row.removedBy = removed[row.key] ?? null;
  }
}

/** The name of an operation, which does not change when code is linked. */
function operationOf(text) {
  return text.replace(/^@!?U?P\w+ /, '').split(/[ ;]/)[0];
}

/** What each instruction of a variant cost in the launch; none without a profile, or if the profile is of other code. */
function costs(func, variant) {
  if (!report.profile) return null;
  const profiled = report.profile.instructions.filter((i) => i.function === func.name);
  if (!profiled.length) return null;
  const byOffset = new Map(profiled.map((i) => [i.offset, i]));
  const { instructions } = variant.picture;
  // Offsets of another variant's instructions mean nothing here.
  const offsets = new Map(instructions.map((i) => [i.offset, i]));
  const same = profiled.every((i) => offsets.has(i.offset) && operationOf(offsets.get(i.offset).text) === operationOf(i.text));
  if (!same) return null;
  const all = instructions.map((instruction) => {
    const found = byOffset.get(instruction.offset);
    if (!found) return null;
    const stalls = Object.entries(found.stalls).sort((a, b) => b[1] - a[1]);
    const stalled = stalls.reduce((sum, [, cycles]) => sum + cycles, 0);
    return { ...found, stalls, stalled, cost: found.issues + stalled };
  });
  const byKey = new Map();
  let total = 0;
  let most = 0;
  all.forEach((cost, index) => {
    if (!cost) return;
    total += cost.cost;
    most = Math.max(most, cost.cost);
    const key = instructions[index].source;
    if (key !== 0) byKey.set(key, (byKey.get(key) ?? 0) + cost.cost);
  });
  return { all, byKey, total, most, mostOfKey: Math.max(0, ...byKey.values()) };
}

/** Registers by file, then by number. */
function registerOrder(a, b) {
  const files = ['R', 'UR', 'P', 'UP', 'B'];
  const split = (name) => /^([A-Z]+)(\d+)$/.exec(name) || [name, name, '0'];
  const [, fileA, numberA] = split(a);
  const [, fileB, numberB] = split(b);
  return files.indexOf(fileA) - files.indexOf(fileB) || numberA - numberB;
}

/** All registers that a function uses. */
function registersOf(picture) {
  const names = new Set();
  for (const i of picture.instructions) for (const list of [i.reads, i.writes, i.alive]) for (const name of list) names.add(name);
  for (const block of picture.blocks) for (const name of block.alive) names.add(name);
  return [...names].sort(registerOrder);
}

/** How many general-purpose registers are among these. */
function generalCount(names) {
  return names.filter((name) => name.startsWith('R')).length;
}
