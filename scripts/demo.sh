#!/usr/bin/env bash
# From plain text to a pre-trained and a fine-tuned model, in minutes. usage: scripts/demo.sh [DIRECTORY]
# Installs what is missing, builds, pre-trains a small BERT on the glosses of WordNet and fine-tunes it to tell the 45
# lexicographers' classes apart. The summary compares it with untrained weights, the most frequent answer and chance.
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
cmake --build $build --target bertrand_backends prepare pretrain finetune
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
{"vocab_size": 6000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 512,
 "max_position_embeddings": 64, "type_vocab_size": 2, "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
JSON

say "pre-training"
pretrain --config "$out/data/config.json" --vocab-file "$out/data/vocab.txt" --input "$out/data/pretrain.txt" \
  --eval-input "$out/data/heldout.txt" --max-seq-length 64 --batch-size 32 --steps 2600 --learning-rate 5e-4 \
  --schedule linear --warmup-steps 200 --log-every 200 --eval-every 2600 --output "$out/pretrained"

say "the same model, untrained"
pretrain --config "$out/data/config.json" --vocab-file "$out/data/vocab.txt" --input "$out/data/heldout.txt" \
  --max-seq-length 64 --batch-size 8 --steps 1 --learning-rate 0 --output "$out/untrained" >/dev/null

for start in pretrained untrained; do
  say "fine-tuning from the $start model"
  finetune --task custom --text-column definition --label-column class --model "$out/$start" --train "$out/data/train.tsv" \
    --eval "$out/data/eval.tsv" --max-seq-length 64 --epochs 5 --learning-rate 5e-4 --log-every 200 --output "$out/from-$start"
done

result() { sed -n "s/^$1 = //p" "$out/$2/eval_results.txt"; }
# most_frequent SEEN UNSEEN: how often the most frequent line of SEEN comes in UNSEEN, as a share of its lines
most_frequent() {
  awk 'FNR == NR { if (++count[$0] > count[best]) best = $0; next } { ++all; hits += $0 == best } END { print hits / all }' "$1" "$2"
}
pieces() { prepare tokens --vocab-file "$out/data/vocab.txt" "$out/data/$1.txt" 2>/dev/null | tr -s ' ' '\n' | sed '/^$/d'; }
classes() { tail -n +2 "$out/data/$1.tsv" | cut -f 2; }
cat <<TEXT

== summary, after $((SECONDS - started)) s
  held-out text: share of masked word pieces filled in rightly
    the pre-trained model                         $(result eval_masked_lm_accuracy pretrained)
    always the most frequent piece                $(most_frequent <(pieces pretrain) <(pieces heldout))
    chance, 1 of 6,000                            $(awk 'BEGIN { print 1 / 6000 }')
  unseen definitions: share of right answers among 45 classes
    fine-tuned from the pre-trained model         $(result eval_accuracy from-pretrained)
    fine-tuned from untrained weights             $(result eval_accuracy from-untrained)
    always the most frequent class                $(most_frequent <(classes train) <(classes eval))
    chance, 1 of 45                               $(awk 'BEGIN { print 1 / 45 }')

What to run next:
  finetune's predictions   $build/bin/finetune --task custom --text-column definition --label-column class --model $out/from-pretrained --predict $out/data/eval.tsv --output $out/predictions
  curves                   tensorboard --logdir $out
  your own texts           $build/bin/pretrain --help, $build/bin/finetune --help
  every test               scripts/test.sh
TEXT
