// A model that explains itself: attention, words, and a map of the rows.
(() => {
  if (!explained) return;
  const e = explained, b = e.bounds, many_texts = e.texts.length > 1;
  const title = t => e.texts[t].tokens.slice(1, -1).join(' ').replaceAll(' ##', '').slice(0, 90);
  const wordOf = (t, [from, to]) =>
      e.texts[t].tokens.slice(from, to).map((p, k) => k && p.startsWith('##') ? p.slice(2) : p).join('');
  // [CLS] and [SEP] are set apart, so that the direction of the line is that of the first letter of the text itself.
  const wordSpan = (t, word, attributes) =>
      el(/^\[[A-Z]+\]$/.test(wordOf(t, word)) ? 'bdi' : 'span', attributes, wordOf(t, word));
  const note = content => el('p', {class: 'soft'}, content);
  note.of = (shown, given, name) => given > shown ? ` ${whole(shown)} of ${whole(given)} ${name} are shown.` : '';
  const redraw = [];
  const state = {text: 0, layer: 0, head: 0, from: null};
  const chooser = () => many_texts ?
      el('div', {class: 'tools'},
         el('label', {class: 'fixed'}, 'Text',
            el('select', {onchange() { choose({text: Number(this.value), from: null}); }},
               e.texts.map((_, t) => el('option', {value: t, dir: 'auto'}, `${t + 1}: ${title(t)}`))))) :
      null;
  function choose(change) {
    Object.assign(state, change);
    document.querySelectorAll('#attention select, #words select').forEach(s => {
      s.value = state.text;
    });
    redraw.forEach(draw => draw(change));
  }

  // ---- Attention: all heads small, one large ----
  (() => {
    const node = section('attention', 'Attention');
    node.append(
        note(
            'Each small picture is a head: rows are the tokens that attend, columns the tokens that are attended to, ' +
            'and the stronger the colour, the larger the share. Choose one with the pointer, ' +
            `or with the arrow keys when the picture has the focus.${
                note.of(
                    b.texts, b.texts_given, 'texts')} The model reads the first ${b.tokens_read} tokens of a text; ${
                e.texts.some(t => t.shown < t.tokens.length) ?
                    `the first ${b.tokens_shown} of them are shown, and what goes to the others is missing here` :
                    'all of them are shown'}.`),
        chooser());
    const S = 46, G = 6, L = 24, W = L + e.heads * (S + G), H = 20 + e.layers * (S + G);
    const x = h => L + h * (S + G), y = l => 20 + l * (S + G);
    const all = svg('svg', {
      viewBox: `0 0 ${W} ${H}`,
      style: `max-width:${W}px;min-width:${Math.min(W, e.heads * 26)}px`,
      tabindex: 0,
      role: 'listbox',
      'aria-label': 'All heads. The arrow keys choose one.',
      onkeydown(event) {
        const [dl, dh] = {ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]}[event.key] ??
            [0, 0];
        if (!dl && !dh) return;
        event.preventDefault();
        choose({
          layer: Math.min(e.layers - 1, Math.max(0, state.layer + dl)),
          head: Math.min(e.heads - 1, Math.max(0, state.head + dh)),
          from: null
        });
      }
    });
    const one = el('div'), spoken = el('output', {class: 'soft', 'aria-live': 'polite'});
    const pick = svg('rect', {class: 'pick', width: S + 4, height: S + 4, rx: 4});
    // One path for each strength: a picture for each share would be too many.
    const levels = [0.04, 0.12, 0.3, 0.6];
    function overview() {
      const {shown, attention} = e.texts[state.text], step = S / shown, parts = [];
      for (let h = 0; h < e.heads; ++h)
        parts.push(svg('text', {x: x(h) + S / 2, y: 12, 'text-anchor': 'middle'}, h + 1));
      for (let l = 0; l < e.layers; ++l) {
        parts.push(svg('text', {x: L - 8, y: y(l) + S / 2 + 4, 'text-anchor': 'end'}, l + 1));
        for (let h = 0; h < e.heads; ++h) {
          const paths = levels.map(() => '');
          attention[l][h].forEach((share, k) => {
            const level = levels.findLastIndex(least => share >= 1000 * least);
            if (level >= 0)
              paths[level] +=
                  `M${(x(h) + k % shown * step).toFixed(1)} ${(y(l) + Math.floor(k / shown) * step).toFixed(1)}h${
                      step.toFixed(2)}v${step.toFixed(2)}h-${step.toFixed(2)}z`;
          });
          paths.forEach((d, k) => {
            if (d) parts.push(svg('path', {class: 'cell', d, opacity: [0.25, 0.45, 0.7, 1][k]}));
          });
          parts.push(
              svg('rect', {class: 'frame', x: x(h), y: y(l), width: S, height: S}),
              svg('rect', {
                class: 'hit',
                x: x(h),
                y: y(l),
                width: S,
                height: S,
                onclick() { choose({layer: l, head: h, from: null}); }
              },
                  svg('title', {}, `layer ${l + 1}, head ${h + 1}: entropy ${show(e.entropy[l][h])} bits`)));
        }
      }
      all.replaceChildren(...parts, pick);
    }
    function large() {
      const {shown, tokens, attention} = e.texts[state.text], shares = attention[state.layer][state.head], row = 21,
                            H = shown * row + 8;
      const W = 560, left = 190, right = W - 190, at = i => 16 + i * row, lines = [], names = [];
      for (let i = 0; i < shown; ++i)
        for (let j = 0; j < shown; ++j) {
          const share = shares[i * shown + j] / 1000;
          if (share >= (state.from === i ? 0.005 : 0.03) && (state.from === null || state.from === i))
            lines.push(svg('line', {
              x1: left + 6,
              y1: at(i) - 4,
              x2: right - 6,
              y2: at(j) - 4,
              stroke: 'rgb(var(--heat))',
              'stroke-width': 0.6 + 3.4 * share,
              opacity: Math.min(1, 0.12 + share)
            }));
        }
      for (let i = 0; i < shown; ++i) {
        names.push(
            svg('text', {
              x: left,
              y: at(i),
              'text-anchor': 'end',
              class: state.from === i ? 'chosen' : null,
              onclick() { choose({from: state.from === i ? null : i}); }
            },
                tokens[i]));
        const share = state.from === null ? null : shares[state.from * shown + i] / 1000;
        names.push(
            svg('text', {x: right, y: at(i), onclick() { choose({from: state.from === i ? null : i}); }}, tokens[i],
                share === null || share < 0.005 ? null : svg('tspan', {class: 'soft'}, '  ' + percent(share))));
      }
      const picture =
          svg('svg', {
            viewBox: `0 0 ${W} ${H}`,
            class: 'words',
            style: `max-width:${W}px`,
            tabindex: 0,
            role: 'img',
            'aria-label': `Layer ${state.layer + 1}, head ${
                state.head + 1}: which token attends to which. The up and down keys choose a token.`,
            onkeydown(event) {
              const by = {ArrowDown: 1, ArrowUp: -1}[event.key];
              if (event.key === 'Escape') choose({from: null});
              if (!by) return;
              event.preventDefault();
              choose({
                from: state.from === null ? (by > 0 ? 0 : shown - 1) : Math.min(shown - 1, Math.max(0, state.from + by))
              });
              one.querySelector('svg').focus();
            }
          },
              lines, names);
      one.replaceChildren(
          el('h3', {}, `Layer ${state.layer + 1}, head ${state.head + 1}`),
          text('p', `${state.text + 1}: ${title(state.text)}`, {class: 'printed'}),
          note(
              'Lines go from the token that attends, left, to those that it attends to, right. ' +
              'A token that is chosen shows its shares alone.'),
          picture);
      const best = state.from === null ? [] :
                                         tokens.slice(0, shown)
                                             .map((token, j) => [token, shares[state.from * shown + j]])
                                             .sort((p, q) => q[1] - p[1])
                                             .slice(0, 3);
      spoken.textContent = `layer ${state.layer + 1}, head ${state.head + 1}` +
          (best.length ? `: ${tokens[state.from]} attends to ${
                             best.map(([token, share]) => `${token} ${percent(share / 1000)}`).join(', ')}` :
                         '');
    }
    function draw(change) {
      if ('text' in change) overview();
      pick.setAttribute('x', x(state.head) - 2);
      pick.setAttribute('y', y(state.layer) - 2);
      large();
    }
    redraw.push(draw);
    node.append(
        el('div', {class: 'pair'},
           el('div', {}, el('h3', {}, 'Layers down, heads across'), el('div', {class: 'scroll'}, all), spoken), one));
    draw({text: 0});
  })();

  // ---- Entropy ----
  (() => {
    const node = section('entropy', 'Entropy of the heads'), most = Math.max(...e.entropy.flat(), 1e-9);
    node.append(
        note(`In bits, the mean over all tokens of the texts above. 0: a head attends to one token. ${
            show(Math.log2(Math.max(
                ...e.texts.map(t => t.tokens.length))))}: it attends to all tokens of the longest text alike.`),
        el('div', {class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Entropy of the heads'},
           el('table', {class: 'matrix entropy'},
              el('thead', {},
                 el('tr', {}, el('th', {scope: 'col'}, 'layer\u00a0↓ head\u00a0→'),
                    e.entropy[0].map((_, h) => el('th', {scope: 'col'}, h + 1)))),
              el('tbody', {},
                 e.entropy.map(
                     (heads, l) => el(
                         'tr', {}, el('th', {scope: 'row'}, l + 1),
                         heads.map(
                             bits => el(
                                 'td', {style: `background:rgba(var(--heat),${(0.04 + 0.5 * bits / most).toFixed(3)})`},
                                 bits.toFixed(2)))))))));
  })();

  // ---- Gradient × input ----
  (() => {
    if (!e.texts[0].outputs.length) return;
    const node = section('words', 'What each word adds'), place = el('div');
    node.append(
        note(
            'Gradient × input: how much the output of a class would change if the vector of a word grew by its own ' +
            'length, to the first order. A word of several pieces has their sum. Blue is for the class; ' +
            'orange, with a dotted line, is against it.'),
        chooser(), place);
    const draw = change => {
      if (!('text' in change)) return;
      const {outputs, words} = e.texts[state.text];
      place.replaceChildren(
          text('p', `${state.text + 1}: ${title(state.text)}`, {class: 'printed'}), ...outputs.map(output => {
            const values = words.map(([from, to]) => output.tokens.slice(from, to).reduce((p, q) => p + q, 0)),
                  most = Math.max(...values.map(Math.abs), 1e-12);
            return el(
                'div', {class: 'explained'},
                el('h3', {}, text('bdi', output.label),
                   ` · output ${show(output.logit)}${
                       output.probability === undefined ? '' : `, probability ${percent(output.probability)}`}`),
                el('p', {class: 'marked', dir: 'auto'},
                   words
                       .map(
                           (word, k) =>
                               [wordSpan(state.text, word, {
                                  class: values[k] < 0 ? 'down' : 'up',
                                  style: `--by:${(0.5 * Math.abs(values[k]) / most).toFixed(3)}`,
                                  title: show(values[k])
                                }),
                                ' '])
                       .flat()),
                el('details', {}, el('summary', {}, 'As numbers'),
                   table(
                       'Words of the text',
                       [
                         {name: 'place', of: r => r.k, number: true}, {name: 'word', of: r => r.word},
                         {name: 'gradient × input', of: r => r.value, show, number: true}
                       ],
                       words.map((word, k) => ({k: k + 1, word: wordOf(state.text, word), value: values[k]})), true,
                       words.length > 12)));
          }));
    };
    redraw.push(draw);
    draw({text: 0});
  })();

  // ---- Map ----
  (() => {
    const m = e.map;
    if (!m) return;
    const node = section('map', 'Map of the rows'), n = m.x.length, W = 560, H = 420;
    const counts = new Map();
    for (const label of m.label) counts.set(label, (counts.get(label) ?? 0) + 1);
    // Names have colours in the order of the alphabet. Numbers have them from low to high, in four parts.
    const numbers = counts.size > 8 && m.label.every(l => l !== '' && finite(Number(l)));
    const sorted = [...m.label].sort((p, q) => p - q), cuts = [1, 2, 3].map(k => Number(sorted[Math.floor(k * n / 4)]));
    const labels = numbers ?
        [...new Set(
            [`below ${cuts[0]}`, `${cuts[0]} to ${cuts[1]}`, `${cuts[1]} to ${cuts[2]}`, `${cuts[2]} and above`])] :
        [...counts.keys()].sort();
    const group = i => numbers ? cuts.filter(c => Number(m.label[i]) >= c).length : labels.indexOf(m.label[i]);
    const unnamed = labels.length === 1 && labels[0] === '';
    const agree = m.near.filter((near, i) => near.length && m.label[near[0][0]] === m.label[i]).length;
    node.append(note(
        'The last layer\'s row of [CLS] for each row, on the two directions in which the rows differ most: ' +
        `${percent(m.shares[0])} of the variance across, ${percent(m.shares[1])} up.` +
        note.of(b.rows, b.rows_given, 'rows') +
        (unnamed || numbers ? '' : ` The nearest neighbour has the same label in ${percent(agree / n)} of the rows.`) +
        ' Choose a row with the pointer, or with the left and right keys; Enter goes to its nearest neighbour.'));
    const bx = bounds(m.x), by = bounds(m.y), toX = v => 8 + (v - bx[0]) / (bx[1] - bx[0]) * (W - 16),
          toY = v => H - 8 - (v - by[0]) / (by[1] - by[0]) * (H - 16);
    const links = svg('g'), mark = svg('g'), about = el('div', {'aria-live': 'polite'});
    const marks = ['circle', 'square', 'triangle', 'diamond'];
    const point = (i, r, attributes) => {
      const x = toX(m.x[i]), y = toY(m.y[i]), g = group(i), fill = colour(g);
      const d = {
        circle: `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${- 2 * r} 0z`,
        square: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${- 2 * r}z`,
        triangle: `M${x} ${y - 1.2 * r}L${x + 1.2 * r} ${y + r}H${x - 1.2 * r}z`,
        diamond: `M${x} ${y - 1.35 * r}L${x + 1.35 * r} ${y}L${x} ${y + 1.35 * r}L${x - 1.35 * r} ${y}z`
      }[marks[g % 4]];
      return svg('path', {d, fill, ...attributes});
    };
    let at = null;
    const rowText = i =>
        [unnamed ?
             null :
             el('div', {class: 'said'}, el('b', {}, text('bdi', m.label[i])),
                m.prediction[i] ?
                    [
                      ', predicted ',
                      el('b', {class: m.prediction[i] === m.label[i] ? 'right' : 'wrong'}, text('bdi', m.prediction[i]))
                    ] :
                    ''),
         text('p', m.text[i])];
    function pick(i) {
      at = i;
      links.replaceChildren(...m.near[i].map(
          ([j]) => svg('line', {class: 'cursor', x1: toX(m.x[i]), y1: toY(m.y[i]), x2: toX(m.x[j]), y2: toY(m.y[j])})));
      mark.replaceChildren(
          ...m.near[i].map(([j]) => point(j, 5, {stroke: 'var(--ink)', 'stroke-width': 1.2})),
          point(i, 7, {stroke: 'var(--ink)', 'stroke-width': 2}));
      about.replaceChildren(
          el('h3', {}, 'Chosen'), ...rowText(i).filter(Boolean), el('h3', {}, 'Nearest to it'),
          el('ol', {class: 'rows'},
             m.near[i].map(
                 ([j, cosine]) =>
                     el('li', {}, ...rowText(j).filter(Boolean),
                        el('div', {class: 'said'}, `cosine ${cosine.toFixed(3)} `,
                           el('button', {class: 'more', type: 'button', onclick() { pick(j); }}, 'choose'))))));
    }
    const order = [...m.x.keys()].sort((p, q) => m.x[p] - m.x[q]);
    const picture =
        svg('svg', {
          viewBox: `0 0 ${W} ${H}`,
          class: 'map',
          style: `max-width:${W}px`,
          tabindex: 0,
          role: 'img',
          'aria-label': 'Map of the rows. The left and right keys choose a row, Enter its nearest neighbour.',
          onkeydown(event) {
            const by = {ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20}[event.key];
            if (by) {
              event.preventDefault();
              pick(order[at === null ? 0 : Math.min(n - 1, Math.max(0, order.indexOf(at) + by))]);
            }
            if (event.key === 'Enter' && at !== null && m.near[at].length) {
              event.preventDefault();
              pick(m.near[at][0][0]);
            }
          },
          onclick(event) {
            const box = picture.getBoundingClientRect(), px = (event.clientX - box.left) * W / box.width,
                  py = (event.clientY - box.top) * H / box.height;
            let best = 0, least = Infinity;
            for (let i = 0; i < n; ++i) {
              const d = (toX(m.x[i]) - px) ** 2 + (toY(m.y[i]) - py) ** 2;
              if (d < least) {
                least = d;
                best = i;
              }
            }
            pick(best);
          }
        },
            links, order.map(i => point(i, n > 300 ? 2.6 : 3.6, {opacity: 0.8})), mark);
    const legend = unnamed ?
        null :
        el('ul', {class: 'legend'},
           labels.slice(0, 24).map(
               (label, g) =>
                   el('li', {},
                      svg('svg', {
                        viewBox: '0 0 12 12',
                        style: 'display:inline-block;width:12px;height:12px;vertical-align:-1px;margin-right:5px',
                        'aria-hidden': 'true'
                      },
                          svg('path', {
                            fill: colour(g),
                            d: [
                              'M1 6a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z', 'M1 1h10v10h-10z', 'M6 0L12 11H0z',
                              'M6 0L12 6L6 12L0 6z'
                            ][g % 4]
                          })),
                      text('span', label), numbers ? '' : ` ${whole(counts.get(label))}`)));
    node.append(el('div', {class: 'pair'}, el('figure', {}, picture, legend), about));
    pick(order[Math.floor(n / 2)]);
  })();
})();
