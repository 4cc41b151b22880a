#include "apps/cli/examples.h"

#include <fmt/format.h>

#include <map>

namespace bertrand::cli {

namespace {

/// Of every program.
const std::map<std::string, std::vector<Example>>& all_examples() {
  static const std::map<std::string, std::vector<Example>> examples = {
      {"prepare",
       {{"a vocabulary of your own text", "{} vocab --input book.txt --output vocab.txt --size 8000"},
        {"records for other trainers", "{} records --input book.txt --vocab-file vocab.txt --output book.tfrecord"}}},
      {"pretrain",
       {{"a small BERT from text", "{} --input book.txt --vocab-file vocab.txt --config tiny --steps 10k --output run"},
        {"go on after a stop, or for longer", "{} --resume --output run --steps 20k"}}},
      {"finetune",
       {{"a classifier of your own table",
         "{} --task custom --model minilm --train train.csv --eval dev.csv --output run"},
        {"answers in texts",
         "{} --task squad --model base --train train-v1.1.json --eval dev-v1.1.json --output run"}}},
      {"predict",
       {{"labels of a file's lines", "{} --model run --input texts.txt --output answers.jsonl"},
        {"fill masks, line by line", "echo 'The sun [MASK] in the east.' | {} --model base --task fill-mask"}}},
      {"evaluate",
       {{"answers as SQuAD's script scores them", "{} squad --data dev-v1.1.json --predictions predictions.json"}}},
      {"extract", {{"features of the last two layers", "{} --model minilm --input texts.txt --output features.jsonl"}}},
      {"report", {{"runs over each other, in one page", "{} runs/a runs/b --output runs.html"}}},
      {"export", {{"a model for other run-times", "{} --model run --format onnx --output onnx"}}},
      {"serve",
       {{"a model over HTTP", "{} --model run --port 8501"}, {"is it ready?", "{} --check http://127.0.0.1:8501"}}},
  };
  return examples;
}

}  // namespace

std::vector<std::string> program_names() {
  std::vector<std::string> names;
  for (const auto& [program, examples] : all_examples()) names.push_back(program);
  return names;
}

std::vector<Example> examples_of(const std::string& program, const std::string& called) {
  const auto found = all_examples().find(program);
  if (found == all_examples().end()) return {};
  std::vector<Example> all = found->second;
  for (Example& example : all) example.command = fmt::format(fmt::runtime(example.command), called);
  return all;
}

}  // namespace bertrand::cli
