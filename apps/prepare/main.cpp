#include <CLI/CLI.hpp>

#include "apps/prepare/dump.h"
#include "apps/prepare/records.h"
#include "apps/prepare/tokens.h"
#include "apps/prepare/vocab.h"
#include "apps/training/main_guard.h"

int main(int argc, char** argv) {
  using namespace bertrand::prepare;
  CLI::App app("Text and pre-training data: token ids, records, vocabularies.");
  app.require_subcommand(1);

  TokensOptions tokens;
  CLI::App* tokens_command = app.add_subcommand("tokens", "a line of token ids for every line of text");
  add_tokens_flags(*tokens_command, tokens);
  RecordsOptions records;
  CLI::App* records_command =
      app.add_subcommand("records", "pre-training records, as Google's create_pretraining_data.py");
  add_records_flags(*records_command, records);
  DumpOptions dump;
  CLI::App* dump_command = app.add_subcommand("dump", "the records of TFRecord files as text");
  add_dump_flags(*dump_command, dump);
  VocabOptions vocab;
  CLI::App* vocab_command = app.add_subcommand(
      "vocab", "learns a WordPiece vocabulary from text: merges by frequency, as Hugging Face's trainer");
  add_vocab_flags(*vocab_command, vocab);

  return bertrand::training::run_main(app, argc, argv, [&] {
    if (tokens_command->parsed()) write_tokens(tokens);
    if (records_command->parsed()) write_records(records);
    if (dump_command->parsed()) write_dump(dump);
    if (vocab_command->parsed()) write_vocab(vocab);
  });
}
