// fold.cpp - shape arithmetic at import; see fold.h. A function gives up (returns nothing) where a
// result is not a formula: the operator is then converted like any other.
#include "onnx/fold.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

namespace hidet::graph::onnx {
namespace {

using Result = std::optional<Known>;

int64_t count_of(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= d;
  return count;
}

// The broadcast shape of known tensors; nothing where they do not fit.
std::optional<std::vector<int64_t>> broadcast_dims(const std::vector<const Known*>& in) {
  std::vector<int64_t> out;
  for (const Known* k : in) {
    if (k->dims.size() > out.size()) out.insert(out.begin(), k->dims.size() - out.size(), 1);
    for (size_t i = 0; i < k->dims.size(); i++) {
      int64_t& have = out[out.size() - 1 - i];
      const int64_t d = k->dims[k->dims.size() - 1 - i];
      if (have == 1) have = d;
      if (d != 1 && d != have) return std::nullopt;
    }
  }
  if (count_of(out) > Known::kMaxCount) return std::nullopt;
  return out;
}

// The place in `dims` of the value that is at `flat` of the broadcast shape `out`.
int64_t broadcast_index(int64_t flat, const std::vector<int64_t>& out,
                        const std::vector<int64_t>& dims) {
  int64_t index = 0, stride = 1;
  for (size_t i = 0; i < out.size(); i++) {
    const int64_t extent = out[out.size() - 1 - i];
    if (i < dims.size()) {
      const int64_t d = dims[dims.size() - 1 - i];
      if (d != 1) index += flat % extent * stride;
      stride *= d;
    }
    flat /= extent;
  }
  return index;
}

using Elems = std::vector<DimExpr>;
/// One element of the result from one of each input; nothing where it is no formula.
using Scalar = std::optional<DimExpr> (*)(const Elems& in, DType dtype);

Result elementwise(const NodeCall& call, Scalar f, bool boolean_result) {
  std::vector<const Known*> in;
  for (size_t i = 0; i < call.input_count(); i++) {
    in.push_back(call.known(i));
    if (!in.back()) return std::nullopt;
  }
  if (in.empty()) return std::nullopt;
  const auto dims = broadcast_dims(in);
  if (!dims) return std::nullopt;
  const DType dtype = in.back()->dtype;  // of Where it is the branches'
  Known out{boolean_result ? boolean : dtype, *dims, {}};
  for (int64_t flat = 0; flat < count_of(*dims); flat++) {
    Elems elems;
    for (const Known* k : in) elems.push_back(k->elems[broadcast_index(flat, *dims, k->dims)]);
    const auto value = f(elems, dtype);
    if (!value) return std::nullopt;
    out.elems.push_back(is_int(*value) ? DimExpr(wrap_to(value->value(), out.dtype)) : *value);
  }
  return out;
}

bool both_ints(const Elems& in) { return is_int(in[0]) && is_int(in[1]); }
bool is_i64(DType dtype) { return dtype == i64; }
// The arithmetic of DimExprs is that of i64; a narrower type would wrap elsewhere.
bool formulas_fit(const Elems& in, DType dtype) {
  return is_i64(dtype) || std::all_of(in.begin(), in.end(), [](auto& e) { return is_int(e); });
}
int64_t wrapping(uint64_t value) { return static_cast<int64_t>(value); }

std::optional<DimExpr> add(const Elems& in, DType dtype) {
  if (both_ints(in))
    return wrapping(static_cast<uint64_t>(in[0].value()) + static_cast<uint64_t>(in[1].value()));
  if (!formulas_fit(in, dtype)) return std::nullopt;
  return in[0] + in[1];
}
std::optional<DimExpr> sub(const Elems& in, DType dtype) {
  if (both_ints(in))
    return wrapping(static_cast<uint64_t>(in[0].value()) - static_cast<uint64_t>(in[1].value()));
  if (!formulas_fit(in, dtype)) return std::nullopt;
  return in[0] - in[1];
}
std::optional<DimExpr> mul(const Elems& in, DType dtype) {
  if (both_ints(in))
    return wrapping(static_cast<uint64_t>(in[0].value()) * static_cast<uint64_t>(in[1].value()));
  if (!formulas_fit(in, dtype)) return std::nullopt;
  return in[0] * in[1];
}
// Truncates; x / 0 is 0 and INT_MIN / -1 wraps, as everywhere in the project.
std::optional<DimExpr> div(const Elems& in, DType dtype) {
  if (both_ints(in)) {
    const int64_t a = in[0].value(), b = in[1].value();
    if (b == 0) return DimExpr(int64_t{0});
    return b == -1 ? wrapping(0 - static_cast<uint64_t>(a)) : a / b;
  }
  if (!formulas_fit(in, dtype) || !is_int(in[1]) || in[1].value() <= 0 || !in[0].never_negative())
    return std::nullopt;
  return floordiv(in[0], in[1]);
}
// fmod = 0: the sign of the divisor.
std::optional<DimExpr> mod(const Elems& in, DType dtype) {
  if (both_ints(in)) {
    const int64_t a = in[0].value(), b = in[1].value();
    if (b == 0 || b == -1) return DimExpr(int64_t{0});
    const int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  }
  if (!formulas_fit(in, dtype) || !is_int(in[1]) || in[1].value() <= 0 || !in[0].never_negative())
    return std::nullopt;
  return in[0] - floordiv(in[0], in[1]) * in[1];
}
template <DimExpr (*F)(const DimExpr&, const DimExpr&)>
std::optional<DimExpr> fold_all(const Elems& in, DType) {
  DimExpr out = in[0];
  for (size_t i = 1; i < in.size(); i++) out = F(out, in[i]);
  return out;
}
std::optional<DimExpr> sum(const Elems& in, DType dtype) {
  std::optional<DimExpr> out = in[0];
  for (size_t i = 1; i < in.size() && out; i++) out = add({*out, in[i]}, dtype);
  return out;
}
std::optional<DimExpr> neg(const Elems& in, DType dtype) { return sub({DimExpr(0), in[0]}, dtype); }
std::optional<DimExpr> absolute(const Elems& in, DType dtype) {
  if (is_int(in[0])) return in[0].value() < 0 ? neg(in, dtype) : in[0];
  return in[0].never_negative() ? std::optional(in[0]) : std::nullopt;
}

// Comparisons are known where both sides are numbers or their order follows from the signs.
std::optional<DimExpr> equal(const Elems& in, DType) {
  if (both_ints(in)) return DimExpr(in[0].value() == in[1].value() ? 1 : 0);
  if (in[0] == in[1]) return DimExpr(1);
  for (int k : {0, 1})
    if (is_int(in[k]) && in[k].value() < 0 && in[1 - k].never_negative()) return DimExpr(0);
  const DimExpr difference = in[0] - in[1];
  if (is_int(difference)) return DimExpr(difference.value() == 0 ? 1 : 0);
  return std::nullopt;
}
std::optional<DimExpr> less(const Elems& in, DType) {
  if (both_ints(in)) return DimExpr(in[0].value() < in[1].value() ? 1 : 0);
  const DimExpr difference = in[0] - in[1];
  if (is_int(difference)) return DimExpr(difference.value() < 0 ? 1 : 0);
  if (is_int(in[0]) && in[0].value() < 0 && in[1].never_negative()) return DimExpr(1);
  if (is_int(in[1]) && in[1].value() <= 0 && in[0].never_negative()) return DimExpr(0);
  return std::nullopt;
}
std::optional<DimExpr> negate(std::optional<DimExpr> value) {
  if (!value) return std::nullopt;
  return DimExpr(value->is_const(0) ? 1 : 0);
}
std::optional<DimExpr> greater(const Elems& in, DType t) { return less({in[1], in[0]}, t); }
std::optional<DimExpr> less_equal(const Elems& in, DType t) { return negate(greater(in, t)); }
std::optional<DimExpr> greater_equal(const Elems& in, DType t) { return negate(less(in, t)); }
std::optional<DimExpr> logical_not(const Elems& in, DType) {
  return is_int(in[0]) ? negate(in[0]) : std::nullopt;
}
std::optional<DimExpr> logical_and(const Elems& in, DType) {
  if (!both_ints(in)) return std::nullopt;
  return DimExpr(in[0].value() != 0 && in[1].value() != 0 ? 1 : 0);
}
std::optional<DimExpr> logical_or(const Elems& in, DType) {
  if (!both_ints(in)) return std::nullopt;
  return DimExpr(in[0].value() != 0 || in[1].value() != 0 ? 1 : 0);
}
std::optional<DimExpr> where(const Elems& in, DType) {
  if (!is_int(in[0])) return in[1] == in[2] ? std::optional(in[1]) : std::nullopt;
  return in[in[0].value() != 0 ? 1 : 2];
}

// ---- Operators that move values.

/// A result of `dims` whose value k is value `from(k)` of `in`.
template <class From>
Known moved(const Known& in, std::vector<int64_t> dims, From from) {
  Known out{in.dtype, std::move(dims), {}};
  const int64_t count = count_of(out.dims);
  for (int64_t k = 0; k < count; k++) out.elems.push_back(in.elems[from(k)]);
  return out;
}
Known reshaped(const Known& in, std::vector<int64_t> dims) {
  return {in.dtype, std::move(dims), in.elems};
}

Result fold_identity(const NodeCall& call) {
  const Known* in = call.known(0);
  return in ? Result(*in) : std::nullopt;
}

Result fold_cast(const NodeCall& call) {
  const Known* in = call.known(0);
  if (!in) return std::nullopt;
  const DType to = dtype_of_onnx(static_cast<int32_t>(call.attr_int("to", 0)),
                                 call.context().file.name(), call.describe());
  if (to.is_float() || to.bits() < 8) return std::nullopt;
  Known out = *in;
  out.dtype = to;
  for (DimExpr& e : out.elems) {
    if (is_int(e)) e = DimExpr(to.is_boolean() ? int64_t{e.value() != 0} : wrap_to(e.value(), to));
    else if (to.bits() < 32 || to.is_boolean()) return std::nullopt;  // a size could wrap
  }
  return out;
}

Result fold_shape(const NodeCall& call) {
  if (!call.has_input(0)) return std::nullopt;
  const std::vector<DimExpr> shape = call.shape(0);
  const auto rank = static_cast<int64_t>(shape.size());
  const auto clamp = [&](int64_t v) { return std::clamp(v < 0 ? v + rank : v, int64_t{0}, rank); };
  const int64_t start = clamp(call.attr_int("start", 0));
  const int64_t end = std::max(start, clamp(call.attr_int("end", rank)));
  return Known{i64, {end - start}, {shape.begin() + start, shape.begin() + end}};
}

Result fold_size(const NodeCall& call) {
  if (!call.has_input(0)) return std::nullopt;
  DimExpr count(1);
  for (const DimExpr& d : call.shape(0)) count = count * d;
  return Known{i64, {}, {count}};
}

Result fold_constant_of_shape(const NodeCall& call) {
  const Known* shape = call.known(0);
  if (!shape) return std::nullopt;
  const auto count = small_count(shape->elems);
  const TensorProto* value = call.attr_tensor("value");
  if (!count || !value) return std::nullopt;
  const TensorValues one = load_values(*value, call.context().file, call.describe());
  if (one.count != 1 || !(one.dtype.is_integer() || one.dtype.is_boolean()) || one.dtype.bits() < 8)
    return std::nullopt;
  Known out{one.dtype, shape->ints(), {}};
  out.elems.assign(static_cast<size_t>(*count), DimExpr(to_int64s(one)[0]));
  return out;
}

Result fold_concat(const NodeCall& call) {
  // Known lists are vectors; a scalar or a matrix of them does not occur in shape arithmetic.
  Known out{i64, {0}, {}};
  for (size_t i = 0; i < call.input_count(); i++) {
    const Known* in = call.known(i);
    if (!in || in->dims.size() != 1) return std::nullopt;
    out.dtype = in->dtype;
    out.elems.insert(out.elems.end(), in->elems.begin(), in->elems.end());
  }
  if (call.input_count() == 0 || out.elems.size() > Known::kMaxCount) return std::nullopt;
  (void)call.axis(call.attr_int("axis", 0), 1);
  out.dims = {static_cast<int64_t>(out.elems.size())};
  return out;
}

Result fold_gather(const NodeCall& call) {
  const Known *in = call.known(0), *at = call.known(1);
  if (!in || !at || in->dims.size() != 1 || !at->is_constant()) return std::nullopt;
  (void)call.axis(call.attr_int("axis", 0), 1);
  const std::vector<int64_t> index = at->ints();
  for (int64_t i : index)
    if (i < -in->dims[0] || i >= in->dims[0])
      call.fail("index ", i, " is outside of the ", in->dims[0], " values");
  return moved(*in, at->dims,
               [&](int64_t k) { return index[k] < 0 ? index[k] + in->dims[0] : index[k]; });
}

// A vector [begin:end:step] with the clamping of ONNX's Slice.
Result fold_slice(const NodeCall& call) {
  const Known* in = call.known(0);
  if (!in || in->dims.size() != 1) return std::nullopt;
  int64_t bounds[3] = {0, 0, 1};
  const size_t place[3] = {1, 2, 4};
  for (int k = 0; k < 3; k++) {
    if (k == 2 && !call.has_input(4)) continue;
    const Known* bound = call.known(place[k]);
    if (!bound || bound->elems.size() != 1 || !bound->is_constant()) return std::nullopt;
    bounds[k] = bound->ints()[0];
  }
  const int64_t n = in->dims[0], step = bounds[2];
  if (step == 0) call.fail("a step of 0");
  const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place_of = [&](int64_t v) { return std::clamp(v < 0 ? v + n : v, low, high); };
  const int64_t begin = std::max(place_of(bounds[0]), int64_t{0}), end = place_of(bounds[1]);
  const int64_t distance = step > 0 ? end - begin : begin - end;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const int64_t count = distance <= 0 ? 0 : 1 + static_cast<int64_t>((distance - 1) / stride);
  return moved(*in, {count}, [&](int64_t k) { return begin + k * step; });
}

Result fold_unsqueeze(const NodeCall& call) {
  const Known* in = call.known(0);
  if (!in) return std::nullopt;
  const std::vector<int64_t> axes = call.ints_attr_or_input("axes", 1);
  const auto rank = static_cast<int64_t>(in->dims.size() + axes.size());
  std::vector<int64_t> dims(rank, 0);
  for (int64_t a : axes) dims[call.axis(a, rank)] = 1;
  size_t next = 0;
  for (int64_t& d : dims)
    if (d == 0 && next < in->dims.size()) d = in->dims[next++];
  if (next != in->dims.size()) call.fail("an axis is given twice");
  return reshaped(*in, dims);
}

Result fold_squeeze(const NodeCall& call) {
  const Known* in = call.known(0);
  if (!in) return std::nullopt;
  const auto rank = static_cast<int64_t>(in->dims.size());
  const bool all = !call.has_attr("axes") && !call.has_input(1);
  std::vector<bool> drop(rank, false);
  for (int64_t i = 0; all && i < rank; i++) drop[i] = in->dims[i] == 1;
  if (!all)
    for (int64_t a : call.ints_attr_or_input("axes", 1)) drop[call.axis(a, rank)] = true;
  std::vector<int64_t> dims;
  for (int64_t i = 0; i < rank; i++) {
    if (drop[i] && in->dims[i] != 1)
      call.fail("axis ", i, " has the size ", in->dims[i], ", not 1");
    if (!drop[i]) dims.push_back(in->dims[i]);
  }
  return reshaped(*in, dims);
}

Result fold_reshape(const NodeCall& call) {
  const Known *in = call.known(0), *to = call.known(1);
  if (!in || !to || !to->is_constant()) return std::nullopt;
  std::vector<int64_t> dims = to->ints();
  const bool keep_zero = call.attr_int("allowzero", 0) != 0;
  int64_t known = 1, wild = -1;
  for (size_t i = 0; i < dims.size(); i++) {
    if (dims[i] == 0 && !keep_zero) dims[i] = i < in->dims.size() ? in->dims[i] : 0;
    if (dims[i] == -1 && wild < 0) wild = static_cast<int64_t>(i);
    else known *= dims[i];
  }
  const auto count = static_cast<int64_t>(in->elems.size());
  if (wild >= 0 && known > 0 && count % known == 0) dims[wild] = count / known;
  if (std::any_of(dims.begin(), dims.end(), [](int64_t d) { return d < 0; }) ||
      count_of(dims) != count)
    call.fail("cannot reshape ", count, " values to the given shape");
  return reshaped(*in, dims);
}

Result fold_expand(const NodeCall& call) {
  const Known *in = call.known(0), *to = call.known(1);
  if (!in || !to || !to->is_constant() || !small_count(to->elems)) return std::nullopt;
  const Known target{i64, to->ints(), {}};
  const auto dims = broadcast_dims({in, &target});
  if (!dims) return std::nullopt;
  return moved(*in, *dims, [&](int64_t k) { return broadcast_index(k, *dims, in->dims); });
}

Result fold_range(const NodeCall& call) {
  int64_t v[3];
  for (size_t i = 0; i < 3; i++) {
    const Known* in = call.known(i);
    if (!in || in->elems.size() != 1 || !in->is_constant()) return std::nullopt;
    v[i] = in->ints()[0];
  }
  if (v[2] == 0) call.fail("a step of 0");
  Known out{call.dtype(0), {0}, {}};
  for (int64_t x = v[0]; v[2] > 0 ? x < v[1] : x > v[1]; x += v[2]) {
    if (out.elems.size() >= Known::kMaxCount) return std::nullopt;
    out.elems.push_back(DimExpr(x));
  }
  out.dims = {static_cast<int64_t>(out.elems.size())};
  return out;
}

// Reduces a whole vector, which is what exporters do with shapes.
template <Scalar F>
Result fold_reduce(const NodeCall& call) {
  const Known* in = call.known(0);
  if (!in || in->dims.size() != 1 || in->elems.empty()) return std::nullopt;
  const std::vector<int64_t> axes = call.ints_attr_or_input("axes", 1);
  if (axes.empty() && call.attr_int("noop_with_empty_axes", 0) != 0) return *in;
  for (int64_t a : axes) (void)call.axis(a, 1);
  std::optional<DimExpr> value = in->elems[0];
  for (size_t i = 1; i < in->elems.size() && value; i++)
    value = F({*value, in->elems[i]}, in->dtype);
  if (!value) return std::nullopt;
  Known out{in->dtype, {}, {*value}};
  if (call.attr_int("keepdims", 1) != 0) out.dims = {1};
  return out;
}

struct Elementwise {
  Scalar scalar;
  bool boolean_result;
};
const std::unordered_map<std::string_view, Elementwise>& scalar_table() {
  static const std::unordered_map<std::string_view, Elementwise> table{
      {"Add", {add, false}},
      {"Sub", {sub, false}},
      {"Mul", {mul, false}},
      {"Div", {div, false}},
      {"Mod", {mod, false}},
      {"Min", {fold_all<hidet::min>, false}},
      {"Max", {fold_all<hidet::max>, false}},
      {"Sum", {sum, false}},
      {"Neg", {neg, false}},
      {"Abs", {absolute, false}},
      {"Where", {where, false}},
      {"Equal", {equal, true}},
      {"Less", {less, true}},
      {"Greater", {greater, true}},
      {"LessOrEqual", {less_equal, true}},
      {"GreaterOrEqual", {greater_equal, true}},
      {"Not", {logical_not, true}},
      {"And", {logical_and, true}},
      {"Or", {logical_or, true}},
  };
  return table;
}
const std::unordered_map<std::string_view, Result (*)(const NodeCall&)>& tensor_table() {
  static const std::unordered_map<std::string_view, Result (*)(const NodeCall&)> table{
      {"Identity", fold_identity},
      {"Cast", fold_cast},
      {"Shape", fold_shape},
      {"Size", fold_size},
      {"ConstantOfShape", fold_constant_of_shape},
      {"Concat", fold_concat},
      {"Gather", fold_gather},
      {"Slice", fold_slice},
      {"Unsqueeze", fold_unsqueeze},
      {"Squeeze", fold_squeeze},
      {"Reshape", fold_reshape},
      {"Expand", fold_expand},
      {"Range", fold_range},
      {"ReduceProd", fold_reduce<mul>},
      {"ReduceSum", fold_reduce<add>},
      {"ReduceMin", fold_reduce<fold_all<hidet::min>>},
      {"ReduceMax", fold_reduce<fold_all<hidet::max>>},
  };
  return table;
}

}  // namespace

std::optional<Known> fold(const NodeCall& call) {
  const std::string_view op = call.node().op_type;
  if (const auto row = scalar_table().find(op); row != scalar_table().end()) {
    if (op == "Mod" && call.attr_int("fmod", 0) != 0) return std::nullopt;
    return elementwise(call, row->second.scalar, row->second.boolean_result);
  }
  if (const auto row = tensor_table().find(op); row != tensor_table().end())
    return row->second(call);
  return std::nullopt;
}

}  // namespace hidet::graph::onnx
