// one_row.cpp - a task reads four panels at once: as many chains of multiply-adds as hide their latency, and as many streams as
// memory serves best. Nothing is prefetched: from the L2 and L3 caches that costs a third of the time (docs/cpu_kernels.md, 3a).
#include "schedules/one_row.h"

#include <algorithm>

namespace hidet::graph {
using namespace ir;

namespace {
constexpr int64_t kPanels = 4;
/// Bytes of the weight that a piece of the parallel loop should at least read.
constexpr int64_t kGrainBytes = 1 << 16;

std::string name_of(int64_t columns) { return "row_" + std::to_string(columns); }
}  // namespace

OneRow::OneRow(const FusedTask& fused, const CpuTargetInfo& target)
    : fused_(fused),
      shape_(tile_shape(target, kPanels)),
      dtype_(dtype_of(fused.anchor.inputs[0])),
      k_(extent_of(fused.anchor.inputs[0], shape_of(fused.anchor.inputs[0]).size() - 1)),
      n_(fused.anchor.attrs.at("n")) {}

std::vector<Function> OneRow::functions() const {
  std::vector<Function> out;
  for (int64_t columns : block_widths(n_, shape_)) out.push_back(block(columns));
  return out;
}

/// row_C(parameters..., column block[, the widened row])
Function OneRow::block(int64_t columns) const {
  Function f;
  f.name = name_of(columns);
  f.kind = FuncKind::cpu_internal;
  f.params = fused_.parameters();
  const VarRef number_of_block = make_var("block", Type(u32));
  f.params.push_back(number_of_block);
  const VarRef wide = make_var("a", Type::pointer(Type(f32)));
  if (widens()) f.params.push_back(wide);
  std::vector<Stmt> body;
  const Value block = declare(body, "at", Value(make_cast(number_of_block, Type(i64))));
  const std::vector<Value> row(shape_of(fused_.anchor.inputs[0]).size() - 1, number(0));
  TileKernel t;
  t.shape = shape_;
  t.columns = columns;
  t.panel_stride = k_ * kPanelColumns;
  t.run = k_;
  t.row_offset = {0};
  t.a = widens() ? Value(Expr(wide)) : pointer_to(fused_.anchor.inputs[0]);
  t.b = declare(body, "b",
                pointer_to(fused_.anchor.inputs[1]) + block * number(k_ * shape_.columns()));
  t.store = [&](int64_t, const Value& c, const Value& value) {
    std::vector<Value> indices = row;
    indices.push_back(block * number(shape_.columns()) + c);
    return fused_.store(indices, value);
  };
  body.push_back(tile_kernel(t));
  f.body = make_seq(std::move(body));
  return f;
}

Stmt OneRow::run() const {
  const int64_t blocks = (n_ + shape_.columns() - 1) / shape_.columns();
  const auto bytes = static_cast<int64_t>(dtype_.bytes());
  const int64_t grain = std::max<int64_t>(1, kGrainBytes / (bytes * k_ * shape_.columns()));
  std::vector<Stmt> body;
  Value wide;
  if (widens()) {
    wide = declare(body, "wide", scratch_floats(0, number(k_)));
    body.push_back(copy_values(wide, pointer_to(fused_.anchor.inputs[0]), k_, shape_.lanes));
  }
  body.push_back(loop(
      "block", index(blocks), LoopKind::parallel,
      [&](const Value& block) {
        return choose_columns(n_, shape_, block, [&](int64_t columns) {
          std::vector<Value> arguments = parameter_values(fused_);
          arguments.emplace_back(make_cast(block.expr(), Type(u32)));
          if (widens()) arguments.push_back(wide);
          return call(name_of(columns), arguments);
        });
      },
      grain));
  return make_seq(std::move(body));
}

}  // namespace hidet::graph
