// The page from the top: what was run, and its curves.
// ---- Sections ----
const main = document.getElementById('main'), sections = document.getElementById('sections');
function section(id, title) {
  const node = el('section', {id, 'aria-label': title}, el('h2', {}, title));
  sections.append(el('li', {}, el('a', {href: '#' + id}, title)));
  main.append(node);
  return node;
}
const names = runs.map((run, i) => runs.some((other, j) => j !== i && other.name === run.name) ? run.path : run.name);
const heading = many ? `${runs.length} runs: ${names.slice(0, 6).join(', ')}${names.length > 6 ? ', …' : ''}` :
                       names[0] ?? explained?.name ?? 'no run';
document.title = heading + ' – bertrand';
document.getElementById('title').textContent = heading;
document.getElementById('title').dir = 'auto';
document.getElementById('subtitle').textContent =
    `${[...new Set(runs.map(r => r.program).filter(Boolean))].join(', ')}${
        runs.some(r => r.program) ? ' · ' : ''}report of ${data.written} · bertrand ${data.version}`;

for (const run of runs)
  for (const setting of run.settings)
    if (/^-?\d+\.\d{7,}$/.test(setting[1])) setting[1] = String(Number(Number(setting[1]).toPrecision(6)));
function describe(run) {
  const m = run.machine ?? {}, list = [];
  const add = (name, value) => {
    if (value) list.push(el('dt', {}, name), el('dd', {dir: 'auto'}, value));
  };
  add('directory', run.path);
  add('data', (run.inputs ?? []).map(i => `${i?.path} (${bytes(i?.bytes)})`).join(', '));
  add('parameters', finite(run.parameters) ? whole(run.parameters) : '');
  add('device', [run.device, run.replicas > 1 ? `${run.replicas} replicas` : ''].filter(Boolean).join(', '));
  add('machine', [m.host, m.processor, finite(m.memory_bytes) ? bytes(m.memory_bytes) : ''].filter(Boolean).join(', '));
  add('started', run.started);
  add('version', [run.version, m.build && `build ${m.build}`].filter(Boolean).join(', '));
  const given = run.settings.filter(s => s[2]),
        columns = [{name: 'setting', of: s => s[0]}, {name: 'value', of: s => s[1]}];
  return [
    run.notes.length ? el('div', {class: 'notes', role: 'note'}, el('ul', {}, run.notes.map(n => text('li', n)))) :
                       null,
    run.command ? el('pre', {dir: 'ltr'}, run.command) : null,
    el('div', {class: 'pair'}, el('dl', {}, list),
       given.length ? table('Settings that the command gives', columns, given, false) : null),
    run.settings.length ? el('details', {}, el('summary', {}, `All ${run.settings.length} settings`),
                             table('Every setting that had an effect or was recorded', columns, run.settings, false)) :
                          null
  ];
}
const what = section('what', explained ? 'What is shown' : 'What was run');
if (explained)
  what.append(el('dl', {}, [
    ['model', explained.model], ['texts', explained.file], ['rows of the map', explained.rows_file]
  ].flatMap(([name, value]) => [el('dt', {}, name), text('dd', value)])));
else if (!many) what.append(...runs.flatMap(describe).filter(Boolean));
else {
  const all = [...new Set(runs.flatMap(r => r.settings.map(s => s[0])))];
  const value = (run, name) => run.settings.find(s => s[0] === name)?.[1] ?? '–';
  const differ = all.filter(name => name !== 'output' && new Set(runs.map(r => value(r, name))).size > 1);
  // The longer side runs down the page.
  const down = runs.length > 6, cell = (i, name) => value(runs[i], name), all_runs = runs.map((_, i) => i);
  const columns = down ?
      [{name: 'run', of: i => names[i]}, ...differ.map(name => ({name, of: i => cell(i, name)}))] :
      [{name: 'setting', of: name => name}, ...all_runs.map(i => ({name: names[i], of: name => cell(i, name)}))];
  if (differ.length) what.append(table('Settings in which the runs differ', columns, down ? all_runs : differ, down));
  else what.append(el('p', {}, 'The runs have the same settings.'));
  runs.forEach(
      (run, i) => what.append(
          el('details', {open: run.notes.length > 0 && runs.length < 5}, text('summary', names[i]),
             ...describe(run).filter(Boolean))));
}

// ---- Curves: one run has parts side by side, several runs have a picture for each figure. ----
(() => {
  const keys = [...new Set(runs.flatMap(r => Object.keys(r.curves)))];
  if (!keys.length) return;
  const readable = key => key.replaceAll('_', ' ');
  if (!many && keys.every(k => runs[0].curves[k].x.length < 2)) {  // a point is no curve
    const at = k => runs[0].curves[k], value = k => k === 'memory_bytes' ? bytes(at(k).y[0]) : show(at(k).y[0]);
    const columns = [
      {name: 'figure', of: k => k === 'memory_bytes' ? 'memory' : readable(k)},
      {name: 'value', of: value, number: true}, {name: 'step', of: k => at(k).x[0], show: whole, number: true}
    ];
    section('curves', 'Figures')
        .append(table('Each was written once', columns, keys.filter(k => at(k).x.length), false));
    return;
  }
  const node = section('curves', 'Curves');
  const redraw = () => view.charts.forEach(draw => draw());
  const amount = el('output', {}, 'off');
  node.append(
      el('div', {class: 'tools'},
         el('label', {}, 'Smoothing', el('input', {
              type: 'range',
              min: 0,
              max: 0.99,
              step: 0.01,
              value: 0,
              oninput() {
                view.smoothing = Number(this.value);
                amount.textContent = view.smoothing ? view.smoothing.toFixed(2) : 'off';
                redraw();
              }
            }),
            amount),
         el('label', {}, el('input', {
              type: 'checkbox',
              onchange() {
                view.log = this.checked;
                redraw();
              }
            }),
            'Logarithmic'),
         many ? runs.map(
                    (_, i) =>
                        el('label', {}, el('input', {
                             type: 'checkbox',
                             checked: true,
                             onchange() {
                               this.checked ? view.hidden.delete(i) : view.hidden.add(i);
                               redraw();
                             }
                           }),
                           el('span', {class: 'swatch', style: `background:${colour(i)}`}), text('span', names[i]))) :
                null));
  const grid = el('div', {class: 'grid'});
  node.append(grid);
  const used = new Set();
  const add = (title, wanted, format) => {
    const present = wanted.filter(k => keys.includes(k) && !used.has(k));
    present.forEach(k => used.add(k));
    if (!present.length) return;
    // Several runs: the runs have the colours, and evaluation beside training is dashed.
    const groups = many && present.length > 1 && !(present.length === 2 && present[1] === 'eval_' + present[0]) ?
        present.map(k => [readable(k), [k]]) :
        [[present.length === 1 && !title ? readable(present[0]) : title || readable(present[0]), present]];
    for (const [name, of] of groups) {
      const series = [];
      of.forEach((key, k) => runs.forEach((run, i) => {
        const c = run.curves[key];
        if (c)
          series.push({
            name: many ? names[i] + (of.length > 1 && k ? ', evaluation' : '') : readable(key),
            run: i,
            x: c.x,
            y: c.y,
            colour: colour(many ? i : k),
            dash:
                (many && k > 0) || (!many && key.startsWith('eval_') && of.some(o => !o.startsWith('eval_'))) || i >= 8
          });
      }));
      grid.append(chart(name, series, format));
    }
  };
  const parts = keys.filter(k => k.endsWith('loss') && k !== 'loss' && k !== 'eval_loss');
  if (many) {
    add('loss', ['loss', 'eval_loss']);
    parts.filter(k => !k.startsWith('eval_')).forEach(k => add('', [k, 'eval_' + k]));
    parts.forEach(k => add('', [k]));
  } else
    add('loss', [
      'loss', ...parts.filter(k => !k.startsWith('eval_')), 'eval_loss', ...parts.filter(k => k.startsWith('eval_'))
    ]);
  add('evaluation', keys.filter(k => k.startsWith('eval_')));
  add('learning rate', ['learning_rate']);
  add('gradient norm', ['grad_norm']);
  add('tokens per second', ['tokens_per_second'], v => v === null ? 'not finite' : scaled(v));
  add('examples per second', ['examples_per_second'], v => v === null ? 'not finite' : scaled(v));
  add('memory', ['memory_bytes'], v => v === null ? 'not finite' : bytes(v));
  keys.forEach(k => add('', [k]));
  const short = runs.flatMap(r => Object.values(r.curves)).find(c => c.points > c.x.length);
  if (short)
    node.append(
        el('p', {class: 'soft'},
           'Long curves show the lowest and the highest value of each stretch of steps. ' +
               'All values are in metrics.jsonl.'));
})();
