#!/usr/bin/env bash
# From plain text to a pre-trained and a fine-tuned model, in minutes. usage: scripts/demo.sh [DIRECTORY]
# Installs what is missing, builds, and pre-trains a small BERT on the glosses of WordNet: what it puts in place of masked
# words and which words it takes for neighbours is shown before and after. Then it learns to tell the 45 lexicographers'
# classes apart. The summary compares it with untrained weights, the most frequent answer and chance.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-demo}
build='build-demo'  # one CPU, no tests
started=$SECONDS

say() { printf '\n== %s (%d s so far)\n' "$1" $((SECONDS - started)); }

say "installing what is missing and building"
scripts/install-packages.sh
scripts/install-packages.sh wordnet-base
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Release -DBERTRAND_TESTS=OFF -DBERTRAND_EXAMPLES=OFF -DBERTRAND_CUDA=OFF \
  -DBERTRAND_CPU_KERNELS=native >/dev/null
cmake --build $build --target bertrand_backends prepare pretrain finetune predict extract report
PATH="$PWD/$build/bin:$PATH"

say "text and labelled examples from WordNet"
rm -rf "$out"
scripts/wordnet_data.sh "$out/data"
head -n 172000 "$out/data/text.txt" >"$out/data/pretrain.txt"
tail -n +172001 "$out/data/text.txt" >"$out/data/heldout.txt"
wc -lw "$out/data/pretrain.txt" "$out/data/heldout.txt" "$out/data/train.tsv" "$out/data/eval.tsv"

say "a vocabulary of 6,000 word pieces"
prepare vocab --input "$out/data/pretrain.txt" --output "$out/data/vocab.txt" --size 6000
cat >"$out/data/config.json" <<JSON
{"vocab_size": 6000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 512,
 "max_position_embeddings": 64, "type_vocab_size": 2, "initializer_range": 0.06,
 "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
JSON
# Weights of 0.02, as BERT's own 768 columns have, make attention over 128 columns so even that it hardly learns.

say "the model, untrained"
pretrain --config "$out/data/config.json" --vocab-file "$out/data/vocab.txt" --input "$out/data/heldout.txt" \
  --max-seq-length 64 --batch-size 8 --steps 1 --learning-rate 0 --quiet --output "$out/untrained"

say "pre-training"
pretrain --config "$out/data/config.json" --vocab-file "$out/data/vocab.txt" --input "$out/data/pretrain.txt" \
  --eval-input "$out/data/heldout.txt" --max-seq-length 64 --batch-size 64 --steps 2500 --learning-rate 1e-3 \
  --schedule linear --warmup-steps 200 --log-every 200 --eval-every 2500 --output "$out/pretrained"

say "what it learnt"
cat >"$out/data/masked.txt" <<'TEXT'
a person [MASK] makes furniture
the act [MASK] walking
the united [MASK] of america
of or [MASK] to the heart
someone [MASK] plays music
capable [MASK] being seen
TEXT
# guesses MODEL: its three best words for each mask
guesses() {
  predict --model "$out/$1" --task fill-mask --top-k 3 --input "$out/data/masked.txt" | grep -o '"token":"[^"]*"' | cut -d '"' -f 4 |
    paste -d ' ' - - -
}
printf '%-34s %-34s %s\n' 'text' 'untrained' 'pre-trained'
paste -d '\t' "$out/data/masked.txt" <(guesses untrained) <(guesses pretrained) | awk -F '\t' '{ printf "%-34s %-34s %s\n", $1, $2, $3 }'
grep -E '^[a-z]{4,}$' "$out/data/vocab.txt" >"$out/data/words.txt"
# neighbours MODEL: for some words those whose vectors point the same way, the nearest first
neighbours() {
  extract --model "$out/$1" --input "$out/data/words.txt" --output "$out/data/$1.jsonl" --pooling mean --layers 0 2>/dev/null
  paste -d ' ' "$out/data/words.txt" <(sed 's/.*"embedding": \[//; s/[],}]/ /g' "$out/data/$1.jsonl") | awk '
    { word[NR] = $1; for (j = 2; j <= NF; ++j) { vector[NR, j] = $j; mean[j] += $j }; columns = NF; number[$1] = NR }
    END {
      for (i = 1; i <= NR; ++i) {
        length_of = 0
        for (j = 2; j <= columns; ++j) { vector[i, j] -= mean[j] / NR; length_of += vector[i, j] ^ 2 }
        for (j = 2; j <= columns; ++j) vector[i, j] /= sqrt(length_of)
      }
      count = split("river north africa", asked, " ")
      for (a = 1; a <= count; ++a) {
        q = number[asked[a]]
        if (!q) continue
        line = ""
        for (i = 1; i <= NR; ++i) { likeness[i] = 0; for (j = 2; j <= columns; ++j) likeness[i] += vector[i, j] * vector[q, j] }
        likeness[q] = -2
        for (n = 0; n < 4; ++n) {
          best = 1
          for (i = 2; i <= NR; ++i) if (likeness[i] > likeness[best]) best = i
          line = line " " word[best]
          likeness[best] = -2
        }
        print asked[a] "\t" substr(line, 2)
      }
    }'
}
printf '\n%-34s %-34s %s\n' 'nearest words of' 'untrained' 'pre-trained'
join -t "$(printf '\t')" <(neighbours untrained | sort) <(neighbours pretrained | sort) | awk -F '\t' '{ printf "%-34s %-34s %s\n", $1, $2, $3 }'

for start in pretrained untrained; do
  say "fine-tuning from the $start model"
  finetune --task custom --text-column definition --label-column class --model "$out/$start" --train "$out/data/train.tsv" \
    --eval "$out/data/eval.tsv" --max-seq-length 64 --epochs 5 --learning-rate 5e-4 --log-every 200 --output "$out/from-$start"
done
report "$out/from-pretrained" "$out/from-untrained" --output "$out/report.html" >/dev/null

result() { awk -v name="$1" '$1 == name { printf "%.4f", $3 }' "$out/$2/eval_results.txt"; }
# most_frequent SEEN UNSEEN: how often the most frequent line of SEEN comes in UNSEEN, as a share of its lines
most_frequent() {
  awk 'FNR == NR { if (++count[$0] > count[best]) best = $0; next } { ++all; hits += $0 == best } END { printf "%.4f", hits / all }' "$1" "$2"
}
pieces() { prepare tokens --vocab-file "$out/data/vocab.txt" "$out/data/$1.txt" 2>/dev/null | tr -s ' ' '\n' | sed '/^$/d'; }
classes() { tail -n +2 "$out/data/$1.tsv" | cut -f 2; }
cat <<TEXT

== summary, after $((SECONDS - started)) s
  held-out text: share of masked word pieces filled in rightly
    the pre-trained model                         $(result eval_masked_lm_accuracy pretrained)
    always the most frequent piece                $(most_frequent <(pieces pretrain) <(pieces heldout))
    chance, 1 of 6,000                            $(awk 'BEGIN { printf "%.4f", 1 / 6000 }')
  unseen definitions: share of right answers among 45 classes
    fine-tuned from the pre-trained model         $(result eval_accuracy from-pretrained)
    fine-tuned from untrained weights             $(result eval_accuracy from-untrained)
    always the most frequent class                $(most_frequent <(classes train) <(classes eval))
    chance, 1 of 45                               $(awk 'BEGIN { printf "%.4f", 1 / 45 }')

A page with the curves of both, and what they get wrong: $out/report.html (of pre-training: $out/pretrained/report.html)

What to run next:
  more masks               echo 'a river in [MASK]' | $build/bin/predict --model $out/pretrained --task fill-mask
  finetune's predictions   $build/bin/finetune --task custom --text-column definition --label-column class --model $out/from-pretrained --predict $out/data/eval.tsv --output $out/predictions
  curves                   tensorboard --logdir $out
  your own texts           $build/bin/pretrain --help, $build/bin/finetune --help
  every test               scripts/test.sh
TEXT
