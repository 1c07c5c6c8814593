// why.cpp - says why a key is not in the build cache: what differs from the entry most like it.
// Threading: thread-safe; reads the folder only.
#include <algorithm>

#include "cache/store.h"
#include "hidet/runtime/error.h"

namespace hidet::backends {
namespace {

using Fields = std::vector<std::pair<std::string, std::string>>;

constexpr size_t kShortValue = 160;

/// The first line in which two long texts differ, with its number.
std::string text_difference(std::string_view there, std::string_view asked) {
  const size_t length = std::min(there.size(), asked.size());
  const size_t at =
      std::mismatch(there.begin(), there.begin() + length, asked.begin()).first - there.begin();
  const auto line_at = [at](std::string_view text) {
    const size_t begin = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    return std::string(text.substr(begin, text.find('\n', at) - begin).substr(0, kShortValue));
  };
  const auto number = 1 + std::count(asked.begin(), asked.begin() + at, '\n');
  return detail::concat("differs from line ", number, " on ('", line_at(there), "' there, '",
                        line_at(asked), "' asked)");
}

/// What differs between two keys, one phrase a field; empty when nothing does.
std::string difference(const Fields& there, const Fields& asked) {
  std::string text;
  const size_t count = std::max(there.size(), asked.size());
  for (size_t i = 0; i < count; ++i) {
    if (i < there.size() && i < asked.size() && there[i] == asked[i]) continue;
    if (!text.empty()) text += "; ";
    if (i >= there.size() || i >= asked.size() || there[i].first != asked[i].first)
      return text + "the fields are others";
    const auto& [name, old_value] = there[i];
    const std::string& new_value = asked[i].second;
    if (old_value.size() <= kShortValue && new_value.size() <= kShortValue)
      text += detail::concat(name, " is '", old_value, "' there, '", new_value, "' asked");
    else text += name + " " + text_difference(old_value, new_value);
  }
  return text;
}

/// How much two keys have in common: bytes of equal fields.
size_t likeness(const Fields& a, const Fields& b) {
  size_t common = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (a[i] == b[i]) common += 1 + a[i].second.size();
  return common;
}

}  // namespace

std::string BuildCache::why(const CacheKey& key) const {
  if (!enabled()) return "the build cache is off or has no folder";
  cache::EntryContent content;
  const auto result = cache::read_entry(impl_->path_of(key), cache::ReadDepth::all, false, content);
  if (result == cache::ReadResult::damaged) return "the entry is damaged";
  if (result == cache::ReadResult::good)
    return content.key == key.text() ? "the entry is there" : "another key has the same digest";

  const Fields asked = CacheKey::fields(key.text());
  size_t best = 0, entries = 0;
  std::string nearest, name;
  for (const CacheFile& file : impl_->files()) {
    cache::EntryContent other;
    if (file.temporary || cache::read_entry(impl_->path_of_file(file.name), cache::ReadDepth::head,
                                            false, other) != cache::ReadResult::good)
      continue;
    ++entries;
    const Fields there = CacheKey::fields(other.key);
    const bool same_kind = !there.empty() && !asked.empty() && there[0] == asked[0];
    const size_t like =
        same_kind ? likeness(there, asked) + (other.label == key.label() ? kShortValue : 0) : 0;
    if (like <= best) continue;
    best = like;
    nearest = difference(there, asked);
    name = other.label;
  }
  if (best == 0) return detail::concat("no entry is like it (", entries, " in the cache)");
  return detail::concat("the nearest entry ('", name, "') is not the same: ", nearest);
}

std::string BuildCache::why_label(std::string_view label) const {
  std::string text;
  Fields newest;
  size_t found = 0;
  for (const CacheEntry& entry : list()) {
    cache::EntryContent content;
    if (entry.damaged || entry.label != label ||
        cache::read_entry(impl_->path_of_file(entry.file), cache::ReadDepth::head, false,
                          content) != cache::ReadResult::good)
      continue;
    const Fields fields = CacheKey::fields(content.key);
    if (found++ == 0) {
      newest = fields;
      text += detail::concat(entry.file, ": ", entry.kind, " for ", entry.target,
                             ", the last one used\n");
    } else {
      text += detail::concat(entry.file, ": ", difference(fields, newest), "\n");
    }
  }
  return found > 0 ? text : detail::concat("no entry is called '", label, "'\n");
}

}  // namespace hidet::backends
