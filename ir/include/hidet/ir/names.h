// names.h - names made unique by a number behind them.
// Threading: one thread at a time.
#pragma once
#include <string>
#include <unordered_map>

namespace hidet::ir {

class UniqueNames {
 public:
  void reserve(const std::string& name) { next_.emplace(name, 1); }
  /// `base` where it is free, else base_1, base_2 ...: the first that is free.
  std::string fresh(const std::string& base) {
    if (next_.emplace(base, 1).second) return base;
    for (int& next = next_.at(base);;) {
      const auto [name, made] = next_.emplace(base + "_" + std::to_string(next++), 1);
      if (made) return name->first;
    }
  }

 private:
  std::unordered_map<std::string, int>
      next_;  ///< every name, and the number to try first behind it
};

}  // namespace hidet::ir
