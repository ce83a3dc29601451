// The graph of machine blocks as a drawing: control flow with convergence barriers, or dominators.

/** Which of both is shown. */
const graphView = { layout: 'flow' };

/** The lines of text in a block's box. */
function blockTexts(block, index) {
  const more = [block.depth ? `loop depth ${block.depth}` : null, block.divergent ? 'divergent' : null].filter(Boolean);
  return [`L${index}`, `${counted(block.count, 'instruction')}`, `${counted(block.cycles, 'cycle')}`, more.join(', ')];
}

/** A block's box. */
function blockNode(block, index, { x, y }, variantIndex) {
  const texts = blockTexts(block, index);
  const left = x - NODE.width / 2;
  const go = () => goTo(variantIndex, (row) => row.block === index && row.instruction === null);
  return drawing('g', {
    class: `node${block.divergent ? ' divergent' : ''}`, tabindex: '0', role: 'button', 'data-block': index,
    'aria-label': `${texts.filter(Boolean).join(', ')}: go to its assembly`,
    onclick: go,
    onkeydown: (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      go();
    },
  },
  drawing('rect', { x: left, y, width: NODE.width, height: NODE.height, rx: 5 }),
  // Divergent blocks have a second frame: colour alone tells nothing to who does not see it.
  block.divergent ? drawing('rect', { class: 'inner', x: left + 3, y: y + 3, width: NODE.width - 6, height: NODE.height - 6, rx: 3 }) : null,
  drawing('text', { class: 'name', x: left + 9, y: y + 18 }, texts[0]),
  drawing('text', { x: left + NODE.width - 9, y: y + 18, 'text-anchor': 'end' }, texts[1]),
  drawing('text', { x: left + 9, y: y + 34 }, texts[2]),
  drawing('text', { x: left + 9, y: y + 49 }, texts[3]));
}

/** The drawing of a variant's graph. */
function graphChart(picture, variantIndex) {
  const { nodes, edges, barriers, width, height } = graphView.layout === 'flow' ? flowLayout(picture) : dominatorLayout(picture);
  const arrow = `arrow-${variantIndex}`;
  const head = (id, kind) => drawing('marker', { id, viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, orient: 'auto', markerUnits: 'userSpaceOnUse' },
    drawing('path', { class: kind, d: 'M0 0L8 4L0 8z' }));
  return drawing('svg', { class: 'graph', width, height, role: 'group', 'aria-label': graphView.layout === 'flow' ? 'Control flow between blocks' : 'Tree of dominators' },
    drawing('defs', {}, head(arrow, 'head'), head(`${arrow}-meet`, 'head-meet')),
    ...edges.map(({ from, to, d, kind }) => drawing('path', { class: `edge ${kind}`, d, 'marker-end': `url(#${arrow})`, 'data-edge': `${from} ${to}` },
      drawing('title', {}, kind === 'tree' ? `L${from} dominates L${to}` : `L${from} → L${to}${kind === 'back' ? ' (back)' : ''}`))),
    ...barriers.map(({ name, from, to, d, x, y }) => drawing('g', { class: 'barrier' },
      drawing('path', { d, 'marker-end': `url(#${arrow}-meet)` }, drawing('title', {}, `BSSY ${name} in L${from}, lanes meet in L${to}`)),
      drawing('text', { x: x - 4, y, 'text-anchor': 'end' }, name))),
    ...picture.blocks.map((block, index) => blockNode(block, index, nodes[index], variantIndex)));
}

/** The graph of a variant. */
function graph({ variant }, variantIndex) {
  const scroll = element('div', { class: 'graph-scroll', tabindex: '0', role: 'group', 'aria-label': 'Graph of blocks' });
  const draw = () => {
    scroll.replaceChildren(graphChart(variant.picture, variantIndex));
    // A wide graph is shown with its first block, once it has its place on the page.
    requestAnimationFrame(() => {
      const x = Number(scroll.querySelector('.node rect')?.getAttribute('x') ?? 0);
      if (x + NODE.width > scroll.clientWidth) scroll.scrollLeft = x + NODE.width / 2 - scroll.clientWidth / 2;
    });
  };
  draw();
  return element('div', {},
    element('p', {}, choice('What the edges are', [['flow', 'Control flow'], ['tree', 'Dominators']], graphView.layout, (value) => { graphView.layout = value; draw(); })),
    scroll);
}

/** What the marks of a graph mean. */
function graphLegend() {
  return element('p', { class: 'legend' }, 'A double frame: lanes may be elsewhere while the block runs. Dashed at the left: from where a convergence barrier is set (BSSY) to where its lanes meet (BSYNC). '
    + 'At the right: edges back to the start of a loop. Cycles are those of one warp alone. Click a block to see its assembly.');
}
