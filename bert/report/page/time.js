// Where the time went: a bar by kind of op, and a table.
(() => {
  const timed = runs.map((_, i) => i).filter(i => Array.isArray(runs[i].profile.ops) && runs[i].profile.ops.length);
  if (!timed.length) return;
  const kinds = [
    ['matrix products', /gemm|matmul/], ['attention', /attention/], ['losses', /entropy|mse|argmax/],
    ['normalisation', /layer_norm|softmax/], ['optimizer', /^(update|norm|zero|scale|check)/],
    ['sums over replicas', /reduce|broadcast|barrier|wait|gather_all/],
    ['rows and copies', /gather|scatter|slice|copy|cast|upload|download/], ['elements', /./]
  ];
  const node = section('time', 'Where the time went'), place = el('div');
  const drawTime = i => {
    const profile = runs[i].profile, ops = profile.ops.filter(o => finite(o?.seconds) && typeof o.name === 'string'),
          sum = ops.reduce((a, o) => a + o.seconds, 0), total = Math.max(profile.seconds || 0, sum) || 1;
    const groups =
        kinds
            .map(
                ([name], k) =>
                    ({name, k, ops: ops.filter(o => kinds.findIndex(([, pattern]) => pattern.test(o.name)) === k)}))
            .map(g => ({...g, seconds: g.ops.reduce((a, o) => a + o.seconds, 0)}))
            .filter(g => g.seconds > 0)
            .sort((a, b) => b.seconds - a.seconds);
    const piece = (name, s, style, cls) =>
        el('span', {
          class: cls,
          title: `${name}: ${seconds(s)}, ${percent(s / total)}`,
          style: `flex:${s / total} 0 0;${style}${s / total < 0.02 ? ';padding:0' : ''}`
        },
           s / total < 0.04 ? '' : `${name} ${percent(s / total)}`);
    const rest = Math.max(0, total - sum);
    place.replaceChildren(
        el('div', {class: 'bar thin', role: 'img', 'aria-label': `ops ${seconds(sum)}, between them ${seconds(rest)}`},
           piece('ops', sum, 'background:var(--soft)'), rest > 0 ? piece('between ops', rest, '', 'rest') : null),
        el('div', {
          class: 'bar',
          role: 'img',
          'aria-label': groups.map(g => `${g.name} ${percent(g.seconds / total)}`).join(', ')
        },
           groups.map(g => piece(g.name, g.seconds, `background:${colour(g.k)}`)),
           rest > 0 ? piece('', rest, 'background:transparent') : null),
        el('div', {class: 'bar thin', role: 'img', 'aria-label': 'single ops'},
           groups.flatMap(g => g.ops.map(o => piece(o.name, o.seconds, `background:${colour(g.k)}`))),
           rest > 0 ? piece('', rest, 'background:transparent') : null),
        el('p', {class: 'soft'},
           `${seconds(total)} in all, of which ${
               percent(rest / total)} lie between the ops: reading data, evaluating and saving on the host.`),
        table(
            'Each op',
            [
              {name: 'op', of: o => o.name}, {name: 'calls', of: o => o.calls, show: whole, number: true},
              {name: 'time', of: o => o.seconds, show: seconds, number: true},
              {name: 'share', of: o => o.seconds / total, show: percent, number: true},
              {name: 'flop/s', of: o => o.flops / o.seconds, show: v => v ? scaled(v) : '–', number: true},
              {name: 'bytes/s', of: o => o.bytes / o.seconds, show: v => v ? bytes(v) : '–', number: true}
            ],
            ops));
  };
  if (many) node.append(choiceOfRun('Time of', timed, drawTime));
  node.append(place);
  drawTime(timed[0]);
})();
