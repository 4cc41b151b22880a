// JSON piece by piece, for readers that hold no more of it than they need.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "io/json.h"

namespace bertrand::io {

/// A reader that is called for each piece of one JSON value. The guards that every JSON has here are its own. What it
/// is made for says where a text, an object or a list may stand, and where a number, true, false or null (nlohmann's
/// functions of these names, which return true).
class JsonStream : public nlohmann::json_sax<Json> {
 public:
  explicit JsonStream(JsonSource source) : source_(std::move(source)) {}

  /// Reads all of `text`. `let_go` is called now and then while it is looked through before. Throws Error as
  /// parse_json() does, and as the functions below do.
  void read(std::string_view text, const std::function<void()>& let_go = {});

  bool start_object(std::size_t) final;
  bool end_object() final;
  bool start_array(std::size_t) final;
  bool end_array() final;
  bool key(std::string& key) final;
  bool string(std::string& value) final;
  bool binary(Json::binary_t&) final { return false; }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) final;

 protected:
  virtual void open_object() = 0;
  virtual void close_object() = 0;  ///< keys() are all that it has
  virtual void open_list() = 0;
  virtual void close_list() = 0;
  virtual void name(std::string& key) = 0;  ///< of the value that comes next
  virtual void text(std::string& value) = 0;
  /// What begins a message about this piece.
  virtual std::string place() const { return source_.name; }

  const JsonSource& source() const { return source_; }
  /// Those of the innermost object so far.
  const std::set<std::string>& keys() const { return keys_.back(); }

 private:
  void enter();
  void refuse_nul(const std::string& text) const;

  const JsonSource source_;
  std::string_view text_;
  // Of the objects around; a list has none. No hash: keys that collide could be made.
  std::vector<std::set<std::string>> keys_;
};

}  // namespace bertrand::io
