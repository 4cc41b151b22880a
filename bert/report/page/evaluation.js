// How good the model is: figures with intervals, classes, calibration, the rows that it got wrong.
function whiskers(name, list) {
  const values = list.flatMap(({one}) => [one.value, ...(one.interval ?? [])]).filter(finite);
  const W = 300, H = 18 * list.length + 20, [a, b] = bounds(values), at = v => 10 + (v - a) / (b - a) * (W - 20);
  const picture = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': name, style: 'max-width:300px'});
  list.forEach(({one, i}, k) => {
    const y = 9 + 18 * k, stroke = colour(many ? i : 0);
    if (one.interval)
      picture.append(
          svg('line', {x1: at(one.interval[0]), x2: at(one.interval[1]), y1: y, y2: y, stroke, 'stroke-width': 2}));
    if (finite(one.value)) picture.append(svg('circle', {cx: at(one.value), cy: y, r: 4, fill: stroke}));
  });
  for (const v of ticks(a, b, 4)) picture.append(svg('text', {x: at(v), y: H - 2, 'text-anchor': 'middle'}, show(v)));
  return picture;
}
(() => {
  if (!runs.some(r => r.results.length || r.evaluation.kind || r.evaluation.classes)) return;
  const node = section('evaluation', 'Evaluation');
  const metrics = [...new Set(runs.flatMap(r => r.results.map(one => one.name)))].filter(n => n !== 'global_step');
  const rows = metrics.flatMap(
      name => runs.map((run, i) => ({name, i, one: run.results.find(o => o.name === name)})).filter(r => r.one));
  const range = r => r.one.interval ? `${show(r.one.interval[0])} to ${show(r.one.interval[1])}` : '–';
  const columns = [
    {name: 'figure', of: r => r.name.replace(/^eval_/, '').replaceAll('_', ' ')},
    {name: 'value', of: r => r.one.value, show, number: true}, {name: '95 % interval', of: range}
  ];
  if (many) columns.splice(1, 0, {name: 'run', of: r => names[r.i]});
  const intervals = rows.some(r => r.one.interval);
  const pictures = metrics.map(name => [name, rows.filter(r => r.name === name)])
                       .filter(([, list]) => list.length > 1 || list.some(r => r.one.interval));
  if (rows.length)
    node.append(
        el('div', {class: 'pair'}, table('Figures of the best model', columns, rows, many),
           el('div', {},
              pictures.slice(0, 8).map(
                  ([name, list]) =>
                      el('div', {}, el('div', {class: 'soft'}, name.replace(/^eval_/, '').replaceAll('_', ' ')),
                         whiskers(name, list))))));
  if (intervals)
    node.append(
        el('p', {class: 'soft'},
           `Intervals are of the bootstrap: the rows are drawn with replacement, up to ${
               Math.max(...runs.map(r => r.evaluation.intervals?.resamples ?? 0))
                   .toLocaleString('en')} times. They say how much chance is in the rows, not in the training.`));
  const detailed = runs.map((_, i) => i).filter(i => runs[i].evaluation.kind || runs[i].evaluation.classes?.length);
  if (!detailed.length) return;
  const place = el('div');
  const fillPlace = i => place.replaceChildren(...details(runs[i].evaluation).filter(Boolean));
  if (many) node.append(choiceOfRun('Rows of', detailed, fillPlace));
  node.append(place);
  fillPlace(detailed[0]);
})();

function details(e) {
  const list = [];
  if (e.given)
    list.push(
        el('p', {class: 'soft'},
           `What follows, and the intervals, are of ${whole(e.rows)} rows, evenly spread over the ${
               whole(e.given)} of the file.`));
  if (e.confusion && e.confusion.length)
    list.push(
        el('h3', {}, 'Confusion'),
        el('p', {class: 'soft'},
           e.labels.length <= 20 ? 'Rows: the true class. Columns: the predicted one. ' +
                   'The stronger the colour, the larger the share of the row.' :
                                   'Rows: the true class. Columns: the predicted one, in the same order.'),
        matrix(e));
  if (e.confused?.length && e.labels.length > 6)
    list.push(table(
        'What is most often taken for what',
        [
          {name: 'true', of: c => c.label}, {name: 'predicted', of: c => c.prediction},
          {name: e.kind === 'words' ? 'words' : 'rows', of: c => c.rows, show: whole, number: true}
        ],
        e.confused));
  if (e.scatter) list.push(el('h3', {}, 'True and predicted'), scatter(e.scatter));
  const side = [];
  if (e.classes?.length)
    side.push(
        el('div', {}, el('h3', {}, 'Classes'),
           table(
               'Each class',
               [
                 {name: 'class', of: c => c.name},
                 ...['precision', 'recall', 'f1'].map(
                     k => ({name: k, of: c => c[k], show: v => v.toFixed(3), number: true})),
                 {name: 'rows', of: c => c.support, show: whole, number: true}
               ],
               e.classes, true, e.classes.length > 12)));
  if (e.lengths?.length) {
    const error = e.lengths[0].error !== undefined;
    side.push(
        el('div', {}, el('h3', {}, 'Lengths'),
           table(
               e.kind === 'words' ? 'Words by the number of words in their sentence' : 'Rows by their number of tokens',
               [
                 {
                   name: e.kind === 'words' ? 'length' : 'tokens',
                   of: l => l.from,
                   show: v => {
                     const l = e.lengths.find(o => o.from === v);
                     return `${l.from} to ${l.to}`;
                   }
                 },
                 {name: e.kind === 'words' ? 'words' : 'rows', of: l => l.rows, show: whole, number: true},
                 error ? {name: 'mean error', of: l => l.error, show, number: true} :
                         {name: 'right', of: l => l.accuracy, show: percent, number: true},
                 ...(e.lengths[0].loss === undefined ? [] : [{name: 'loss', of: l => l.loss, show, number: true}])
               ],
               e.lengths)));
  }
  if (e.calibration) side.push(el('div', {}, el('h3', {}, 'Calibration'), calibration(e.calibration)));
  list.push(el('div', {class: 'pair'}, side));
  if (e.wrong?.length)
    list.push(...cards(
        'Most wrong',
        e.kind === 'answers' ?
            'The questions whose answers share the fewest words with a true one.' :
            'The rows with the highest loss' + (e.kind === 'regression' ? '.' : ' among those that are wrong.'),
        e.wrong));
  if (e.kind && e.kind !== 'regression' && !e.wrong?.length && !e.sentences?.length && e.rows)
    list.push(el('p', {}, 'No row is wrong.'));
  if (e.sentences?.length) list.push(...sentences(e.sentences));
  if (e.uncertain?.length)
    list.push(...cards('Least certain', 'The rows whose two likeliest answers are closest together.', e.uncertain));
  return list;
}

function matrix(e) {
  const n = e.labels.length, totals = e.confusion.map(row => row.reduce((a, b) => a + b, 0)), small = n <= 20;
  const head =
      el('tr', {}, el('th', {scope: 'col'}, small ? 'true\u00a0↓ predicted\u00a0→' : ''),
         small ? e.labels.map(l => text('th', l, {scope: 'col'})) : null);
  const rows =
      e.confusion.map((row, t) => el('tr', {}, text('th', e.labels[t], {scope: 'row'}), row.map((count, p) => {
                        const part = totals[t] ? count / totals[t] : 0;
                        return el(
                            'td', {
                              style: `background:rgba(var(--heat),${count ? (0.08 + 0.52 * part).toFixed(3) : 0})`,
                              title: `${e.labels[t]} → ${e.labels[p]}: ${count} of ${totals[t]}`
                            },
                            small ? whole(count) : null);
                      })));
  return el(
      'div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Confusion matrix'},
      el('table', {class: small ? (n > 6 ? 'matrix wide' : 'matrix') : 'matrix heat'}, el('thead', {}, head),
         el('tbody', {}, rows)));
}

function frame(W, H, M, [x0, x1], [y0, y1], label) {
  const toX = v => M + (v - x0) / (x1 - x0) * (W - M - 10), toY = v => H - 28 - (v - y0) / (y1 - y0) * (H - 38);
  const picture = svg('svg', {viewBox: `0 0 ${W} ${H}`, role: 'img', 'aria-label': label, style: `max-width:${W}px`});
  for (const v of ticks(y0, y1, 5))
    picture.append(
        svg('line', {class: 'axis', x1: M, x2: W - 10, y1: toY(v), y2: toY(v)}),
        svg('text', {x: M - 5, y: toY(v) + 4, 'text-anchor': 'end'}, show(v)));
  for (const v of ticks(x0, x1, 5))
    picture.append(svg('text', {x: toX(v), y: H - 14, 'text-anchor': 'middle'}, show(v)));
  return {picture, toX, toY};
}
function calibration(c) {
  const {picture, toX, toY} = frame(380, 250, 36, [0, 1], [0, 1], `Calibration: mean distance ${percent(c.error)}`),
                       most = Math.max(...c.bins.map(b => b.count), 1);
  picture.append(
      svg('line', {x1: toX(0), y1: toY(0), x2: toX(1), y2: toY(1), stroke: 'var(--soft)', 'stroke-dasharray': '4 4'}));
  c.bins.forEach((b, k) => {
    if (!b.count) return;
    picture.append(svg('rect', {
      x: toX(k / 10) + 1,
      width: toX(0.1) - toX(0) - 2,
      y: toY(b.count / most * 0.25),
      height: toY(0) - toY(b.count / most * 0.25),
      fill: 'var(--line)'
    }));
    picture.append(
        svg('circle', {cx: toX(b.confidence), cy: toY(b.accuracy), r: 4.5, fill: 'var(--c0)'},
            svg('title', {}, `${b.count} of mean probability ${percent(b.confidence)}: ${percent(b.accuracy)} right`)));
  });
  picture.append(svg('text', {x: toX(0.5), y: 249, 'text-anchor': 'middle'}, 'probability that the model gives'));
  return el(
      'div', {}, picture,
      el('p', {class: 'soft'},
         'Points: the share that is right. On the line the model is as right as it says. Bars: how many. ' +
             `Expected calibration error: ${percent(c.error)}.`));
}
function scatter(s) {
  const b = bounds([...s.x, ...s.y]), {picture, toX, toY} = frame(420, 320, 46, b, b, 'True and predicted numbers');
  picture.append(svg(
      'line',
      {x1: toX(b[0]), y1: toY(b[0]), x2: toX(b[1]), y2: toY(b[1]), stroke: 'var(--soft)', 'stroke-dasharray': '4 4'}));
  s.x.forEach((v, i) => {
    if (finite(v) && finite(s.y[i]))
      picture.append(svg('circle', {cx: toX(v), cy: toY(s.y[i]), r: 2.5, fill: 'var(--c0)', opacity: 0.55}));
  });
  picture.append(svg('text', {x: 220, y: 319, 'text-anchor': 'middle'}, 'true; predicted upwards'));
  return picture;
}

function listed(title, explanation, rows, card) {
  const first = 8, list = el('ol', {class: 'rows'}, rows.slice(0, first).map(card));
  const more = rows.length > first ? el('button', {
    class: 'more',
    type: 'button',
    onclick() {
      list.append(...rows.slice(first).map(card));
      more.remove();
    }
  },
                                        `Show all ${rows.length}`) :
                                     null;
  return [el('h3', {}, title), el('p', {class: 'soft'}, explanation), list, more];
}
function sentences(rows) {
  return listed(
      'Most wrong',
      'The sentences with the most wrong words. ' +
          'Under a wrong word: its true label → what is predicted.',
      rows,
      row =>
          el('li', {}, el('div', {class: 'said'}, `${whole(row.wrong)} wrong · sentence `, text('bdi', row.id)),
             el('p', {class: 'tagged', dir: 'auto'},
                row.words
                    .map(
                        ([word, label, said]) => said === undefined ?
                            [text('span', word, {title: label}), ' '] :
                            [
                              el('span', {class: 'wrong'}, text('bdi', word),
                                 el('small', {dir: 'ltr'}, text('bdi', label), ' → ', text('bdi', said))),
                              ' '
                            ])
                    .flat())));
}
function cards(title, explanation, rows) {
  const card = row => {
    const label = Array.isArray(row.label) ? row.label.join(', ') || 'none' : show(row.label),
          prediction = Array.isArray(row.prediction) ? row.prediction.join(', ') || 'none' : show(row.prediction);
    const right = row.right ?? (Array.isArray(row.label) ? label === prediction : null),
          p = row.probability === undefined ? '' : ` ${percent(row.probability)}`,
          q = row.probability_of_label === undefined || right ? '' : ` ${percent(row.probability_of_label)}`;
    return el(
        'li', {},
        el('div', {class: 'said'},
           el('b',
              {class: right === null ? '' :
                   right             ? 'right' :
                                       'wrong'},
              'predicted ', text('bdi', prediction)),
           p, right ? ', which is right' : [', true ', el('b', {}, text('bdi', label)), q],
           row.loss === undefined ? '' : ` · loss ${show(row.loss)}`,
           row.f1 === undefined ? '' : ` · F1 ${show(row.f1)}`,
           row.tokens === undefined ? '' : ` · ${whole(row.tokens)} tokens`, ' · row ', text('bdi', row.id)),
        text('p', row.text), row.pair === undefined ? null : text('p', row.pair));
  };
  return listed(title, explanation, rows, card);
}
