// Instances made, encoded in parallel and written in order.
#include "bert/data/google_records.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <span>

#include "bert/data/instance_spill.h"
#include "bert/data/pretraining_text_masks.h"
#include "bert/data/tf_example.h"
#include "io/error.h"
#include "io/file_replacer.h"
#include "io/in_order.h"
#include "io/tfrecord.h"

namespace bertrand::data {
namespace {

constexpr std::size_t kAtOnce = 4096;  // instances that all threads encode at a time
constexpr double kDrawingShare = 0.4;  // of the time, about
constexpr std::uint64_t kDrawnPerReport = 1024;

/// Encodes instances as the script's tf.Example, padded with zeros.
class InstanceEncoder {
 public:
  InstanceEncoder(const Corpus& corpus, const text::Vocabulary& vocabulary, const GoogleOptions& options)
      : corpus_(corpus),
        vocabulary_(vocabulary),
        length_(static_cast<std::size_t>(options.max_seq_length)),
        predictions_(static_cast<std::size_t>(options.max_predictions)) {}

  /// Appends the record of an instance to `out`, and adds it to `counts`.
  void append(const Instance& instance, std::string& out, RecordCounts& counts) {
    instance_tokens(instance, corpus_, vocabulary_, ids_);
    const std::size_t tokens = ids_.size();
    mask_.assign(tokens, 1);
    segments_.assign(tokens, 1);
    std::fill_n(segments_.begin(), instance.a_count + 2, 0);
    positions_.clear();
    labels_.clear();
    for (const MaskedToken& masked : instance.masked) {
      positions_.push_back(static_cast<std::int32_t>(masked.position));
      labels_.push_back(ids_[masked.position]);
      ids_[masked.position] = masked.replacement;
    }
    weights_.assign(positions_.size(), 1.0f);
    for (auto* padded : {&ids_, &mask_, &segments_}) padded->resize(length_);
    for (auto* padded : {&positions_, &labels_}) padded->resize(predictions_);
    weights_.resize(predictions_);

    example_.clear();
    example_.add("input_ids", std::span<const std::int32_t>(ids_));
    example_.add("input_mask", std::span<const std::int32_t>(mask_));
    example_.add("masked_lm_ids", std::span<const std::int32_t>(labels_));
    example_.add("masked_lm_positions", std::span<const std::int32_t>(positions_));
    example_.add("masked_lm_weights", std::span<const float>(weights_));
    const std::int32_t label = instance.is_random_next ? 1 : 0;
    example_.add("next_sentence_labels", std::span<const std::int32_t>(&label, 1));
    example_.add("segment_ids", std::span<const std::int32_t>(segments_));
    message_.clear();
    example_.append_to(message_);
    io::append_record(out, message_);

    counts.records += 1;
    counts.tokens += tokens;
    counts.masked += instance.masked.size();
    counts.random_next += instance.is_random_next ? 1 : 0;
  }

 private:
  const Corpus& corpus_;
  const text::Vocabulary& vocabulary_;
  std::size_t length_;
  std::size_t predictions_;
  std::vector<std::int32_t> ids_, mask_, segments_, positions_, labels_;
  std::vector<float> weights_;
  ExampleBuilder example_;
  std::string message_;
};

/// What one thread made of some instances: the framed records of each output file.
struct Encoded {
  std::vector<std::string> files;
  RecordCounts counts;
};

class RecordsJob {
 public:
  RecordsJob(const Corpus& corpus, const text::Vocabulary& vocabulary, const GoogleOptions& options,
             const RecordFiles& output, io::Files& files)
      : corpus_(corpus),
        vocabulary_(vocabulary),
        options_(options),
        output_(output),
        instances_(corpus, vocabulary, options),
        spill_(files, output.files.at(0).string() + fmt::format(".instances.tmp-{}", ::getpid()),
               most_masked(options)) {
    for (const auto& file : output.files) writers_.push_back(std::make_unique<io::FileReplacer>(files, file));
  }

  RecordCounts run() {
    draw();
    order_ = instances_.order();
    write();
    for (const auto& writer : writers_) writer->finish();
    for (const auto& writer : writers_) writer->publish();
    return counts_;
  }

 private:
  static std::size_t most_masked(const GoogleOptions& options) {
    return static_cast<std::size_t>(prediction_count(
        options.max_seq_length, {.probability = options.masked_lm_prob, .max_predictions = options.max_predictions}));
  }

  void report(double share) const {
    if (output_.progress) output_.progress(share);
  }

  void draw() {
    const double documents = static_cast<double>(corpus_.documents.count()) * static_cast<double>(options_.dupe_factor);
    instances_.draw([&](const Instance& instance, std::uint64_t documents_done) {
      spill_.append(instance);
      if (instances_.count() % kDrawnPerReport == 0)
        report(kDrawingShare * static_cast<double>(documents_done) / documents);
    });
    spill_.finish();
  }

  void write() {
    const std::size_t batch = kAtOnce / static_cast<std::size_t>(std::max(output_.threads, 1)) + 1;
    const auto instances = static_cast<double>(order_.size());
    io::in_order(
        {.count = order_.size(), .threads = output_.threads, .batch = batch},
        [&](std::size_t begin, std::size_t end) { return encode(begin, end); },
        [&](const Encoded& encoded) {
          append(encoded);
          report(kDrawingShare + (1 - kDrawingShare) * static_cast<double>(counts_.records) / instances);
        });
  }

  Encoded encode(std::size_t begin, std::size_t end) const {
    Encoded encoded{.files = std::vector<std::string>(writers_.size()), .counts = {}};
    InstanceEncoder encoder(corpus_, vocabulary_, options_);
    Instance instance;
    for (std::size_t i = begin; i < end; ++i) {
      spill_.read(order_[i], instance);
      encoder.append(instance, encoded.files[i % writers_.size()], encoded.counts);
    }
    return encoded;
  }

  void append(const Encoded& encoded) {
    for (std::size_t i = 0; i < writers_.size(); ++i) {
      writers_[i]->write(encoded.files[i]);
      counts_.bytes += encoded.files[i].size();
    }
    counts_.records += encoded.counts.records;
    counts_.tokens += encoded.counts.tokens;
    counts_.masked += encoded.counts.masked;
    counts_.random_next += encoded.counts.random_next;
  }

  const Corpus& corpus_;
  const text::Vocabulary& vocabulary_;
  const GoogleOptions& options_;
  const RecordFiles& output_;
  GoogleInstances instances_;
  InstanceSpill spill_;
  std::vector<std::unique_ptr<io::FileReplacer>> writers_;
  std::vector<std::uint32_t> order_;
  RecordCounts counts_;
};

}  // namespace

RecordCounts write_google_records(const Corpus& corpus, const text::Vocabulary& vocabulary,
                                  const GoogleOptions& options, const RecordFiles& output, io::Files& files) {
  return RecordsJob(corpus, vocabulary, options, output, files).run();
}

}  // namespace bertrand::data
