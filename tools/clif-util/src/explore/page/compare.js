// Two variants side by side, assembly against assembly: which instructions are the same, which differ in operands, which only one has.

/** Most pairs of lines that are compared; above that only what is equal at the start and at the end is matched. */
const MOST_PAIRS = 16_000_000;

/** Pairs of indices of equal tokens in two lists, as many as there can be in order: the longest common subsequence by dynamic programming. */
function matches(a, b) {
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const pairs = [];
  for (let i = 0; i < start; i += 1) pairs.push([i, i]);
  const n = a.length - start - end;
  const m = b.length - start - end;
  if (n > 0 && m > 0 && n * m <= MOST_PAIRS) {
    // lengths[i][j]: longest of a[i..] and b[j..].
    const width = m + 1;
    const lengths = new Uint16Array((n + 1) * width);
    for (let i = n - 1; i >= 0; i -= 1) {
      for (let j = m - 1; j >= 0; j -= 1) {
        const at = i * width + j;
        lengths[at] = a[start + i] === b[start + j]
          ? lengths[at + width + 1] + 1
          : Math.max(lengths[at + width], lengths[at + 1]);
      }
    }
    for (let i = 0, j = 0; i < n && j < m;) {
      if (a[start + i] === b[start + j]) {
        pairs.push([start + i, start + j]);
        i += 1;
        j += 1;
      } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) i += 1;
      else j += 1;
    }
  }
  for (let i = end; i > 0; i -= 1) pairs.push([a.length - i, b.length - i]);
  return pairs;
}

/** What rows are matched by: the operation and the place in the source. Registers differ after any change, so they do not count. */
function token(row, picture) {
  if (row.instruction === null) return row.text.trim().replace(/\d+/g, '');
  return `${operationOf(picture.instructions[row.instruction].text)} ${row.key}`;
}

/** The rows of two variants with fillers, so that matched ones stand at the same height, and for each row its mark. */
function aligned(first, second) {
  const [a, b] = [first, second].map(({ columns: c, variant }) => {
    const { rows } = c.find((column) => column.id === 'control');
    return { rows, picture: variant.picture, tokens: rows.map((row) => token(row, variant.picture)), out: [], marks: [] };
  });
  const full = (side, row) => {
    if (row.instruction === null) return '';
    const i = side.picture.instructions[row.instruction];
    return `${i.text} ${i.control}`;
  };
  const filler = { filler: true, key: 0, text: '', instruction: null, block: null };
  const only = (side, other, row) => {
    side.out.push(row);
    side.marks.push(row.instruction === null ? ' ' : side === a ? '−' : '+');
    other.out.push(filler);
    other.marks.push(' ');
  };
  let [i, j] = [0, 0];
  for (const [x, y] of [...matches(a.tokens, b.tokens), [a.rows.length, b.rows.length]]) {
    // Lines between two matches face each other where both sides have some: that is a replacement.
    while (i < x && j < y && a.rows[i].instruction !== null && b.rows[j].instruction !== null) {
      a.out.push(a.rows[i]);
      a.marks.push('−');
      b.out.push(b.rows[j]);
      b.marks.push('+');
      i += 1;
      j += 1;
    }
    for (; i < x; i += 1) only(a, b, a.rows[i]);
    for (; j < y; j += 1) only(b, a, b.rows[j]);
    if (x === a.rows.length) break;
    const mark = full(a, a.rows[x]) === full(b, b.rows[y]) ? ' ' : '~';
    a.out.push(a.rows[x]);
    a.marks.push(mark);
    b.out.push(b.rows[y]);
    b.marks.push(mark);
    i = x + 1;
    j = y + 1;
  }
  return [a, b].map((side) => ({ rows: side.out, marks: side.marks }));
}

/** Lets two columns of the same height scroll together. */
function scrollTogether(a, b) {
  const follow = (from, to) => from.scroll.addEventListener('scroll', () => {
    if (to.scroll.scrollTop !== from.scroll.scrollTop) to.scroll.scrollTop = from.scroll.scrollTop;
  });
  follow(a, b);
  follow(b, a);
}
