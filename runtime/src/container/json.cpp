// json.cpp - see json.h.
// Threading: thread-safe.
#include "src/container/json.h"

#include <algorithm>

namespace hidet::runtime {
namespace {

int depth_of(std::string_view text) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      else if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      deepest = std::max(deepest, ++depth);
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where, const std::string& entry) {
  HIDET_REQUIRE(text.size() <= kMaxJsonBytes && depth_of(text) <= kMaxJsonDepth,
                ErrorCode::bad_file, where, "entry '", entry,
                "' is larger or deeper than such an entry can be");
  Json json = Json::parse(text, nullptr, false);
  HIDET_REQUIRE(!json.is_discarded(), ErrorCode::bad_file, where, "entry '", entry,
                "' is not valid JSON");
  return json;
}

void JsonView::fail(const std::string& message) const {
  throw Error(ErrorCode::bad_file, detail::concat("entry '", entry_, "': ", message), *where_);
}
JsonView JsonView::at(const char* key) const {
  if (!has(key)) fail(std::string("'") + key + "' is missing");
  return JsonView((*json_)[key], *where_, entry_ + "', '" + key);
}
std::vector<JsonView> JsonView::list() const {
  if (!json_->is_array()) fail("a list is expected");
  std::vector<JsonView> out;
  for (const Json& j : *json_) out.emplace_back(j, *where_, entry_);
  return out;
}
std::vector<std::pair<std::string, JsonView>> JsonView::members() const {
  if (!json_->is_object()) fail("an object is expected");
  std::vector<std::pair<std::string, JsonView>> out;
  for (const auto& [key, value] : json_->items())
    out.emplace_back(key, JsonView(value, *where_, entry_));
  return out;
}
std::string JsonView::text() const {
  if (!json_->is_string()) fail("a text is expected");
  return json_->get<std::string>();
}
int64_t JsonView::integer() const {
  if (!json_->is_number_integer() ||
      (json_->is_number_unsigned() && json_->get<uint64_t>() > INT64_MAX))
    fail("an integer is expected");
  return json_->get<int64_t>();
}
int JsonView::index() const {
  const int64_t value = integer();
  if (value < INT32_MIN || value > INT32_MAX) fail("a small integer is expected");
  return static_cast<int>(value);
}
bool JsonView::boolean() const {
  if (!json_->is_boolean()) fail("true or false is expected");
  return json_->get<bool>();
}
std::vector<int> JsonView::indices() const {
  std::vector<int> out;
  for (const JsonView& v : list()) out.push_back(v.index());
  return out;
}

}  // namespace hidet::runtime
