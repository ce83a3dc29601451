// Where the blocks of a graph and its edges are drawn: layers for control flow, a tree for dominators.
//
// Layers: an edge to a block that is not later in reverse postorder is a back edge. A block's layer is the longest way to it over the other edges. Edges over
// several layers get a point in each. Layers are ordered by the mean place of neighbours, to and fro. Back edges run in lanes at the right.

const NODE = { width: 150, height: 58 };
const GAP = { x: 26, y: 54, point: 14 };
const LANE = { back: 14, barrier: 40 };

/** The blocks that are reached from the first, in reverse postorder, the others behind them. */
function reversePostorder(successors) {
  const seen = new Array(successors.length).fill(false);
  const order = [];
  for (let root = 0; root < successors.length; root += 1) {
    if (seen[root]) continue;
    const part = [];
    const stack = [[root, 0]];
    seen[root] = true;
    while (stack.length) {
      const top = stack[stack.length - 1];
      const next = successors[top[0]][top[1]];
      top[1] += 1;
      if (next === undefined) {
        part.push(top[0]);
        stack.pop();
      } else if (!seen[next]) {
        seen[next] = true;
        stack.push([next, 0]);
      }
    }
    order.push(...part.reverse());
  }
  return order;
}

/** The layer of each block, and which edges go back. */
function layersOf(successors) {
  const order = reversePostorder(successors);
  const place = [];
  order.forEach((block, index) => { place[block] = index; });
  const layer = new Array(successors.length).fill(0);
  const forward = [];
  const back = [];
  for (const block of order) {
    for (const next of new Set(successors[block])) {
      if (place[next] <= place[block]) back.push([block, next]);
      else {
        forward.push([block, next]);
        layer[next] = Math.max(layer[next], layer[block] + 1);
      }
    }
  }
  return { order, layer, forward, back };
}

/** Blocks and the points of long edges, layer by layer, with who hangs on whom. */
function chains({ order, layer, forward }, count) {
  const items = [];
  for (let block = 0; block < count; block += 1) items.push({ block, layer: layer[block], width: NODE.width, above: [], below: [] });
  const paths = forward.map(([from, to]) => {
    const path = [from];
    for (let at = layer[from] + 1; at < layer[to]; at += 1) {
      items.push({ block: null, layer: at, width: GAP.point, above: [], below: [] });
      path.push(items.length - 1);
    }
    path.push(to);
    for (let i = 1; i < path.length; i += 1) {
      items[path[i - 1]].below.push(path[i]);
      items[path[i]].above.push(path[i - 1]);
    }
    return path;
  });
  const layers = [];
  const sequence = [...order, ...items.keys()].filter((item, index, all) => all.indexOf(item) === index);
  for (const item of sequence) (layers[items[item].layer] ??= []).push(item);
  return { items, paths, layers };
}

/** Orders each layer by the mean place of the neighbours above, then below, some times over. */
function order(layers, items) {
  const settle = (list, side) => {
    const mean = (item) => {
      const near = items[item][side];
      return near.length ? near.reduce((sum, other) => sum + items[other].slot, 0) / near.length : items[item].slot;
    };
    const means = new Map(list.map((item) => [item, mean(item)]));
    list.sort((a, b) => means.get(a) - means.get(b));
    list.forEach((item, slot) => { items[item].slot = slot; });
  };
  for (const list of layers) list.forEach((item, slot) => { items[item].slot = slot; });
  for (let round = 0; round < 6; round += 1) {
    layers.slice(1).forEach((list) => settle(list, 'above'));
    layers.slice(0, -1).reverse().forEach((list) => settle(list, 'below'));
  }
  layers.slice(1).forEach((list) => settle(list, 'above'));
}

/** How often places are mended. Edges over many layers need many rounds until they are straight. */
const ROUNDS = 40;

/** Gives each item of the layers its place from the left: near the mean of its neighbours, never over another one. */
function place(layers, items) {
  for (const list of layers) {
    let x = 0;
    for (const item of list) {
      items[item].x = x + items[item].width / 2;
      x += items[item].width + GAP.x;
    }
  }
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const list of round % 2 ? [...layers].reverse() : layers) {
      const wanted = list.map((item) => {
        const near = [...items[item].above, ...items[item].below];
        return near.length ? near.reduce((sum, other) => sum + items[other].x, 0) / near.length : items[item].x;
      });
      const apart = (i) => (items[list[i]].width + items[list[i - 1]].width) / 2 + GAP.x;
      // Pushed from the left and pushed from the right both keep the distances, and so does their mean.
      const left = [];
      wanted.forEach((x, i) => left.push(i ? Math.max(x, left[i - 1] + apart(i)) : x));
      const right = [...wanted];
      for (let i = wanted.length - 2; i >= 0; i -= 1) right[i] = Math.min(wanted[i], right[i + 1] - apart(i + 1));
      list.forEach((item, i) => { items[item].x = (left[i] + right[i]) / 2; });
    }
  }
}

/** A way down through points with level ends. */
function curve(points) {
  return points.map(([x, y], i) => {
    if (!i) return `M${x.toFixed(1)} ${y}`;
    const [fromX, fromY] = points[i - 1];
    const middle = (fromY + y) / 2;
    return `C${fromX.toFixed(1)} ${middle} ${x.toFixed(1)} ${middle} ${x.toFixed(1)} ${y}`;
  }).join('');
}

/** A way from below one block to above another by a lane at the side. */
function detour(from, to, lane, offset, nudge) {
  const below = from.y + NODE.height + 10 + nudge;
  const above = to.y - 12 - nudge;
  const [start, end] = [from.x + offset, to.x + offset];
  return `M${start} ${from.y + NODE.height}L${start} ${below}L${lane} ${below}L${lane} ${above}L${end} ${above}L${end} ${to.y}`;
}

/** Control flow in layers: places of blocks, paths of edges, of back edges and of convergence barriers. */
function flowLayout(picture) {
  const { blocks } = picture;
  const layered = layersOf(blocks.map((block) => block.successors));
  const { items, paths, layers } = chains(layered, blocks.length);
  order(layers, items);
  place(layers, items);
  const arcs = blocks.flatMap((block, from) => block.sets.map(([name, to]) => ({ name, from, to })).filter(({ to }) => to !== null));
  // Short ones run inside of long ones here too.
  const height = ({ from, to }) => Math.abs(layered.layer[to] - layered.layer[from]);
  arcs.sort((a, b) => height(a) - height(b));
  const least = Math.min(...items.map((item) => item.x - item.width / 2));
  const shift = 12 + arcs.length * LANE.barrier - least;
  const top = 24;
  for (const item of items) {
    item.x += shift;
    item.y = top + item.layer * (NODE.height + GAP.y);
  }
  const right = Math.max(...items.map((item) => item.x + item.width / 2));
  const nodes = blocks.map((_, index) => items[index]);
  const edges = paths.map((path) => {
    const points = path.flatMap((item, i) => {
      const { x, y } = items[item];
      if (i === 0) return [[x, y + NODE.height]];
      return i === path.length - 1 ? [[x, y]] : [[x, y], [x, y + NODE.height]];
    });
    return { from: path[0], to: path[path.length - 1], d: curve(points), kind: 'forward' };
  });
  // Short loops run inside of long ones.
  const span = ([from, to]) => nodes[from].y - nodes[to].y;
  [...layered.back].sort((a, b) => span(a) - span(b)).forEach(([from, to], lane) => {
    const at = right + 14 + lane * LANE.back;
    edges.push({ from, to, d: detour(nodes[from], nodes[to], at, NODE.width / 3, (lane % 4) * 3), kind: 'back' });
  });
  const barriers = arcs.map(({ name, from, to }, lane) => {
    const x = shift + least - 12 - lane * LANE.barrier;
    const d = detour(nodes[from], nodes[to], x, -NODE.width / 3, (lane % 4) * 3);
    return { name, from, to, d, x, y: (nodes[from].y + nodes[to].y + NODE.height) / 2 };
  });
  return {
    nodes, edges, barriers,
    width: right + 28 + layered.back.length * LANE.back,
    height: top + layers.length * (NODE.height + GAP.y) - GAP.y / 2,
  };
}

/** The tree of dominators: a block stands below the last one that every way to it passes. */
function dominatorLayout(picture) {
  const { blocks } = picture;
  const children = blocks.map(() => []);
  const roots = [];
  blocks.forEach((block, index) => (block.dominator === null ? roots : children[block.dominator]).push(index));
  const nodes = blocks.map(() => ({ x: 0, y: 0 }));
  let next = 12 + NODE.width / 2;
  let deepest = 0;
  // Parents stand in the middle of their children, so those come first; without recursion, since trees may be deep.
  const stack = roots.reverse().map((block) => [block, 0, false]);
  while (stack.length) {
    const [block, depth, isDone] = stack.pop();
    const below = children[block];
    if (!isDone && below.length) {
      stack.push([block, depth, true], ...[...below].reverse().map((child) => [child, depth + 1, false]));
      continue;
    }
    nodes[block].y = 24 + depth * (NODE.height + GAP.y);
    deepest = Math.max(deepest, depth);
    if (below.length) nodes[block].x = (nodes[below[0]].x + nodes[below[below.length - 1]].x) / 2;
    else {
      nodes[block].x = next;
      next += NODE.width + GAP.x;
    }
  }
  const edges = blocks.flatMap((block, to) => (block.dominator === null ? [] : [{
    from: block.dominator, to, kind: 'tree',
    d: curve([[nodes[block.dominator].x, nodes[block.dominator].y + NODE.height], [nodes[to].x, nodes[to].y]]),
  }]));
  return { nodes, edges, barriers: [], width: next - NODE.width / 2, height: 24 + (deepest + 1) * (NODE.height + GAP.y) - GAP.y / 2 };
}
