// node_map.h - a map from nodes by identity, with open addressing: rewrites and walks ask it for every shared node, and most of their
// time went to std's. It does not keep its nodes alive.
// Threading: one thread at a time.
#pragma once
#include <hidet/ir/node.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>
#include <vector>

namespace hidet::ir {

template <class Value>
class NodeMap {
 public:
  /// The value of `n`; null where it has none.
  Value* find(const Node* n) {
    if (slots_.empty()) return nullptr;
    Slot& slot = place(slots_, n);
    return slot.node ? &slot.value : nullptr;
  }
  /// True where `n` had no value and now has this one.
  bool insert(const Node* n, Value value = {}) {
    if (2 * (count_ + 1) > slots_.size()) grow();
    Slot& slot = place(slots_, n);
    if (slot.node) return false;
    slot = {n, std::move(value)};
    count_++;
    return true;
  }
  void clear() {
    slots_.clear();
    count_ = 0;
  }

 private:
  struct Slot {
    const Node* node = nullptr;
    [[no_unique_address]] Value value{};
  };
  static Slot& place(std::vector<Slot>& slots, const Node* n) {
    // Fibonacci hashing: addresses differ in their middle bits.
    size_t at = (reinterpret_cast<uintptr_t>(n) * 0x9e3779b97f4a7c15u) >> 32;
    while (slots[at &= slots.size() - 1].node && slots[at].node != n) at++;
    return slots[at];
  }
  void grow() {
    std::vector<Slot> larger(std::max<size_t>(16, slots_.size() * 4));
    for (Slot& s : slots_)
      if (s.node) place(larger, s.node) = std::move(s);
    slots_ = std::move(larger);
  }
  std::vector<Slot> slots_;  ///< a power of two of them, at most half in use
  size_t count_ = 0;
};

using NodeSet = NodeMap<std::monostate>;

}  // namespace hidet::ir
