// json.h - JSON of files: parsed under bounds of size and depth, values read with errors that name entry and key.
// Needs: nlohmann/json; for source files of the runtime only.
// Threading: pure functions; thread-safe.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <vector>

#include "hidet/runtime/error.h"

namespace hidet::runtime {

using Json = nlohmann::json;
inline constexpr size_t kMaxJsonBytes = size_t{64} << 20;
inline constexpr int kMaxJsonDepth = 32;

/// Throws Error(bad_file) at `where` that names the entry.
Json parse_json(std::string_view text, const std::string& where, const std::string& entry);

/// One object (or list) of an entry.
class JsonView {
 public:
  JsonView(const Json& json, const std::string& where, std::string entry)
      : json_(&json), where_(&where), entry_(std::move(entry)) {}
  bool has(const char* key) const { return json_->is_object() && json_->contains(key); }
  JsonView at(const char* key) const;
  std::vector<JsonView> list() const;                             ///< elements of a list
  std::vector<std::pair<std::string, JsonView>> members() const;  ///< of an object
  std::string text() const;
  int64_t integer() const;
  int index() const;  ///< an integer that fits int
  bool boolean() const;
  bool is_text() const { return json_->is_string(); }
  std::vector<int> indices() const;
  [[noreturn]] void fail(const std::string& message) const;

 private:
  const Json* json_;
  const std::string* where_;
  std::string entry_;
};

}  // namespace hidet::runtime
