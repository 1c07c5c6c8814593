// key.cpp - cache keys: named fields in one text from which the fields can be read back.
// Each field is "name length\nvalue\n", so that no two lists of fields give the same text.
// Threading: values; thread-safe.
#include <charconv>

#include "hidet/backends/cache.h"

namespace hidet::backends {

CacheKey::CacheKey(std::string_view kind, std::string label) : label_(std::move(label)) {
  add("kind", kind);
}

CacheKey& CacheKey::add(std::string_view name, std::string_view value) {
  text_.append(name).append(" ").append(std::to_string(value.size())).append("\n");
  text_.append(value).append("\n");
  return *this;
}

std::vector<std::pair<std::string, std::string>> CacheKey::fields(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> found;
  while (!text.empty()) {
    const size_t space = text.find(' '), line = text.find('\n');
    if (space == text.npos || line == text.npos || space > line) return {};
    size_t length = 0;
    const auto [end, error] = std::from_chars(text.data() + space + 1, text.data() + line, length);
    if (error != std::errc() || end != text.data() + line) return {};
    const size_t begin = line + 1;
    if (length >= text.size() - begin || text[begin + length] != '\n') return {};
    found.emplace_back(text.substr(0, space), text.substr(begin, length));
    text.remove_prefix(begin + length + 1);
  }
  return found;
}

}  // namespace hidet::backends
