// lanes_run.cpp - runs lane programs: one loop over the lanes for each step; fast loops for the common
// operators, the shared exact evaluation of ir/fold.h for the rest.
// Threading: one thread a machine.
#include <hidet/ir/fold.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/lanes.h"

namespace hidet::graph {
namespace {
using ir::BinaryOp;
using Kind = LaneStep::Kind;

template <class F>
void each(int lanes, F f) {
  for (int i = 0; i < lanes; i++) f(i);
}

/// Float operators of one dtype; false where only the general evaluation does it.
template <class T>
bool fast_float(BinaryOp op, const double* a, const double* b, double* out, int n) {
  auto loop = [&](auto f) {
    each(n, [&](int i) { out[i] = f(static_cast<T>(a[i]), static_cast<T>(b[i])); });
    return true;
  };
  switch (op) {
    case BinaryOp::add: return loop([](T x, T y) { return x + y; });
    case BinaryOp::sub: return loop([](T x, T y) { return x - y; });
    case BinaryOp::mul: return loop([](T x, T y) { return x * y; });
    case BinaryOp::div: return loop([](T x, T y) { return x / y; });
    case BinaryOp::min: return loop([](T x, T y) { return y < x || y != y ? y : x; });
    case BinaryOp::max: return loop([](T x, T y) { return y > x || y != y ? y : x; });
    default: return false;
  }
}

/// 64-bit integer operators that index arithmetic uses; false: the general evaluation.
bool fast_i64(BinaryOp op, const int64_t* a, const int64_t* b, int64_t* out, int n) {
  auto loop = [&](auto f) {
    each(n, [&](int i) { out[i] = static_cast<int64_t>(f(a[i], b[i])); });
    return true;
  };
  using U = uint64_t;
  switch (op) {
    case BinaryOp::add: return loop([](int64_t x, int64_t y) { return U(x) + U(y); });
    case BinaryOp::sub: return loop([](int64_t x, int64_t y) { return U(x) - U(y); });
    case BinaryOp::mul: return loop([](int64_t x, int64_t y) { return U(x) * U(y); });
    case BinaryOp::lt: return loop([](int64_t x, int64_t y) { return x < y; });
    case BinaryOp::le: return loop([](int64_t x, int64_t y) { return x <= y; });
    case BinaryOp::gt: return loop([](int64_t x, int64_t y) { return x > y; });
    case BinaryOp::ge: return loop([](int64_t x, int64_t y) { return x >= y; });
    case BinaryOp::eq: return loop([](int64_t x, int64_t y) { return x == y; });
    case BinaryOp::logical_and: return loop([](int64_t x, int64_t y) { return x && y; });
    case BinaryOp::logical_or: return loop([](int64_t x, int64_t y) { return x || y; });
    default: return false;
  }
}

void binary_floats(const LaneStep& s, const double* a, const double* b, void* out, int n) {
  const auto op = static_cast<BinaryOp>(s.op);
  if (ir::info(op).comparison) {
    auto* result = static_cast<int64_t*>(out);
    each(n, [&](int i) { result[i] = ir::eval_float_compare(op, a[i], b[i]); });
    return;
  }
  auto* result = static_cast<double*>(out);
  if (s.dtype == f32 && fast_float<float>(op, a, b, result, n)) return;
  if (s.dtype == f64 && fast_float<double>(op, a, b, result, n)) return;
  each(n, [&](int i) { result[i] = ir::eval_float(op, a[i], b[i], s.dtype); });
}

void binary_ints(const LaneStep& s, const int64_t* a, const int64_t* b, int64_t* out, int n) {
  const auto op = static_cast<BinaryOp>(s.op);
  const bool logical = ir::info(op).logical;
  if ((s.from == i64 || logical) && fast_i64(op, a, b, out, n)) return;
  each(n, [&](int i) { out[i] = ir::eval_int(op, a[i], b[i], s.from); });
}

void cast_lanes(const LaneStep& s, const void* in, void* out, int n) {
  const auto* x = static_cast<const double*>(in);
  const auto* k = static_cast<const int64_t*>(in);
  auto* y = static_cast<double*>(out);
  auto* m = static_cast<int64_t*>(out);
  if (s.from.is_float()) {
    if (s.dtype == f64 || (s.dtype == f32 && s.from.bits() < 32))
      std::memcpy(y, x, sizeof(double) * n);
    else if (s.dtype == f32) each(n, [&](int i) { y[i] = static_cast<float>(x[i]); });
    else if (s.dtype.is_float()) each(n, [&](int i) { y[i] = ir::round_to(x[i], s.dtype); });
    else each(n, [&](int i) { m[i] = ir::saturate(x[i], s.dtype); });
  } else if (!s.dtype.is_float()) {
    if (s.dtype == i64) std::memcpy(m, k, sizeof(int64_t) * n);
    else each(n, [&](int i) { m[i] = ir::wrap_int(k[i], s.dtype); });
  } else if (s.dtype == f32) {  // one rounding
    if (s.from == u64)
      each(n, [&](int i) { y[i] = static_cast<float>(static_cast<uint64_t>(k[i])); });
    else each(n, [&](int i) { y[i] = static_cast<float>(k[i]); });
  } else {
    each(n, [&](int i) { y[i] = ir::round_to(ir::int_to_double(k[i], s.from), s.dtype); });
  }
}

template <class T, class Out>
void load_plain(const void* data, const int64_t* at, Out* out, int n) {
  const T* base = static_cast<const T*>(data);
  each(n, [&](int i) {
    out[i] = static_cast<Out>(base[at[i]]);  // NOLINT(bugprone-signed-char-misuse): i8 is a number
  });
}
template <float (*convert)(uint16_t)>
void load_half(const void* data, const int64_t* at, double* out, int n) {
  const auto* base = static_cast<const uint16_t*>(data);
  each(n, [&](int i) { out[i] = convert(base[at[i]]); });
}

void load_lanes(const LaneTensor& t, const int64_t* at, void* out, int n,
                const std::string& where) {
  auto* y = static_cast<double*>(out);
  auto* m = static_cast<int64_t*>(out);
  switch (t.dtype.code()) {
    case DTypeCode::f32:
    case DTypeCode::tf32: return load_plain<float>(t.data, at, y, n);
    case DTypeCode::f64: return load_plain<double>(t.data, at, y, n);
    case DTypeCode::f16: return load_half<f16_to_f32>(t.data, at, y, n);
    case DTypeCode::bf16: return load_half<bf16_to_f32>(t.data, at, y, n);
    case DTypeCode::boolean:
    case DTypeCode::u8: return load_plain<uint8_t>(t.data, at, m, n);
    case DTypeCode::i8: return load_plain<int8_t>(t.data, at, m, n);
    case DTypeCode::i16: return load_plain<int16_t>(t.data, at, m, n);
    case DTypeCode::u16: return load_plain<uint16_t>(t.data, at, m, n);
    case DTypeCode::i32: return load_plain<int32_t>(t.data, at, m, n);
    case DTypeCode::u32: return load_plain<uint32_t>(t.data, at, m, n);
    case DTypeCode::i64:
    case DTypeCode::u64: return load_plain<int64_t>(t.data, at, m, n);
    default: break;
  }
  throw Error(ErrorCode::unsupported,
              where + ": the reference evaluator does not read elements of type " + t.dtype.name());
}
}  // namespace

LaneMachine::LaneMachine(const LaneProgram& program) : program_(program) {
  const size_t width = sizeof(int64_t) * program.lanes;
  memory_.reset(new char[program.steps.size() * width]);
  marks_.resize(program.steps.size());
  reducers_.resize(program.steps.size());
  linear_.resize(program.lanes);
  outside_.resize(program.lanes);
  for (size_t i = 0; i < program.steps.size(); i++) {
    registers_.push_back(memory_.get() + i * width);
    const LaneStep& s = program.steps[i];
    if (s.kind != Kind::constant) continue;
    const int reg = static_cast<int>(i);
    if (s.dtype.is_float()) std::fill_n(nums(reg), program.lanes, s.number);
    else std::fill_n(ints(reg), program.lanes, s.integer);
  }
}

void LaneMachine::run(int lanes, const std::vector<const int64_t*>& axes) {
  axes_ = &axes;
  if (marked_)
    for (auto& m : marks_) m.clear();
  marked_ = false;
  for (size_t i = 0; i < program_.steps.size(); i++) {
    step(i, lanes);
    if (marked_) spread_marks(i, lanes);
  }
}

void LaneMachine::step(size_t index, int lanes) {
  const LaneStep& s = program_.steps[index];
  const int out = static_cast<int>(index);
  switch (s.kind) {
    case Kind::constant: break;
    // An axis is read only; the arrays live as long as the run.
    case Kind::axis: registers_[index] = const_cast<int64_t*>((*axes_)[s.op]); break;
    case Kind::unary:
      if (s.dtype.is_float()) each(lanes, [&](int i) { nums(out)[i] = -nums(s.args[0])[i]; });
      else if (s.op == static_cast<int>(ir::UnaryOp::logical_not))
        each(lanes, [&](int i) { ints(out)[i] = !ints(s.args[0])[i]; });
      else if (s.op == static_cast<int>(ir::UnaryOp::bit_not))
        each(lanes, [&](int i) { ints(out)[i] = ir::wrap_int(~ints(s.args[0])[i], s.dtype); });
      else
        each(lanes, [&](int i) {
          ints(out)[i] = ir::eval_int(BinaryOp::sub, 0, ints(s.args[0])[i], s.dtype);
        });
      break;
    case Kind::binary:
      if (s.from.is_float())
        binary_floats(s, nums(s.args[0]), nums(s.args[1]), registers_[index], lanes);
      else binary_ints(s, ints(s.args[0]), ints(s.args[1]), ints(out), lanes);
      break;
    case Kind::select: {
      const int64_t* cond = ints(s.args[0]);
      if (s.dtype.is_float())
        each(lanes, [&](int i) { nums(out)[i] = nums(s.args[cond[i] ? 1 : 2])[i]; });
      else each(lanes, [&](int i) { ints(out)[i] = ints(s.args[cond[i] ? 1 : 2])[i]; });
      break;
    }
    case Kind::cast: cast_lanes(s, registers_[s.args[0]], registers_[index], lanes); break;
    case Kind::prim: prim(index, lanes); break;
    case Kind::load: load(index, lanes); break;
    case Kind::reduce: reduce(index, lanes); break;
  }
}

void LaneMachine::prim(size_t index, int lanes) {
  const LaneStep& s = program_.steps[index];
  const int out = static_cast<int>(index), a = s.args[0];
  if (!s.from.is_float()) {  // abs of integers
    each(lanes, [&](int i) {
      const int64_t v = ints(a)[i];
      ints(out)[i] = v < 0 && s.from.is_signed() ? ir::eval_int(BinaryOp::sub, 0, v, s.from) : v;
    });
  } else if (s.args.size() == 3) {  // fma
    const double *x = nums(a), *y = nums(s.args[1]), *z = nums(s.args[2]);
    if (s.dtype == f64) each(lanes, [&](int i) { nums(out)[i] = std::fma(x[i], y[i], z[i]); });
    else
      each(lanes, [&](int i) {
        nums(out)[i] = ir::round_to(
            std::fma(static_cast<float>(x[i]), static_cast<float>(y[i]), static_cast<float>(z[i])),
            s.dtype);
      });
  } else if (s.dtype.is_boolean()) {
    each(lanes, [&](int i) { ints(out)[i] = s.math->d(nums(a)[i]) != 0; });
  } else if (s.dtype == f64) {
    each(lanes, [&](int i) { nums(out)[i] = s.math->d(nums(a)[i]); });
  } else if (s.dtype == f32) {
    each(lanes, [&](int i) { nums(out)[i] = s.math->f(static_cast<float>(nums(a)[i])); });
  } else {
    each(lanes, [&](int i) {
      nums(out)[i] = ir::round_to(s.math->f(static_cast<float>(nums(a)[i])), s.dtype);
    });
  }
}

void LaneMachine::load(size_t index, int lanes) {
  const LaneStep& s = program_.steps[index];
  const LaneTensor& t = *s.tensor;
  std::fill_n(linear_.data(), lanes, 0);
  std::fill_n(outside_.data(), lanes, 0);
  int64_t stride = 1;
  for (size_t d = s.args.size(); d-- > 0;) {
    const int64_t* at = ints(s.args[d]);
    const auto extent = static_cast<uint64_t>(t.shape[d]);
    each(lanes, [&](int i) {
      outside_[i] |= static_cast<uint64_t>(at[i]) >= extent;
      linear_[i] +=
          static_cast<int64_t>(static_cast<uint64_t>(at[i]) * static_cast<uint64_t>(stride));
    });
    stride *= t.shape[d];
  }
  const auto bad = std::find(outside_.begin(), outside_.begin() + lanes, 1);
  if (bad == outside_.begin() + lanes)
    return load_lanes(t, linear_.data(), registers_[index], lanes, program_.where);
  Shape at;
  for (int arg : s.args) at.push_back(ints(arg)[bad - outside_.begin()]);
  fault_ =
      detail::concat("reads ", t.name, shape_text(at), " outside its shape ", shape_text(t.shape));
  marked_ = true;
  marks_[index].assign(outside_.begin(), outside_.begin() + lanes);
  if (stride == 0) {  // nothing there to read
    std::memset(registers_[index], 0, sizeof(int64_t) * lanes);
    return;
  }
  each(lanes, [&](int i) { linear_[i] = outside_[i] ? 0 : linear_[i]; });
  load_lanes(t, linear_.data(), registers_[index], lanes, program_.where);
}

void LaneMachine::spread_marks(size_t index, int lanes) {
  const LaneStep& s = program_.steps[index];
  auto& mine = marks_[index];
  auto take = [&](int arg, auto applies) {
    const auto& other = marks_[arg];
    if (other.empty()) return;
    if (mine.empty()) mine.assign(lanes, 0);
    each(lanes, [&](int i) { mine[i] |= other[i] && applies(i); });
  };
  const auto always = [](int) { return true; };
  if (s.kind == Kind::select) {
    const int64_t* cond = ints(s.args[0]);
    take(s.args[0], always);
    take(s.args[1], [&](int i) { return cond[i] != 0; });
    take(s.args[2], [&](int i) { return cond[i] == 0; });
  } else if (s.kind == Kind::binary && ir::info(static_cast<BinaryOp>(s.op)).logical) {
    const int64_t* left = ints(s.args[0]);
    const bool is_and = static_cast<BinaryOp>(s.op) == BinaryOp::logical_and;
    take(s.args[0], always);
    take(s.args[1], [&](int i) { return (left[i] != 0) == is_and; });
  } else {
    for (int arg : s.args) take(arg, always);
  }
}

}  // namespace hidet::graph
