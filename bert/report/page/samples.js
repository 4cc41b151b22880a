// Masked examples, and what the model took the masked words for.
(() => {
  const has = runs.map((_, i) => i).filter(i => runs[i].samples.examples?.length);
  if (!has.length) return;
  const node = section('guesses', 'What it guesses'), place = el('div');
  const guess = ([word, p], truth) =>
      el('span', {class: 'said'}, el('b', {class: word === truth ? 'right' : 'wrong'}, text('bdi', word)), ' ',
         percent(p));
  const draw = i => {
    const {steps, examples} = runs[i].samples, last = steps.length - 1;
    place.replaceChildren(...examples.flatMap((example, k) => {
      const at = new Map(example.masked.map(m => [m.position, m]));
      const words = example.tokens.flatMap((token, t) => {
        const m = at.get(t);
        return [
          m ? el('span', {
            class: m.guesses[last][0]?.[0] === m.truth ? 'hole right' : 'hole wrong',
            title: `${m.truth}: taken for ${m.guesses[last].map(g => g[0]).join(', ')}`
          },
                 text('bdi', m.truth)) :
              text('span', token),
          ' '
        ];
      });
      const columns = [
        {name: 'is', of: m => m.truth},
        ...steps.map(
            (step, s) => ({
              name: s === last ? `now, step ${step.toLocaleString('en')}` : `step ${step.toLocaleString('en')}`,
              of: m => m,
              show: m =>
                  el('div', {}, m.guesses[s].map(g => el('div', {}, guess(g, m.truth))),
                     m.guesses[s].some(g => g[0] === m.truth) ?
                         null :
                         el('div', {class: 'said'}, `${m.truth}: ${percent(m.probabilities[s])}`))
            }))
      ];
      return [
        el('h3', {}, `Example ${k + 1}`), el('p', {class: 'marked', dir: 'auto'}, words),
        el('details', {open: k === 0},
           el('summary', {}, `The ${example.masked.length} masked words, and what each was taken for`),
           table(
               'The likeliest words for each, with their probabilities', columns, example.masked, false,
               example.masked.length > 8))
      ];
    }));
  };
  node.append(
      el('p', {class: 'soft'},
         'Held-out examples, the same at each evaluation. The words in frames were masked: ' +
             '✓ marks those that the model guesses now. Evaluations between those shown are in samples.jsonl.'));
  if (many) node.append(choiceOfRun('Guesses of', has, draw));
  node.append(place);
  draw(has[0]);
})();
