// bytes.h - Bytes: a view of memory together with whoever keeps it alive.
// Threading: values; thread-safe (the bytes are never written).
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hidet {

/// Immutable bytes with a shared owner: a compiler's output, or a part of a mapped file. Cheap to copy.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::shared_ptr<const void> owner, std::span<const std::byte> span)
      : owner_(std::move(owner)), span_(span) {}
  /// Takes the vector over.
  Bytes(std::vector<uint8_t> bytes) {
    auto kept = std::make_shared<const std::vector<uint8_t>>(std::move(bytes));
    span_ = std::as_bytes(std::span(*kept));
    owner_ = std::move(kept);
  }
  /// A copy of a text.
  static Bytes of(std::string_view text) {
    return Bytes(std::vector<uint8_t>(text.begin(), text.end()));
  }

  const std::byte* data() const { return span_.data(); }
  size_t size() const { return span_.size(); }
  bool empty() const { return span_.empty(); }
  std::span<const std::byte> span() const { return span_; }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(span_.data()), span_.size()};
  }
  const std::shared_ptr<const void>& owner() const { return owner_; }

 private:
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> span_;
};

}  // namespace hidet
