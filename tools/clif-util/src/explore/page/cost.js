// What a launch spent where: the dearest instructions, and the reasons for which warps waited.

/** Rows of the table of dear instructions. */
const DEAREST = 10;

/** The dearest instructions of a variant. */
function dearest({ variant, costs: cost }, variantIndex) {
  const { instructions } = variant.picture;
  const order = cost.all
    .map((spent, index) => ({ spent, index }))
    .filter(({ spent }) => spent)
    .sort((a, b) => b.spent.cost - a.spent.cost)
    .slice(0, DEAREST);
  const rows = order.map(({ spent, index }) => {
    const [reason, cycles] = spent.stalls[0] ?? ['–', 0];
    const go = () => goTo(variantIndex, (row) => row.instruction === index);
    return element('tr', { 'data-key': instructions[index].source || null },
      element('td', {}, element('button', { type: 'button', class: 'link', onclick: (event) => { event.stopPropagation(); go(); } }, hexadecimal(spent.offset))),
      element('td', {}, percent(spent.cost, cost.total)), element('td', { class: 'operation' }, instructions[index].text),
      element('td', {}, number(spent.issues)), element('td', {}, number(spent.stalled)),
      element('td', {}, cycles ? `${reason} (${percent(cycles, spent.stalled)})` : '–'));
  });
  return element('table', { class: 'dearest' },
    element('caption', {}, `The ${rows.length} dearest instructions`),
    element('thead', {}, element('tr', {}, ...['At', 'Share', 'Instruction', 'Issues', 'Cycles waited', 'Largest reason'].map((title) => element('th', { scope: 'col' }, title)))),
    element('tbody', {}, ...rows));
}

/** The sums by reason. */
function reasons({ costs: cost }) {
  const sums = new Map([['issued', 0]]);
  for (const spent of cost.all) {
    if (!spent) continue;
    sums.set('issued', sums.get('issued') + spent.issues);
    for (const [reason, cycles] of spent.stalls) sums.set(reason, (sums.get(reason) ?? 0) + cycles);
  }
  const order = [...sums].sort((a, b) => b[1] - a[1]);
  return element('table', { class: 'reasons' },
    element('caption', {}, 'Cycles of all warps by what they did'),
    element('thead', {}, element('tr', {}, ...['Reason', 'Cycles', 'Share', ''].map((title) => element('th', { scope: 'col' }, title)))),
    element('tbody', {}, ...order.map(([reason, cycles]) => element('tr', { class: reason === 'issued' ? 'issued' : null },
      element('th', { scope: 'row' }, reason), element('td', {}, number(cycles)), element('td', {}, percent(cycles, cost.total)),
      element('td', { class: 'bar' }, element('i', { style: `width:${(100 * cycles) / cost.total}%` }))))));
}

/** The launch, as far as it ran in this variant. */
function launchCost(shown, variantIndex) {
  const { kernel, cycles } = report.profile;
  if (!shown.costs) {
    return element('p', {}, `The profile of ${kernel} is of other code than this variant of ${shown.func.name}: its instructions are not at these offsets.`);
  }
  return element('div', {},
    element('p', {}, `Kernel ${kernel}: ${counted(cycles, 'cycle')} from start to end; all warps together spent ${number(shown.costs.total)} in ${shown.func.name}, each an issue or a wait.`),
    element('div', { class: 'side-by-side' },
      element('div', { class: 'table-scroll', tabindex: '0', role: 'group', 'aria-label': 'Dearest instructions' }, dearest(shown, variantIndex)),
      element('div', { class: 'table-scroll', tabindex: '0', role: 'group', 'aria-label': 'Reasons' }, reasons(shown))));
}
