// The report, and how elements of the page are made.

'use strict';

const report = JSON.parse(document.getElementById('report').textContent);

const SVG = 'http://www.w3.org/2000/svg';

/** Gives an element its attributes and children. `false`, `null` and `undefined` leave an attribute out. */
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === false || value === null || value === undefined) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** An element of HTML. */
function element(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** An element of SVG. */
function drawing(name, attributes, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/** Text as it may stand in markup. Thousands of lines are put into the page as one text, since that is several times faster than element by element. */
function escaped(text) {
  return String(text).replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);
}

/** A number with thin spaces between thousands. */
function number(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

/** An offset as the disassembler writes it. */
function hexadecimal(value) {
  return value.toString(16).padStart(4, '0');
}

/** A share of a whole as a percentage. */
function percent(part, whole) {
  if (!whole) return '0 %';
  const share = (100 * part) / whole;
  return `${share >= 10 || share === 0 ? share.toFixed(0) : share.toFixed(1)} %`;
}

/** A counted thing: `1 line`, `2 lines`. */
function counted(count, thing) {
  return `${number(count)} ${thing}${count === 1 ? '' : 's'}`;
}

/** A choice of one of several, as buttons that say which is pressed. `options` are [value, title]. */
function choice(label, options, current, chosen) {
  const buttons = options.map(([value, title]) =>
    element('button', { type: 'button', 'aria-pressed': String(value === current), onclick: () => {
      for (const button of buttons) button.setAttribute('aria-pressed', String(button === buttons[options.findIndex((o) => o[0] === value)]));
      chosen(value);
    } }, title));
  return element('span', { class: 'buttons', role: 'group', 'aria-label': label }, ...buttons);
}
