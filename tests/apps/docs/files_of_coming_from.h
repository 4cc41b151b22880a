// The files that docs/coming_from.md names, small.
#pragma once
#include <set>

#include "support/small_choices.h"
#include "support/small_model.h"

namespace support {

/// Writes a file of a directory, and the folders above it.
class FileWriter {
 public:
  explicit FileWriter(const TemporaryDirectory& directory) : directory_(directory) {}
  /// The same text under each of these names.
  void operator()(const std::vector<std::string>& names, const std::string& text) const {
    for (const std::string& name : names) {
      std::filesystem::create_directories((directory_ / name).parent_path());
      write_text(directory_ / name, text);
    }
  }

 private:
  const TemporaryDirectory& directory_;
};

/// One model under all names: a Hugging Face directory, and checkpoints of TensorFlow.
inline void write_models_of_coming_from(const TemporaryDirectory& directory) {
  write_small_model(directory / "bert-base", 4, 512);
  for (const std::string name : {"uncased_L-12_H-768_A-12", "uncased_L-24_H-1024_A-16", "bert-large-uncased"})
    run_program("export",
                {"--model", directory / "bert-base", "--format", "tf-checkpoint", "--output", directory / name});
}

/// Tables of texts: GLUE's, papers in CoLA's columns, tables with names of their own.
inline void write_tables_of_coming_from(const FileWriter& write) {
  std::string mrpc = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n", papers, unlabelled = "id\ttext\n";
  std::string qqp = "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n", sst2 = "sentence\tlabel\n";
  std::string qqp_test = "id\tquestion1\tquestion2\n", mrpc_test = "index\t#1 ID\t#2 ID\t#1 String\t#2 String\n";
  std::string stsb = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore\n";
  std::string topics = "text\tlabels\n", reviews = "text\tlabel\n";
  const std::string animals[] = {"fish", "bird"};
  for (int i = 0; i < 8; ++i) {
    const std::string &one = animals[i % 2], &other = animals[i / 2 % 2], label = std::to_string(i % 2);
    const std::string n = std::to_string(i);
    mrpc += label + "\t1\t2\tthe " + one + "\tone " + other + "\n";
    mrpc_test += n + "\t1\t2\tthe " + one + "\tone " + other + "\n";
    papers += n + "\t" + label + "\ta\tthe red " + one + "\n";
    unlabelled += n + "\tthe red " + one + "\n";
    qqp += n + "\t1\t2\tthe " + one + "\ttwo " + other + "\t" + label + "\n";
    qqp_test += n + "\tthe " + one + "\ttwo " + other + "\n";
    sst2 += "the red " + one + "\t" + label + "\n";
    stsb += n + "\tg\tf\ty\t1\ts\ts\tthe " + one + "\tone " + other + "\t" + n + ".5\n";
    reviews += "the " + one + "\t" + one + "\n";
    topics += "the " + one + "\t" + one + ",red\n";
  }
  write({"MRPC/train.tsv", "MRPC/dev.tsv"}, mrpc);
  write({"MRPC/test.tsv"}, mrpc_test);
  write({"QQP/train.tsv", "QQP/dev.tsv"}, qqp);
  write({"QQP/test.tsv"}, qqp_test);
  write({"SST-2/train.tsv", "SST-2/dev.tsv"}, sst2);
  write({"STS-B/train.tsv", "STS-B/dev.tsv"}, stsb);
  write({"data/train.tsv", "data/dev.tsv"}, papers);
  write({"data/test.tsv"}, unlabelled);
  write({"reviews.tsv"}, reviews);
  write({"topics.tsv"}, topics);
  write({"swag/train.csv", "swag/val.csv"}, small_choices(8));
  std::string choices;
  for (int i = 0; i < 8; ++i)
    choices += "{\"text\": \"the " + animals[i % 2] +
               "\", \"choices\": [\"red\", \"green\"], \"label\": " + std::to_string(i % 2) + "}\n";
  write({"choices.jsonl"}, choices);
}

/// Text, words with labels, and passages to be ranked.
inline void write_texts_of_coming_from(const FileWriter& write) {
  std::string raw, corpus, words, rows, triples, candidates, qrels;
  const std::string animals[] = {"fish", "bird"};
  for (int i = 0; i < 8; ++i) {
    const std::string &one = animals[i % 2], &other = animals[i / 2 % 2], n = std::to_string(i);
    raw += "The red " + one + ". One green " + other + ". Two blue " + one + "s.\n\n";
    corpus += "the red " + one + " .\none green " + other + " .\ntwo blue " + one + "s .\n\n";
    words += "the\tO\nred\tB-LOC\n" + one + "\tI-LOC\n\n";
    rows += "the red " + one + "\tO O PERIOD\n";
    triples += "the " + one + "\tred " + one + "\tred " + other + "\n";
    candidates += n + "\tp1\tthe " + one + "\tred " + one + "\n" + n + "\tp2\tthe " + one + "\ttwo " + other + "\n";
    qrels += n + "\t0\tp1\t1\n";
  }
  write({"vocab.txt"}, kSmallVocabulary);
  write({"raw.txt"}, raw);
  write({"corpus.txt", "sample_text.txt"}, corpus);
  write({"ner/train.conll", "ner/dev.conll"}, words);
  write({"PUNCT/train.tsv", "PUNCT/dev.tsv"}, rows);
  write({"triples.train.tsv"}, triples);
  write({"top1000.dev.tsv"}, candidates);
  write({"qrels.dev.tsv"}, qrels);
  write({"lines.txt", "reviews.txt"}, "the red fish\ntwo birds\n");
  write({"masked.txt"}, "the [MASK] fish\n");
  write({"tags.conll"}, "red B-LOC B-LOC\nfish I-LOC O\n");
}

inline void write_questions_of_coming_from(const FileWriter& write) {
  const auto squad = [&](const std::string& more) {
    return R"({"version": "x", "data": [{"title": "t", "paragraphs": [{"context": "the red fish . two birds", "qas": [)"
           R"({"id": "1", "question": "the fish", "answers": [{"text": "red fish", "answer_start": 4}])" +
           more + "}]}]}]}";
  };
  write({"squad/train-v1.1.json", "squad/dev-v1.1.json"}, squad(""));
  write({"squad/train-v2.0.json", "squad/dev-v2.0.json"}, squad(R"(, "is_impossible": false)"));
  write({"questions.jsonl"}, "{\"question\": \"the fish\", \"context\": \"the red fish . two birds\"}\n");
}

inline void write_files_of_coming_from(const TemporaryDirectory& directory) {
  const FileWriter write(directory);
  write_models_of_coming_from(directory);
  write_tables_of_coming_from(write);
  write_texts_of_coming_from(write);
  write_questions_of_coming_from(write);
  write({"hosts"}, "localhost slots=2\n");
}

}  // namespace support
