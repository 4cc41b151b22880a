// docs/coming_from.md promises that its commands run. They do, in its order, on small data and with fewer steps.
// Nothing is named that does not exist, and nothing is forgotten that the other projects' pages name.
#include <doctest/doctest.h>

#include <regex>
#include <sstream>

#include "apps/docs/files_of_coming_from.h"
#include "bert/text/sentences.h"
#include "io/error.h"

using support::read_text;
using support::write_text;
namespace fs = std::filesystem;

namespace {

const std::string kPage = read_text(bertrand::paths::source + "/docs/coming_from.md");

/// What matches `pattern`'s first group, each once.
std::set<std::string> all_of(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator match(text.begin(), text.end(), expression), end; match != end; ++match)
    found.insert((*match)[1]);
  return found;
}

/// What is too large for a test, or not there, made small: shapes, lengths, devices, batches, the ids of words.
std::string made_small(std::string command) {
  const std::pair<const char*, const char*> changes[] = {
      {"--config (base|large)", "--config tiny"},
      {"--device cuda:0\\S*", "--replicas 2"},
      {"--steps \\d+", "--steps 2"},
      {"--epochs \\d+", "--epochs 1"},
      {"epochs=2,3,4", "epochs=1"},
      {"learning-rate=5e-5,3e-5,2e-5", "learning-rate=5e-5,3e-5"},
      {"batch-size=16,32", "batch-size=4"},
      {"--batch-size \\d+", "--batch-size 4"},
      {"--micro-batch-size \\d+", "--micro-batch-size 2"},
      {"--warmup-steps [1-9]\\d*", "--warmup-steps 1"},
      {"--recipe (\\S+)", "--recipe $1 --steps 2 --batch-size 4 --max-seq-length 32"},
      {"--max-seq-length (384|512)", "--max-seq-length 96"},
      {"--doc-stride 128", "--doc-stride 16"},
      {"--max-query-length 64", "--max-query-length 16"},
      {"--eval-every 50", "--eval-every 1"},
      {"mpirun -n 2", "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"},
      {"--output corpus\\.txt", "--output corpus.txt --overwrite"},  // it is there for builds without ICU
      {"--port 9000 &", "--port 0 >serve.log 2>&1 &"},
      {"http://localhost:9000", "$(sed -n 's/^listening on //p' serve.log)"},
      {"sleep 1", "sleep 0.1"},
      {"^curl ", "curl -sSf "},
      {"\\b(10[12]|20\\d\\d)\\b", "7"}};
  for (const auto& [from, to] : changes) command = std::regex_replace(command, std::regex(from), to);
  // Replicas and processes share micro-batches; other commands take the default.
  if (command.find("finetune") != std::string::npos && command.find("--task squad") != std::string::npos &&
      command.find("--max-seq-length") == std::string::npos)
    command += " --max-seq-length 96";
  return command;
}

bool has_icu() {
  try {
    const bertrand::text::SentenceSplitter splitter("en");
    return true;
  } catch (const bertrand::Error&) {
    return false;
  }
}

/// Why a command cannot run here, or "".
std::string lacking(const std::string& command) {
  static const auto there = [](const char* program) {
    return std::system((std::string("command -v ") + program + " >/dev/null").c_str()) == 0;
  };
  static const bool serves = fs::exists(bertrand::paths::binary + "/serve") && there("curl");
  static const bool spreads = fs::exists(bertrand::paths::binary + "/libbertrand_mpi.so") && there("mpirun");
  static const bool cuts = has_icu();
  const auto begins = [&](const char* pattern) { return std::regex_search(command, std::regex(pattern)); };
  if (!serves && begins("^(serve|until serve|curl|kill) ")) return "there is no serve or no curl";
  if (!spreads && begins("^mpirun ")) return "there is no MPI";
  if (!cuts && begins("^prepare sentences ")) return "this build has no ICU";
  return "";
}

/// The blocks of the page, made small, without what cannot run here. A server that a failure left ends with its block.
std::vector<std::string> scripts() {
  std::vector<std::string> all;
  std::istringstream page(kPage);
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (!line.starts_with("```")) {
      if (!inside) continue;
      if (const std::string why = lacking(line); why.empty()) all.back() += made_small(line) + "\n";
      else MESSAGE("SKIPPED: " << line << ": " << why);
    } else if ((inside = !inside)) {
      all.emplace_back("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\nrm -f serve.log\n");
    }
  }
  return all;
}

/// The section that begins with this heading, and the one that holds for all projects.
std::string answers_to(const std::string& heading) {
  std::string answers;
  for (const std::string& each : {std::string("What is the same everywhere"), heading}) {
    const std::size_t begin = kPage.find("\n## " + each + "\n");
    REQUIRE_MESSAGE(begin != std::string::npos, each);
    answers += kPage.substr(begin, kPage.find("\n## ", begin + 1) - begin);
  }
  return answers;
}

/// Whether `name` is there as a word of its own.
bool names(const std::string& text, const std::string& name) {
  const auto in_word = [&](std::size_t at) {
    return at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_');
  };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1))
    if (!in_word(at - 1) && !in_word(at + name.size())) return true;
  return false;
}

/// Whether a section answers to this name. What is typed, as data or data_dir, may be a word of any sentence: it must
/// stand as code, alone, with dashes before it, or first or last of a command. Proper names and phrases need not.
bool answers(const std::string& section, const std::string& name) {
  if (std::ranges::any_of(name, [](char c) { return c == ' ' || (c >= 'A' && c <= 'Z'); })) return names(section, name);
  return std::ranges::any_of(all_of(section, "`-*([^`\n]+)`"), [&](const std::string& code) {
    return code == name || code.starts_with(name + " ") || code.starts_with(name + "=") || code.ends_with(" " + name);
  });
}

/// The flag that `program` takes a foreign one for, "" if it does not know it.
std::string flag_here(const std::string& program, const std::string& foreign) {
  const std::string error = support::run_program(program, {"--" + foreign, "1"}).error;
  if (error.find("unknown option") != std::string::npos) return "";
  const std::set<std::string> renamed = all_of(error, "note: --\\S+ is called (--[a-z0-9-]+)");
  return renamed.empty() ? "--" + std::regex_replace(foreign, std::regex("_"), "-") : *renamed.begin();
}

/// "a, b": a and b.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin < list.size(); begin += words.back().size() + 2)
    words.push_back(list.substr(begin, list.find(", ", begin) - begin));
  return words;
}

struct Project {
  std::string heading;
  std::string names;  ///< of commands, flags and features on its page, with commas between them
};

const Project kProjects[] = {
    {"The MirroredStrategy adaptation of Google's BERT",
     "MirroredStrategy, EstimatorSpec, TF 1.14, tensorflow-estimator, uncased_L-12_H-768_A-12, vocab.txt, "
     "bert_config.json, run_create.sh, run_pre.sh, /tmp/pretraining_output, train.tsv, dev.tsv, test.tsv, data, "
     "run_classify.sh, nvprof, sgemm, ncclAllReduce"},
    {"The MSMARCO re-ranker with towers",
     "run_multi_gpu.py, data_dir, tfrecord, bert_config_file, bert_config_file_large, init_checkpoint, "
     "init_checkpoint_large, output_dir, num_gpu, is_training, is_fine_tuning, num_labels, max_seq_length, "
     "query_length, document_length, train_batch_size, learning_rate, num_train_steps, num_warmup_steps, "
     "save_checkpoints_steps, iterations_per_loop, create_pretraining_data.py, bert-multi-gpu.ipynb, Colab, "
     "Jupyter, 2~3 times faster, To sort them by length, Dependencies, Tensorflow, Tensorflow-gpu"},
    {"The speed study",
     "run_pretraining.py, do_train, train_batch_size, multi_gpu, use_fp16, MirroredStrategy, "
     "MultiWorkerMirroredStrategy, CollectiveAllReduceStrategy, enable_mixed_precision_graph_rewrite, "
     "loss_scale.py, _num_good_steps, dtypes.int32, LENGTH=512, horovod, batch 14, fits, OOM, NaN, "
     "batch sizes and vocabularies, 2k steps, Estimator, RunConfig, EstimatorSpec, TPUEstimator, optimization.py, "
     "guotong1988's BERT-GPU, RTX 2080 Ti, V100, python 3.6, tensorflow-gpu"},
    {"HaoyuHu/bert-multi-gpu",
     "run_custom_classifier.py, run_seq_labeling.py, task_name, do_lower_case, do_train, do_eval, do_predict, "
     "save_for_serving, data_dir, vocab_file, bert_config_file, init_checkpoint, max_seq_length, "
     "train_batch_size, learning_rate, num_train_epochs, use_gpu, num_gpu_cores, use_fp16, output_dir, TPU, NCCL, "
     "MirroredStrategy, SavedModel, DataProcessor, processors, get_train_examples, get_dev_examples, "
     "get_test_examples, get_labels, InputExample, guid, text_a, text_b, saved_model_cli show, serving_default, "
     "input_ids, input_mask, segment_ids, label_ids, probabilities, Bazel, tensorflow_model_server, "
     "rest_api_port, model_name, model_base_path, enable_batching, gRPC, curl, :predict"},
    {"Habana's BERT demo",
     "demo_bert -h, demo_bert finetuning, demo_bert pretraining, -d bf16, -m base, -m large, -t mrpc, -t squad, "
     "-s 384, -b 32, -b 64 8, v, each worker, HABANA_USE_PREALLOC_BUFFER_FOR_ALLREDUCE, HABANA_SYNAPSE_LOGGER=range, "
     "MULTI_HLS_IPS, OpenMPI, ssh keys, authorized_keys, bookswiki, overfit, LAMB, AdamW, hvd.size(), LARGE MRPC, "
     "Masked Language Model, Next Sentence Prediction"},
    {"google-research/bert",
     "create_pretraining_data.py, input_file, output_file, vocab_file, do_lower_case, max_seq_length, "
     "max_predictions_per_seq, masked_lm_prob, short_seq_prob, dupe_factor, random_seed, do_whole_word_mask, "
     "run_pretraining.py, do_train, do_eval, train_batch_size, eval_batch_size, learning_rate, num_train_steps, "
     "num_warmup_steps, save_checkpoints_steps, iterations_per_loop, max_eval_steps, run_classifier.py, "
     "run_classifier_with_tfhub.py, task_name, do_predict, num_train_epochs, warmup_proportion, test_results.tsv, "
     "run_squad.py, train_file, predict_file, version_2_with_negative, null_score_diff_threshold, n_best_size, "
     "max_answer_length, max_query_length, doc_stride, predict_batch_size, verbose_logging, nbest_predictions.json, "
     "null_odds.json, evaluate-v1.1.py, evaluate-v2.0.py, extract_features.py, layers, batch_size, "
     "use_one_hot_embeddings, use_tpu, tpu_name, tpu_zone, gcp_project, master, num_tpu_cores"},
    {"NVIDIA's DeepLearningExamples",
     "run_pretraining.sh, gradient_accumulation_steps, num_accumulation_steps, allreduce_post_accumulation, "
     "allreduce_post_accumulation_fp16, phase2, phase1_end_step, resume_from_checkpoint, resume_step, "
     "init_loss_scale, use_xla, manual_fp16, amp, horovod, horovodrun, local_rank, input_dir, config_file, "
     "checkpoint_activations, num_steps_per_checkpoint, log_freq, dllog_path, run_ner.py, LDDL, Parquet, "
     "steps_this_run, no_dense_sequence_output, SWAG, relation extraction, Triton, TensorRT"},
    {"Hugging Face's examples and pipelines",
     "run_glue.py, run_ner.py, run_qa.py, run_mlm.py, pipeline, model_name_or_path, train_file, validation_file, "
     "test_file, per_device_train_batch_size, learning_rate, weight_decay, adam_epsilon, max_grad_norm, "
     "lr_scheduler_type, load_best_model_at_end, metric_for_best_model, EarlyStoppingCallback, save_total_limit, "
     "doc_stride, label_all_tokens, push_to_hub, accelerate, Trainer, run_swag.py, torchrun, fsdp, deepspeed, "
     "dataset_name, pad_to_max_length, max_train_samples, mlm_probability"}};

}  // namespace

TEST_CASE("the commands of the page for those who come from other projects run") {
  const support::TemporaryDirectory directory;
  support::write_files_of_coming_from(directory);
  const std::vector<std::string> all = scripts();
  REQUIRE(all.size() > 9);
  for (const std::string& script : all) {
    write_text(directory / "script", script);
    const int status = std::system(("cd " + (directory / "").string() + " && PATH=" + bertrand::paths::binary +
                                    ":$PATH OMP_NUM_THREADS=1 timeout 300 bash -ex script >log 2>&1")
                                       .c_str());
    const std::string log = read_text(directory / "log");
    CHECK_MESSAGE(status == 0, log, "\n", support::read_if_there(directory / "serve.log"));
    if (script.find("\ncurl ") != std::string::npos) CHECK(log.find("\"predictions\": [[0.") != std::string::npos);
  }
}

TEST_CASE("the page answers every command, flag and feature that the pages of those projects name") {
  for (const Project& project : kProjects) {
    const std::string section = answers_to(project.heading);
    for (const std::string& name : words_of(project.names))
      CHECK_MESSAGE(answers(section, name), project.heading, ": ", name);
  }
}

TEST_CASE("the page promises no flag that no program has") {
  const std::string manual = read_text(bertrand::paths::source + "/docs/cli.md");
  for (const std::string& flag : all_of(kPage, "[^-](--[a-z][a-z0-9_-]*)"))
    if (flag != "--hostfile") CHECK_MESSAGE(names(manual, flag), flag);  // that one is mpirun's
}

TEST_CASE("flags that may be typed as in other projects become the flags that the page gives for them") {
  std::size_t count = 0;
  std::istringstream page(kPage);
  for (std::string row; std::getline(page, row);) {
    const std::size_t cell = row.find(" | ");
    const std::string here = cell == row.npos ? "" : row.substr(cell, row.find(" |", cell + 3) - cell);
    for (const std::string& flag : all_of(row, "`([a-z0-9_]+)` °")) {
      CAPTURE(flag);
      const std::string in_finetune = flag_here("finetune", flag), in_pretrain = flag_here("pretrain", flag);
      CHECK(in_finetune + in_pretrain != "");
      for (const std::string& own : {in_finetune, in_pretrain})
        if (!own.empty()) CHECK_MESSAGE(names(here, own), here, ": ", own);
      ++count;
    }
  }
  CHECK(count > 10);
}
