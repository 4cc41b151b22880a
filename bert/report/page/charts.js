// Curves over steps: axes, smoothing, a logarithmic scale, the values under the pointer.
// ---- Axes ----
function ticks(low, high, count, log) {
  if (log) {
    const all = [], first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    const step = Math.max(1, Math.ceil((last - first) / count));
    for (let e = first; e <= last; e += step)
      for (const m of last - first <= 2 ? [1, 2, 5] : [1]) {
        const v = m * 10 ** e;
        if (v >= low && v <= high) all.push(v);
      }
    return all.length ? all : [low, high];
  }
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw * 0.999);
  const all = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; ++k)
    all.push(Number((k * step).toPrecision(12)));
  return all;
}
function bounds(values, log) {
  let low = Infinity, high = -Infinity;
  for (const v of values)
    if (finite(v) && (!log || v > 0)) {
      if (v < low) low = v;
      if (v > high) high = v;
    }
  if (low > high) return log ? [0.1, 1] : [0, 1];
  // Between values that differ in their last bits there is no room for ticks.
  if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high))) {
    const by = log ? 1 : Math.abs(low) * 0.1 || 1;
    return log ? [low / 2, low * 2] : [low - by, high + by];
  }
  return log ? [low, high] : [low - 0.04 * (high - low), high + 0.04 * (high - low)];
}

// ---- Curves ----
const view = {
  smoothing: 0,
  log: false,
  hidden: new Set(),
  charts: []
};
function smoothed(y, weight) {
  let sum = 0, mass = 0;
  return y.map(v => {
    if (!finite(v)) return v;
    sum = sum * weight + v * (1 - weight);
    mass = mass * weight + 1 - weight;
    return sum / mass;
  });
}
function nearest(x, at) {
  let low = 0, high = x.length - 1;
  while (low < high) {
    const mid = (low + high) >> 1;
    if (x[mid] < at) low = mid + 1;
    else high = mid;
  }
  return low > 0 && at - x[low - 1] <= x[low] - at ? low - 1 : low;
}
// series: {name, run, x, y, colour, dash}
function chart(title, series, format = show) {
  const H = 210, M = {left: 58, right: 14, top: 10, bottom: 24};
  const legend = el('ul', {class: 'legend'}), where = el('output', {class: 'soft', 'aria-live': 'polite'});
  const picture = svg(
      'svg',
      {height: H, tabindex: 0, role: 'img', 'aria-label': `${title}. The left and right arrow keys read the values.`});
  const figure = el('figure', {}, el('figcaption', {dir: 'auto'}, title), picture, legend, where);
  let shown = [], toX, fromX, toY, at = null, marks = null;
  function readout() {
    marks?.remove();
    marks = null;
    legend.replaceChildren(...shown.map(s => {
      const i = at === null ? s.x.length - 1 : nearest(s.x, at);
      const swatch =
          el('span', {class: s.dash ? 'swatch dash' : 'swatch', style: `background:${s.colour};--of:${s.colour}`});
      return el('li', {}, swatch, text('span', s.name), ' ', el('b', {}, s.x.length ? format(s.line[i]) : '–'));
    }));
    where.textContent = at === null ? '' : `step ${at.toLocaleString('en')}`;
    if (at === null) return;
    marks = svg('g', {}, svg('line', {class: 'cursor', x1: toX(at), x2: toX(at), y1: M.top, y2: H - M.bottom}));
    for (const s of shown) {
      const i = nearest(s.x, at), v = s.line[i];
      if (s.x.length && finite(v) && (!view.log || v > 0))
        marks.append(svg('circle', {cx: toX(s.x[i]), cy: toY(v), r: 3.5, fill: s.colour}));
    }
    picture.append(marks);
  }
  function draw() {
    const W = Math.max(240, picture.clientWidth || 520);
    picture.setAttribute('viewBox', `0 0 ${W} ${H}`);
    shown = series.filter(s => !view.hidden.has(s.run))
                .map(s => ({...s, line: view.smoothing ? smoothed(s.y, view.smoothing) : s.y}));
    const log = view.log && shown.some(s => s.y.some(v => v > 0));
    const [x0, x1] = (() => {
      const [a, b] = bounds(shown.flatMap(s => s.x.length ? [s.x[0], s.x[s.x.length - 1]] : []));
      return shown.some(s => s.x.length > 1) ? [a + (b - a) * 0.04 / 1.08, b - (b - a) * 0.04 / 1.08] : [a, b];
    })();
    const [y0, y1] = bounds(
        (function*() {
          for (const s of shown) {
            yield* s.line;
            if (view.smoothing) yield* s.y;
          }
        })(),
        log);
    toX = v => M.left + (v - x0) / (x1 - x0) * (W - M.left - M.right);
    fromX = p => x0 + (p - M.left) / (W - M.left - M.right) * (x1 - x0);
    const f = log ? Math.log : v => v;
    toY = v => H - M.bottom - (f(v) - f(y0)) / (f(y1) - f(y0)) * (H - M.top - M.bottom);
    const parts = [];
    for (const v of ticks(y0, y1, 5, log))
      parts.push(
          svg('line', {class: 'axis', x1: M.left, x2: W - M.right, y1: toY(v), y2: toY(v)}),
          svg('text', {x: M.left - 6, y: toY(v) + 4, 'text-anchor': 'end'}, format(v)));
    for (const v of ticks(x0, x1, W < 400 ? 3 : 6))
      if (Number.isInteger(v)) parts.push(svg('text', {x: toX(v), y: H - 8, 'text-anchor': 'middle'}, scaled(v)));
    const path = (x, y) => {
      let d = '', pen = false;
      const lone = [];
      y.forEach((v, i) => {
        const ok = finite(v) && (!log || v > 0);
        if (ok) {
          d += `${pen ? 'L' : 'M'}${toX(x[i]).toFixed(1)} ${toY(v).toFixed(1)}`;
          if (!pen && !(finite(y[i + 1]) && (!log || y[i + 1] > 0))) lone.push(i);
        }
        pen = ok;
      });
      return [d, lone];
    };
    for (const s of shown) {
      const line =
          {fill: 'none', stroke: s.colour, 'stroke-linejoin': 'round', 'stroke-dasharray': s.dash ? '5 4' : null};
      if (view.smoothing) parts.push(svg('path', {...line, d: path(s.x, s.y)[0], opacity: 0.3}));
      const [d, lone] = path(s.x, s.line);
      parts.push(svg('path', {...line, d, 'stroke-width': s.x.length > 600 ? 1 : 1.7}));
      for (const i of lone) parts.push(svg('circle', {cx: toX(s.x[i]), cy: toY(s.line[i]), r: 3, fill: s.colour}));
      s.y.forEach((v, i) => {
        if (!finite(v))
          parts.push(
              svg('text',
                  {x: toX(s.x[i]), y: M.top + 8, 'text-anchor': 'middle', style: `fill:${s.colour};font-weight:700`},
                  '×', svg('title', {}, `step ${s.x[i]}: not finite`)));
      });
    }
    marks = null;
    picture.replaceChildren(...parts);
    readout();
  }
  const move = step => {
    const all = [...new Set(shown.flatMap(s => s.x))].sort((a, b) => a - b);
    if (!all.length) return;
    const i = at === null ? (step > 0 ? -1 : all.length) : nearest(all, at);
    at = all[Math.min(all.length - 1, Math.max(0, i + step))];
    readout();
  };
  picture.addEventListener('pointermove', event => {
    const box = picture.getBoundingClientRect(),
          v = fromX((event.clientX - box.left) * (picture.viewBox.baseVal.width / box.width));
    let best = null;
    for (const s of shown)
      if (s.x.length) {
        const x = s.x[nearest(s.x, v)];
        if (best === null || Math.abs(x - v) < Math.abs(best - v)) best = x;
      }
    if (best !== at) {
      at = best;
      readout();
    }
  });
  picture.addEventListener('pointerleave', () => {
    at = null;
    readout();
  });
  picture.addEventListener('blur', () => {
    at = null;
    readout();
  });
  picture.addEventListener('keydown', event => {
    const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, End: 1e9, Home: -1e9}[event.key];
    if (by) {
      event.preventDefault();
      move(by);
    }
  });
  view.charts.push(draw);
  new ResizeObserver(draw).observe(figure);
  return figure;
}
