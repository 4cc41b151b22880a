// What everything here is made of: elements, numbers as people read them, tables that sort. Texts of users only ever
// become text nodes.
const SVG = 'http://www.w3.org/2000/svg';
function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key.startsWith('on')) node.addEventListener(key.slice(2), value);
    else if (value !== undefined && value !== null && value !== false)
      node.setAttribute(key, value === true ? '' : value);
  }
  for (const child of children.flat())
    if (child !== null && child !== undefined) node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
const colour = i => `var(--c${i % 8})`;
const text = (tag, content, attributes) => el(tag, {dir: 'auto', ...attributes}, String(content));

// ---- Numbers ----
const finite = v => typeof v === 'number' && Number.isFinite(v);
function show(v) {
  if (v === null) return 'not finite';
  if (!finite(v)) return '–';
  const a = Math.abs(v);
  if (a !== 0 && (a >= 1e6 || a < 1e-3)) return Number(v.toPrecision(3)).toExponential().replace('e+', 'e');
  if (Number.isInteger(v)) return v.toLocaleString('en');
  return String(Number(v.toPrecision(a < 1 ? 4 : 5)));
}
const whole = v => finite(v) ? Math.round(v).toLocaleString('en') : '–';
const percent = v => finite(v) ? (100 * v).toFixed(1) + ' %' : '–';
function scaled(v, unit = '') {
  if (!finite(v)) return '–';
  for (const [size, letter] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']])
    if (Math.abs(v) >= size) return Number((v / size).toPrecision(3)) + ' ' + letter + unit;
  return Number(v.toPrecision(3)) + (unit ? ' ' + unit : '');
}
const bytes = v => scaled(v, 'B');
const seconds = s => s >= 100 ? whole(s) + ' s' :
    s >= 1                    ? s.toFixed(2) + ' s' :
                                (1e3 * s).toFixed(s < 0.1 ? 2 : 1) + ' ms';

// ---- Tables ----
// columns: {name, of: row => value, show: value => text, number}. A click on a head sorts.
function table(caption, columns, rows, sortable = true, tall = false) {
  const body = el('tbody');
  const render = list => body.replaceChildren(
      ...list.map(row => el('tr', {}, columns.map((c, j) => {
                    const cell = c.show ? c.show(c.of(row)) : c.of(row);
                    return el(
                        j ? 'td' : 'th',
                        {class: c.number ? 'number' : 'name', scope: j ? null : 'row', dir: c.number ? null : 'auto'},
                        cell instanceof Node ? cell : String(cell ?? '–'));
                  }))));
  let by = null, up = false;
  const heads = columns.map(c => {
    const head = el('th', {class: c.number ? 'number' : '', scope: 'col'});
    if (!sortable || rows.length < 3) {
      head.append(c.name);
      return head;
    }
    head.append(
        el('button', {
          type: 'button',
          onclick() {
            up = by === c ? !up : !c.number;
            by = c;
            heads.forEach(h => h.removeAttribute('aria-sort'));
            head.setAttribute('aria-sort', up ? 'ascending' : 'descending');
            render([...rows].sort((a, b) => {
              const x = c.of(a), y = c.of(b);
              return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
            }));
          }
        },
           c.name));
    return head;
  });
  render(rows);
  return el(
      'div', {class: tall ? 'scroll tall' : 'scroll', tabindex: 0, role: 'region', 'aria-label': caption},
      el('table', {}, el('caption', {}, caption), el('thead', {}, el('tr', {}, heads)), body));
}
// Of which of these runs `draw` shows something.
const choiceOfRun = (label, these, draw) => el(
    'div', {class: 'tools'},
    el('label', {}, label,
       el('select', {onchange() { draw(Number(this.value)); }}, these.map(i => el('option', {value: i}, names[i])))));
