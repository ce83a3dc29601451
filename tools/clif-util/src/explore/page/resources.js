// What kernels need of the machine, and how many warps are resident for that.

/** Threads of a warp. */
const WARP = 32;

/** Names of variants on the page: letters where there are two. */
function variantName(func, index) {
  const { name } = func.variants[index];
  return func.variants.length > 1 ? `${'AB'[index]}: ${name}` : name;
}

/** Counts that the picture says. */
function counts({ picture }) {
  const of = (purpose) => picture.instructions.filter((i) => i.purpose === purpose).length;
  return {
    alive: Math.max(0, ...picture.instructions.map((i) => generalCount(i.alive))),
    spills: of('spill'), reloads: of('reload'), copies: of('copy'),
    instructions: picture.instructions.length, blocks: picture.blocks.length,
  };
}

/** The table of resources, a column for each variant and one for what differs. */
function resourceTable(func) {
  const rows = [
    ['Instructions', (v, c) => c.instructions],
    ['Blocks', (v, c) => c.blocks],
    ['Instructions of innermost loops', (v) => v.resources?.loops.join(', ') || '–'],
    ['Registers of a thread', (v) => v.resources?.registers],
    ['Most registers alive at once', (v, c) => c.alive],
    ['Predicates', (v) => v.resources?.predicates],
    ['Uniform registers', (v) => v.resources?.uniform],
    ['Spills', (v, c) => c.spills],
    ['Reloads', (v, c) => c.reloads],
    ['Copies', (v, c) => c.copies],
    ['Bytes of spill slots', (v) => v.resources?.spill_bytes],
    ['Bytes of local memory', (v) => v.resources?.local_bytes],
    ['Bytes of shared memory', (v) => v.resources?.shared_bytes],
  ];
  const counted = func.variants.map((v) => counts(v));
  const isTwo = func.variants.length > 1;
  const shown = (value) => (typeof value === 'number' ? number(value) : value ?? '–');
  const body = rows.map(([title, of]) => {
    const values = func.variants.map((v, i) => of(v, counted[i]));
    const [a, b] = values;
    const change = typeof a === 'number' && typeof b === 'number' && a !== b ? `${b > a ? '+' : '−'}${number(Math.abs(b - a))}` : '';
    return element('tr', { class: change ? 'differs' : null }, element('th', { scope: 'row' }, title),
      ...values.map((value) => element('td', {}, shown(value))), isTwo ? element('td', {}, change) : null);
  });
  return element('table', {},
    element('caption', {}, func.kernel ? `Kernel ${func.name}` : `Function ${func.name}: no kernel, so registers and memory are those of who calls it`),
    element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, ''), ...func.variants.map((_, i) => element('th', { scope: 'col' }, variantName(func, i))), isTwo ? element('th', { scope: 'col' }, 'B against A') : null)),
    element('tbody', {}, ...body));
}

/** Warps that are resident with so many registers a thread and so many bytes of shared memory a block. */
function residentWarps(threads, registers, sharedBytes) {
  const { occupancy, register_step: step, shared_bytes: shared } = report.device;
  const table = occupancy[threads];
  const byRegisters = table[Math.min(table.length, Math.max(1, Math.ceil(registers / step))) - 1];
  const blockWarps = threads / WARP;
  return sharedBytes ? Math.min(byRegisters, Math.floor(shared / sharedBytes) * blockWarps) : byRegisters;
}

/** The chart of resident warps against registers, with a mark for each variant. */
function occupancyChart(func, threads) {
  const { occupancy, register_step: step, warps: most } = report.device;
  const table = occupancy[threads];
  const size = { width: narrow.matches ? 380 : 640, height: 280, left: 44, right: 16, top: 18, bottom: 42 };
  const last = table.length * step;
  const x = (registers) => size.left + (registers / last) * (size.width - size.left - size.right);
  const y = (warps) => size.height - size.bottom - (warps / most) * (size.height - size.top - size.bottom);
  const chart = drawing('svg', { class: 'chart', viewBox: `0 0 ${size.width} ${size.height}`, role: 'img',
    'aria-label': `Resident warps against registers of a thread, in blocks of ${threads} threads` });
  for (let warps = 0; warps <= most; warps += 16) {
    chart.append(drawing('line', { class: 'grid', x1: size.left, x2: size.width - size.right, y1: y(warps), y2: y(warps) }),
      drawing('text', { x: size.left - 6, y: y(warps) + 4, 'text-anchor': 'end' }, String(warps)));
  }
  for (let registers = 0; registers <= last; registers += 32) {
    chart.append(drawing('line', { class: 'grid', x1: x(registers), x2: x(registers), y1: y(0), y2: y(0) + 4 }),
      drawing('text', { x: x(registers), y: y(0) + 17, 'text-anchor': 'middle' }, String(registers)));
  }
  chart.append(drawing('text', { x: (size.left + size.width) / 2, y: size.height - 6, 'text-anchor': 'middle' }, 'registers of a thread'),
    drawing('text', { x: 6, y: 11 }, 'resident warps'));
  // The table holds from one step to the next: a staircase.
  const steps = table.map((warps, i) => `${i ? 'L' : 'M'}${x(i * step)} ${y(warps)}L${x((i + 1) * step)} ${y(warps)}`);
  chart.append(drawing('path', { class: 'staircase', d: steps.join('') }));
  func.variants.forEach(({ resources }, index) => {
    if (!resources) return;
    const warps = residentWarps(threads, resources.registers, resources.shared_bytes);
    const [px, py] = [x(resources.registers), y(warps)];
    // Different forms, in the chart and before their names: colour alone tells nothing to who does not see it.
    const form = (cx, cy) => (index ? `M${cx} ${cy - 7}L${cx + 7} ${cy}L${cx} ${cy + 7}L${cx - 7} ${cy}z` : `M${cx - 6} ${cy}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0z`);
    const name = func.variants.length > 1 ? `${'AB'[index]}: ` : '';
    const text = `${name}${resources.registers} registers, ${warps} warps resident`;
    // Names stand at the upper right, where no line ever is: many registers mean few warps.
    const nameY = size.top + 14 + index * 20;
    chart.append(drawing('g', { class: `kernel-mark variant-${index}` },
      drawing('title', {}, text),
      drawing('line', { x1: px, x2: px, y1: py, y2: y(0) }),
      drawing('path', { d: form(px, py) }),
      drawing('path', { d: form(size.width - 254, nameY - 4) }),
      drawing('text', { x: size.width - 240, y: nameY }, text)));
  });
  return chart;
}

/** Resources and occupancy of a function. */
function resources(func) {
  const chart = element('div', { class: 'chart-box' });
  const note = element('p', { class: 'dim' });
  const sizes = Object.keys(report.device.occupancy).map(Number);
  const draw = (threads) => {
    chart.replaceChildren(occupancyChart(func, threads));
    const shared = func.variants.filter(({ resources: r }) => r && residentWarps(threads, r.registers, r.shared_bytes) < residentWarps(threads, r.registers, 0));
    note.textContent = shared.length ? 'The mark stands below the line: shared memory allows fewer blocks than registers do.' : 'The line is what registers allow; the mark counts shared memory of the kernel too.';
  };
  const select = element('select', { id: 'threads', onchange: () => draw(Number(select.value)) },
    ...sizes.map((threads) => element('option', { value: threads, selected: threads === 256 }, String(threads))));
  draw(sizes.includes(256) ? 256 : sizes[0]);
  return element('div', { class: 'side-by-side' },
    element('div', { class: 'table-scroll', tabindex: '0', role: 'group', 'aria-label': 'Table of resources' }, resourceTable(func)),
    element('div', { class: 'wide' }, element('p', {}, element('label', { for: 'threads' }, 'Threads of a block '), select), chart, note));
}
