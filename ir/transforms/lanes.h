// lanes.h - may the turns of a loop run side by side? Private to ir/transforms.
#pragma once
#include <hidet/ir/stmt.h>

#include <functional>
#include <optional>
#include <unordered_map>

namespace hidet::ir {

/// What is known of a function's pointers.
struct Memory {
  std::unordered_map<const Node*, const Node*>
      roots;              ///< the variable whose memory an immutable pointer is into
  bool distinct = false;  ///< two different pointers never meet (Function::no_alias)
};
Memory memory_of(const Function& f);

/// True where one turn of `loop` may store what another one reads or stores, so that side by side (each statement for all `lanes`
/// turns at once) they could give something else. `stride`: how much an index grows with each turn, if that is known.
bool turns_meet(const For& loop, int lanes, const Memory& memory,
                const std::function<std::optional<int64_t>(const Expr&)>& stride);

}  // namespace hidet::ir
