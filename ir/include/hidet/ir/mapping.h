// mapping.h - task mappings: which tasks a worker does. spatial gives one task to each of several
// workers, repeat gives several tasks to one worker; a.b nests b's tasks inside a's.
// Threading: immutable values; thread-safe.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hidet::ir {

/// A composed mapping of a fixed rank. Empty: one worker, one task of rank 0.
struct TaskMapping {
  struct Item {
    bool is_spatial = false;
    std::vector<int64_t> shape;
    std::vector<int>
        order;  ///< dimensions from slowest to fastest; empty: as written (last fastest)
    friend bool operator==(const Item&, const Item&) = default;
  };
  std::vector<Item> items;  ///< outermost first

  int rank() const { return items.empty() ? 0 : static_cast<int>(items.front().shape.size()); }
  std::vector<int64_t> task_shape() const;  ///< product of the items' shapes
  int64_t num_workers() const;              ///< product of the spatial items' sizes
  std::string text() const;                 ///< "repeat(4, 1).spatial(8, 8)"
  friend bool operator==(const TaskMapping&, const TaskMapping&) = default;
};

}  // namespace hidet::ir
