#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "support/program.h"

using support::Outcome;
using support::run_program;
using support::write_text;

namespace {

/// A variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

Outcome settings_of(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--print-settings"});
  return run_program("pretrain", arguments);
}

/// What pretrain says against a file of settings with this text.
std::string refusal_of(const std::string& file, const std::string& text) {
  write_text(file, text);
  const Outcome outcome = run_program("pretrain", {"--settings", file});
  CHECK(outcome.code == 2);
  return outcome.error;
}

}  // namespace

TEST_CASE("a flag is that of the command line, else of the environment, else of the file of settings") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file,
             "seed = 1\nkeep = 2\nlog_every = 3\n[finetune]\nbatch-size = 9\n[pretrain]\ninput = [\"a b\", \"c\"]\n"
             "shuffle = false\n");
  const Variable keep("BERTRAND_KEEP", "5"), seed("BERTRAND_SEED", "6");
  const Outcome found = settings_of({"--settings", file, "--seed=7"});
  CHECK(found.code == 0);
  CHECK(found.out == "# command line\nseed = 7\n# BERTRAND_KEEP\nkeep = 5\n# " + file +
                         "\nlog-every = 3\ninput = [\"a b\", \"c\"]\nshuffle = false\n");
  CHECK(found.error.empty());
}

TEST_CASE("a variable of the environment may hold either name of a switch, and none that a command alone may say") {
  CHECK(settings_of({}).out.find("shuffle") == std::string::npos);
  const Variable no_shuffle("BERTRAND_NO_SHUFFLE", "1");
  CHECK(settings_of({}).out == "# BERTRAND_NO_SHUFFLE\nno-shuffle = 1\n");
  {
    const Variable shuffle("BERTRAND_SHUFFLE", "1");
    CHECK(settings_of({}).error ==
          "error: BERTRAND_NO_SHUFFLE: expected once, got another variable of the same meaning too\n");
  }
  const Variable resume("BERTRAND_RESUME", "1");
  CHECK(run_program("pretrain", {"--help"}).code == 0);
  CHECK(settings_of({}).error ==
        "error: BERTRAND_RESUME: expected on the command line alone, got it in the environment\n");
}

TEST_CASE("a variable of the environment whose name is nearly that of a flag is a warning, another one is not") {
  const Variable port("BERTRAND_PORT", "80"), modules("BERTRAND_MODULES", ""), other("BERTRAN_SEED", "1");
  CHECK(settings_of({}).error.empty());
  const Variable rate("BERTRAND_LEARNIG_RATE", "1e-4");
  CHECK(settings_of({}).error ==
        "warning: BERTRAND_LEARNIG_RATE: expected the variable of a flag, got another name; did you mean "
        "BERTRAND_LEARNING_RATE?\n");
  CHECK(run_program("pretrain", {"--help"}).error.empty());
}

TEST_CASE("values in quotes are those of TOML") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file, "output = \"a\\tb\\u00e9\"\nvocab-file = 'a\\tb'\ninput = [\"\"\"a\nb\"\"\", 'c \"d\"']\n");
  CHECK(settings_of({"--settings", file}).out ==
        "# " + file +
            "\noutput = \"a\\u0009b\xC3\xA9\"\nvocab-file = \"a\\\\tb\"\ninput = [\"a\\u000ab\", \"c \\\"d\\\"\"]\n");
}

TEST_CASE("a number is bare if it is one in TOML") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  for (const auto& [given, printed] :
       {std::pair(".5", "\".5\""), std::pair("1.", "\"1.\""), std::pair("0.5", "0.5"), std::pair("1e-4", "\"1e-4\""),
        std::pair("1_000", "\"1_000\""), std::pair("1.10", "\"1.10\""), std::pair("5 # 4", "\"5 # 4\""),
        std::pair("007", "\"007\"")})
    CHECK(settings_of({"--freeze", given}).out == "# command line\nfreeze = " + std::string(printed) + "\n");
  write_text(file, "seed = 1_000\nwarmup-ratio = 5e-1\nlearning-rate = 2e-5\n");
  CHECK(settings_of({"--settings", file}).out ==
        "# " + file + "\nseed = 1000\nwarmup-ratio = 0.5\nlearning-rate = 2e-05\n");
}

TEST_CASE("what --print-settings writes sets the same flags") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  const Outcome given =
      settings_of({"--input", "a \"b\"", "c\\d", "--seed", "7", "--no-shuffle", "--learning-rate", "2e-05"});
  write_text(file, given.out);
  const Outcome again = settings_of({"--settings", file});
  CHECK(again.out.substr(again.out.find('\n')) == given.out.substr(given.out.find('\n')));
}

TEST_CASE("--print-settings prints nothing if the program would not take the command") {
  for (const char* word : {"--lerning-rate", "x"}) {
    const Outcome outcome = settings_of({word, "1"});
    CHECK(outcome.code == 2);
    CHECK(outcome.out.empty());
    CHECK(outcome.error.starts_with("error: unknown "));
  }
}

TEST_CASE("a file of settings that sets no flag of the program, or one twice, is refused") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  const auto refusal = [&](const std::string& text) { return refusal_of(file, text); };
  CHECK(refusal("port = 3\n") ==
        "error: " + file +
            ": port: expected a flag of pretrain; hint: what is for one program alone stands under its name in []\n");
  CHECK(refusal("num_train_epochs = 3\n") ==
        "error: " + file + ": num_train_epochs: expected a flag of pretrain; hint: it is called --epochs here\n");
  CHECK(refusal("stepz = 3\n") == "error: " + file + ": stepz: expected a flag of pretrain; did you mean steps?\n");
  for (const std::string name : {"resume", "settings"})
    CHECK(refusal(name + " = true\n") ==
          "error: " + file + ": " + name + ": expected on the command line alone, got it in a file\n");
  CHECK(refusal("batch-size = 1\nbatch_size = 2\n") ==
        "error: " + file + ": batch_size: expected once in a section or before the first one, got twice\n");
  CHECK(run_program("pretrain", {"--settings", directory / "none.toml"}).code == 3);
}

TEST_CASE("a section of a file of settings is for one program or one of its commands, or is refused") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  const auto refusal = [&](const std::string& text) { return refusal_of(file, text); };
  const std::string error = "error: " + file + ": [";
  CHECK(refusal("[pretrian]\nseed = 3\n") ==
        error + "pretrian]: expected the name of a program; did you mean pretrain?\n");
  CHECK(refusal("foo.bar.seed = 3\n") == error + "foo]: expected the name of a program\n");
  CHECK(refusal("[nothing-like-it]\n") == error + "nothing-like-it]: expected the name of a program\n");
  CHECK(refusal("[pretrain.more]\nseed = 3\n") ==
        error + "pretrain.more]: expected the name of a command of pretrain\n");
  std::string all;
  for (const char* program : {"prepare", "finetune", "predict", "evaluate", "extract", "export", "report", "serve"})
    all += std::string("[") + program + "]\nof-another = 3\n";
  write_text(file, all + "[pretrain]\nseed = 3\n");
  CHECK(settings_of({"--settings", file}).out == "# " + file + "\nseed = 3\n");
  write_text(file, "threads = 2\n[prepare]\ninput = \"a\"\n[prepare.vocab]\nsize = 9\n[prepare.records]\nseed = 1\n");
  const auto prepare = [&](const std::string& command) {
    return run_program("prepare", {command, "--settings", file, "--print-settings"});
  };
  CHECK(prepare("vocab").out == "# " + file + "\nthreads = 2\ninput = \"a\"\nsize = 9\n");
  CHECK(prepare("records").out == "# " + file + "\nthreads = 2\ninput = \"a\"\nseed = 1\n");
  write_text(file, "[prepare.vocap]\nsize = 9\n");
  CHECK(prepare("vocab").error ==
        error + "prepare.vocap]: expected the name of a command of prepare; did you mean vocab?\n");
}

TEST_CASE("the innermost section of a file of settings decides, wherever it stands") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file,
             "seed = 1\nbatch-size = 8\nsave-every-minutes = 3\n[pretrain]\nsave-every = \"90s\"\nbatch_size = 9\n");
  CHECK(settings_of({"--settings", file}).out ==
        "# " + file + "\nseed = 1\nbatch-size = 9\nsave-every-minutes = 1.5\n");
  write_text(file, "[prepare.vocab]\nthreads = 3\n[prepare]\nthreads = 2\ninput = [\"a\", \"b\"]\n");
  CHECK(run_program("prepare", {"vocab", "--settings", file, "--print-settings"}).out ==
        "# " + file + "\nthreads = 3\ninput = [\"a\", \"b\"]\n");
}

TEST_CASE("a file of settings may begin with a byte order mark") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file, "\xEF\xBB\xBFseed = 3\n");
  CHECK(settings_of({"--settings", file}).out == "# " + file + "\nseed = 3\n");
}

TEST_CASE("the settings of a resumed run are printed with those of its record") {
  const support::TemporaryDirectory directory;
  const std::string run = directory / "run", record = run + "/run_config.json";
  std::filesystem::create_directory(run);
  write_text(record, R"({"program": "pretrain", "command": ["pretrain", "--input", "/a", "--seed", "7", "--keep=2"]})");
  const Outcome found = settings_of({"--resume", "--output", run, "--seed", "8"});
  CHECK(found.code == 0);
  CHECK(found.out ==
        "# command line\noutput = \"" + run + "\"\nseed = 8\n# " + record + "\ninput = \"/a\"\nkeep = 2\n");
}

TEST_CASE("a file of settings whose values are too many or none, or no TOML, is refused with key or line") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  const auto refusal = [&](const std::string& text) { return refusal_of(file, text); };
  const std::string error = "error: " + file;
  CHECK(refusal("steps = [1, 2]\n") == error + ": steps: expected one value, got [1, 2]\n");
  CHECK(refusal("steps = []\n") == error + ": steps: expected one value, got []\n");
  CHECK(refusal("input = []\n") == error + ": input: expected values, got []\n");
  CHECK(refusal("seed = 3\nsteps = 1979-05-27\n") ==
        error + ":2: steps: expected text, numbers, true or false, got a date\n");
  CHECK(refusal("seed = 1\noutput = \"a\\u0000b\"\n") ==
        error + ":2: output: expected text without \\u0000, got one\n");
  CHECK(refusal("input = [['a']]\n") == error + ":1: input: expected text, numbers, true or false, got a list\n");
  CHECK(refusal("input = [{a = 1}]\n") == error + ":1: input: expected text, numbers, true or false, got a table\n");
  for (const std::string wrong :
       {"steps = 1\nsteps = 2\n", "seed = 3\nsteps = \"x\n", "seed = 3\noutput = 'a b\n", "seed = 3\noutput = runs\n",
        "seed = 3\ninput = [\"a\", [pretrain]\n", "seed = 3\noutput = \"a\\q\"\n", "seed = 3\nsteps =\n",
        "seed = 3\nsteps\n", "seed = 3\n[#pretrain]\n", "seed = 3\n[", "seed = 3\n\u03AE = 2\n"}) {
    CAPTURE(wrong);
    const std::string said = refusal(wrong);
    CHECK(said.starts_with(error + ":2: expected TOML: error while parsing "));
    CHECK(std::ranges::count(said, '\n') == 1);
  }
}

TEST_CASE("a time between checkpoints is one setting, wherever and however it is said") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file, "save-every-minutes = 3\n");
  CHECK(settings_of({"--settings", file, "--save-every", "10min"}).out == "# command line\nsave-every-minutes = 10\n");
  write_text(file, "save-every = \"90s\"\n");
  CHECK(settings_of({"--settings", file, "--save-every-minutes", "5"}).out ==
        "# command line\nsave-every-minutes = 5\n");
  CHECK(refusal_of(file, "save-every = \"90s\"\nsave-every-minutes = 3\n") ==
        "error: " + file + ": save-every-minutes: expected once in a section or before the first one, got twice\n");
  const Variable variable("BERTRAND_SAVE_EVERY_MINUTES", "3");
  CHECK(settings_of({"--save-every=10min"}).out == "# command line\nsave-every-minutes = 10\n");
}

TEST_CASE("a list in a file of settings may have several lines") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file, "input = [\"a\",  # [the first\n  \"[b=\",\n  \"c\"]\nseed = 3\n");
  CHECK(settings_of({"--settings", file}).out == "# " + file + "\ninput = [\"a\", \"[b=\", \"c\"]\nseed = 3\n");
}

TEST_CASE("an error in a value names the file or the variable that it came from, if it is not on the command line") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  CHECK(refusal_of(file, "input = \"a\"\nseed = \"x\"\n").starts_with("error: " + file + ": --seed: expected "));
  CHECK(refusal_of(file, "input = \"a\"\nwarmup-ratio = 2\n")
            .starts_with("error: " + file + ": --warmup-ratio: expected "));
  CHECK(refusal_of(file, "input = \"a\"\ncased = \"maybe\"\n") ==
        "error: " + file + ": --cased: expected true or false, got \"maybe\"\n");
  write_text(file, "input = \"a\"\nwarmup-ratio = 2\n");
  const auto refusal = [&](const char* flag) { return run_program("pretrain", {"--settings", file, flag}).error; };
  for (const std::string flag : {"--cased", "--shuffle", "--no-shuffle"})
    CHECK(refusal((flag + "=99999999999999999999").c_str()) ==
          "error: " + flag + ": expected true or false, got \"99999999999999999999\"\n");
  CHECK(refusal("--no-shuffle=true").starts_with("error: " + file + ": --warmup-ratio: expected "));
  CHECK(refusal("--warmup-ratio=3").starts_with("error: --warmup-ratio: expected "));
  const Variable variable("BERTRAND_WARMUP_RATIO", "4");
  CHECK(refusal("--seed=3").starts_with("error: BERTRAND_WARMUP_RATIO: --warmup-ratio: expected "));
}

TEST_CASE("a quote in a comment and a # in quotes are what they are") {
  const support::TemporaryDirectory directory;
  const std::string file = directory / "settings.toml";
  write_text(file, "[pretrain]  # don't\nseed = 3  # it isn't \"4\noutput = \"runs/#3\"  # \"\n");
  CHECK(settings_of({"--settings", file}).out == "# " + file + "\nseed = 3\noutput = \"runs/#3\"\n");
}

TEST_CASE("whole numbers have units, and a time between checkpoints may be said in minutes") {
  CHECK(settings_of({"--save-every", "10min"}).out.find("save-every-minutes = 10\n") != std::string::npos);
  CHECK(settings_of({"--save-every=2h"}).out.find("save-every-minutes = 120\n") != std::string::npos);
  {
    const support::TemporaryDirectory directory;
    const std::string file = directory / "settings.toml";
    write_text(file, "save-every = \"90s\"\n");
    CHECK(settings_of({"--settings", file}).out == "# " + file + "\nsave-every-minutes = 1.5\n");
    const Variable variable("BERTRAND_SAVE_EVERY", "1h");
    CHECK(settings_of({}).out == "# BERTRAND_SAVE_EVERY\nsave-every-minutes = 60\n");
  }
  CHECK(settings_of({"--save_steps", "2min"}).out == "# command line\nsave-every-minutes = 2\n");
  const auto refusal = [](const std::string& steps) { return run_program("pretrain", {"--steps", steps}).error; };
  CHECK(refusal("100k").find("--steps") == std::string::npos);  // what is missing is --input
  CHECK(refusal("1.5M").find("--steps") == std::string::npos);
  CHECK(refusal("10kk").find("--steps: expected a whole number") != std::string::npos);
  CHECK(refusal("k").find("--steps: expected a whole number") != std::string::npos);
  CHECK(refusal("10G").find("--steps: expected a whole number, 1 to 1000000000") != std::string::npos);
}

TEST_CASE("flags of Hugging Face's and Google's programs are understood, or answered with what to do") {
  const Outcome renamed = settings_of({"--num_train_steps", "8", "--fp16", "True", "--output_dir=x"});
  CHECK(renamed.out == "# command line\nsteps = 8\nprecision = \"f16\"\noutput = \"x\"\n");
  CHECK(renamed.error ==
        "note: --num-train-steps is called --steps here\nnote: --fp16 is called --precision f16 here\n"
        "note: --output-dir is called --output here\n");
  CHECK(settings_of({"--lr_scheduler_type", "constant_with_warmup", "--optim=adamw_torch"}).out ==
        "# command line\nschedule = \"constant\"\noptimizer = \"adamw\"\n");
  CHECK(run_program("pretrain", {"--lr_scheduler_type=polynomial"}).error ==
        "error: --lr-scheduler-type: polynomial is not known here; hint: --schedule linear, as its power is 1 there by "
        "default; here polynomial is NVIDIA's, a square root\n");
  CHECK(
      run_program("pretrain", {"--resume_from_checkpoint", "run/checkpoint-2"}).error ==
      "error: --resume-from-checkpoint: expected no value, got run/checkpoint-2; hint: it is called --resume here, and "
      "goes on with the newest checkpoint in --output\n");
  const Outcome off = settings_of({"--use_fp16=false", "--amp", "False", "--bf16=0", "--train_batch_size=8"});
  CHECK(off.out == "# command line\nbatch-size = 8\n");
  CHECK(off.error ==
        "note: --use-fp16 that is false is left out\nnote: --amp that is false is left out\n"
        "note: --bf16 that is false is left out\n"
        "note: --train-batch-size is called --batch-size here, and counts the examples of all devices\n");
  for (const char* flag : {"--use-fp16=maybe", "--overwrite-output-dir=maybe"})
    CHECK(run_program("pretrain", {flag}).error.ends_with(": expected true or false, got \"maybe\"\n"));
  const Outcome refused = run_program("finetune", {"--gradient_accumulation_steps", "4"});
  CHECK(refused.code == 2);
  CHECK(refused.error.starts_with("error: unknown option --gradient-accumulation-steps; hint: --batch-size is"));
}

TEST_CASE("names of choices may have capitals, and are recorded without") {
  CHECK(
      settings_of({"--keep-moments", "--optimizer", "LAMB", "--precision=BF16", "--seed", "3", "--config", "Tiny"})
          .out ==
      "# command line\nkeep-moments = true\noptimizer = \"lamb\"\nprecision = \"bf16\"\nseed = 3\nconfig = \"Tiny\"\n");
  const support::TemporaryDirectory directory;
  write_text(directory / "settings.toml", "optimizer = \"LAMB\"\n");
  CHECK(run_program("pretrain", {"--settings", directory / "settings.toml", "--seed", "-1"})
            .error.starts_with("error: --seed: "));
  CHECK(run_program("finetune",
                    {"--task", "QQP", "--model", directory / "none", "--train", "x", "--output", directory / "y"})
            .error.starts_with("error: " + (directory / "none").string() + ": "));
}

TEST_CASE("flags for GPUs, evaluation and a second phase that other programs have are answered with ours") {
  struct Row {
    const char *program, *flag, *hint;
  };
  for (const auto& [program, flag, hint] : {Row{"finetune", "--num_gpu_cores", "--device cuda, or cuda:0,cuda:1 for "},
                                            {"finetune", "--eval_batch_size", "--micro-batch-size is how many"},
                                            {"finetune", "--version_2_with_negative", "--task squad2"},
                                            {"pretrain", "--phase2", "--recipe nvidia-phase2"},
                                            {"finetune", "--save_for_serving", "export --model DIR --format "}})
    CHECK(run_program(program, {flag, "4"}).error.find(std::string("; hint: ") + hint) != std::string::npos);
}

TEST_CASE("flags of finetune and of run_mlm.py are taken for pretrain's, and no advice names a flag that it lacks") {
  CHECK(settings_of({"--train_file", "a.txt", "--validation_file=b.txt", "--mlm_probability", "0.2"}).out ==
        "# command line\ninput = \"a.txt\"\neval-input = \"b.txt\"\nmasked-lm-prob = 0.2\n");
  const Outcome own = settings_of({"--model", "m", "--train", "a.txt", "--eval", "b.txt"});
  CHECK(own.error ==
        "note: --model is called --init here\nnote: --train is called --input here\n"
        "note: --eval is called --eval-input here\n");
  CHECK(own.out == settings_of({"--init", "m", "--input", "a.txt", "--eval-input", "b.txt"}).out);
  const auto said = [](const char* program, const char* flag) { return run_program(program, {flag}).error; };
  for (const char* flag : {"--load_best_model_at_end", "--greater_is_better", "--do_train", "--do_eval", "--do_predict",
                           "--data_dir", "--dataset_name", "--num_labels"}) {
    CAPTURE(flag);
    CHECK(said("finetune", flag).find("; hint: ") != std::string::npos);
    std::string words = said("pretrain", flag) + " ";
    std::ranges::replace_if(
        words, [](char c) { return c == ',' || c == '\n' || c == ';'; }, ' ');
    for (const char* lacking : {" --train ", " --eval ", " --predict "}) CHECK(words.find(lacking) == words.npos);
  }
  CHECK(said("pretrain", "--load_best_model_at_end").find("hint: leave it out: the last model is") !=
        std::string::npos);
  CHECK(said("predict", "--train").find("is called") == std::string::npos);
}

TEST_CASE("every example of --help uses flags that the program has, and no line is longer than 100") {
  for (const char* program :
       {"prepare", "pretrain", "finetune", "predict", "evaluate", "extract", "export", "report"}) {
    CAPTURE(program);
    const std::string help = run_program(program, {"--help"}).out;
    std::istringstream lines(help);
    bool in_examples = false;
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
      CAPTURE(line);
      in_examples = line == "Examples:" || (in_examples && !line.empty());
      const auto columns = std::ranges::count_if(line, [](char c) { return (c & 0xC0) != 0x80; });
      CHECK(columns <= 100);
      if (!in_examples) continue;
      if (line.starts_with("  #") || line == "Examples:") continue;
      ++examples;
      std::istringstream words(line);
      std::string all = help;
      for (std::string word, before; words >> word; before = word) {
        if (before == program && !word.starts_with("--")) all += run_program(program, {word, "--help"}).out;
        if (word.starts_with("--")) CHECK(all.find("\n  " + word + " ") != std::string::npos);
      }
    }
    CHECK(examples > 0);
  }
}
