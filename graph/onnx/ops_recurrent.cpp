// ops_recurrent.cpp - ONNX LSTM, GRU and RNN: the inputs' product for all steps and directions is one matmul, the
// steps are one operator. Halves are computed in f32.
// Threading: thread-safe.
#include <hidet/graph/ops.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "onnx/node_call.h"

namespace hidet::graph::onnx {
namespace {

using Outputs = std::vector<Tensor>;
using Ints = std::vector<int64_t>;

struct Kind {
  const char* cell;
  int64_t gates;
  const char* activations;  ///< the default, of one direction
};

/// The sizes of a node, and its dtypes.
struct Layer {
  DimExpr t, b;
  int64_t d, h, lanes;
  DType dtype, inner;
  bool batch_first, after;
};

Layer layer_of(const NodeCall& call, const Kind& kind) {
  if (call.rank(0) != 3 || call.rank(1) != 3 || call.rank(2) != 3)
    call.fail("X, W and R must have 3 dimensions");
  const auto x = call.shape(0), w = call.shape(1), r = call.shape(2);
  if (!is_concrete(w) || !is_concrete(r)) call.unsupported("its weights have symbolic shapes");
  Layer l;
  l.batch_first = call.attr_int("layout", 0) != 0;
  l.t = x[l.batch_first ? 1 : 0], l.b = x[l.batch_first ? 0 : 1];
  l.d = r[0].value(), l.h = r[2].value();
  l.dtype = call.dtype(0);
  l.inner = l.dtype == f64 ? f64 : f32;
  l.lanes = 64 / static_cast<int64_t>(l.inner.bytes());
  l.after = call.attr_int("linear_before_reset", 0) != 0;
  if (!(w[0] == r[0]) || !w[1].is_const(kind.gates * l.h) || !(w[1] == r[1]))
    call.fail("W ", call.input(1).describe(), " and R ", call.input(2).describe(), " do not fit");
  return l;
}

/// The activations of one direction, "sigmoid,tanh,tanh"; each direction must have the same.
std::string activations(const NodeCall& call, const Kind& kind, const Layer& l) {
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (call.has_attr(name)) call.unsupported(name, " is set");
  std::vector<std::string> names = call.attr_strings("activations");
  if (names.empty()) return kind.activations;
  const size_t each = names.size() / static_cast<size_t>(l.d);
  if (each * static_cast<size_t>(l.d) != names.size() ||
      !std::equal(names.begin(), names.begin() + static_cast<int64_t>(each),
                  names.end() - static_cast<int64_t>(each)))
    call.unsupported("the directions have different activations");
  std::string out;
  for (size_t i = 0; i < each; i++) {
    std::string& name = names[i];
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name != "sigmoid" && name != "tanh" && name != "relu")
      call.unsupported("the activation '", name, "'; sigmoid, tanh and relu are supported");
    out += (i ? "," : "") + name;
  }
  return out;
}

Tensor wide(const Layer& l, const Tensor& x) {
  return x.dtype() == l.inner ? x : ops::cast(x, l.inner);
}

/// The biases of the input and of the recurrent product, [d, gates * h] each; undefined without a bias.
std::pair<Tensor, Tensor> biases(const NodeCall& call, const Layer& l, int64_t gates) {
  if (!call.has_input(3)) return {};
  const std::vector<Tensor> parts =
      ops::split(wide(l, call.input(3)), 1, {gates * l.h, gates * l.h});
  return {parts[0], parts[1]};
}

/// [t, b, d, gates * h]: the inputs' products, with every bias but the one that a GRU's reset gate scales.
Tensor products(const NodeCall& call, const Layer& l, int64_t gates) {
  Tensor x = wide(l, call.input(0));
  if (l.batch_first) x = ops::transpose(x, {1, 0, 2});
  const DimExpr rows = l.d * gates * l.h, depth = call.shape(1)[2];
  const Tensor w = ops::transpose(ops::reshape(wide(l, call.input(1)), {rows, depth}), {1, 0});
  Tensor out = ops::matmul(x, w);
  auto [input, recurrent] = biases(call, l, gates);
  if (input.defined()) {
    if (l.after) {
      const Tensor used = ops::slice(recurrent, {0}, {2 * l.h}, {1}, {1});
      recurrent = ops::concat({used, full({l.d, l.h}, 0, l.inner)}, 1);
    }
    out = ops::add(out, ops::reshape(ops::add(input, recurrent), {rows}));
  }
  return ops::reshape(out, {l.t, l.b, l.d, gates * l.h});
}

/// R [d, gates * h, h] as [d, panels, h, gates, lanes].
Tensor panels(const Layer& l, const Tensor& r, int64_t gates) {
  const int64_t count = (l.h + l.lanes - 1) / l.lanes, more = count * l.lanes - l.h;
  Tensor split = ops::reshape(r, {l.d, gates, l.h, l.h});
  if (more) split = ops::pad(split, {0, 0, 0, 0, 0, 0, more, 0});
  return ops::transpose(ops::reshape(split, {l.d, gates, count, l.lanes, l.h}), {0, 2, 4, 1, 3});
}

Tensor first_state(const NodeCall& call, const Layer& l, size_t input) {
  if (!call.has_input(input)) return ops::full({l.d, l.b, l.h}, 0, l.inner, call.context().device);
  const Tensor given = wide(l, call.input(input));
  return l.batch_first ? ops::transpose(given, {1, 0, 2}) : given;
}

Outputs recurrent(const NodeCall& call, const Kind& kind) {
  if (call.attr_int("input_forget", 0) != 0) call.unsupported("input_forget is set");
  const Layer l = layer_of(call, kind);
  const bool lstm = kind.gates == 4;
  std::vector<Tensor> inputs{products(call, l, kind.gates),
                             panels(l, wide(l, call.input(2)), kind.gates),
                             first_state(call, l, 5)};
  if (lstm) inputs.push_back(first_state(call, l, 6));
  if (l.after) {
    const Tensor bias = biases(call, l, kind.gates).second;
    inputs.push_back(bias.defined() ? ops::slice(bias, {2 * l.h}, {3 * l.h}, {1}, {1})
                                    : full({l.d, l.h}, 0, l.inner));
  }
  const bool peepholes = lstm && call.has_input(7), lengths = call.has_input(4);
  if (peepholes) inputs.push_back(wide(l, call.input(7)));
  if (lengths) inputs.push_back(ops::cast(call.input(4), i64));
  Outputs out = graph::apply("recurrence", inputs,
                             {{"cell", std::string(kind.cell)},
                              {"direction", call.attr_string("direction", "forward")},
                              {"activations", activations(call, kind, l)},
                              {"clip", call.attr_float("clip", 0)},
                              {"linear_before_reset", int64_t{l.after}},
                              {"peepholes", int64_t{peepholes}},
                              {"lengths", int64_t{lengths}}});
  for (size_t i = 0; i < out.size(); i++) {
    if (l.batch_first) out[i] = ops::transpose(out[i], i == 0 ? Ints{2, 0, 1, 3} : Ints{1, 0, 2});
    if (l.dtype != l.inner) out[i] = ops::cast(out[i], l.dtype);
  }
  return out;
}

Outputs lstm(const NodeCall& call) { return recurrent(call, {"lstm", 4, "sigmoid,tanh,tanh"}); }
Outputs gru(const NodeCall& call) { return recurrent(call, {"gru", 3, "sigmoid,tanh"}); }
Outputs rnn(const NodeCall& call) { return recurrent(call, {"rnn", 1, "tanh"}); }

const std::array kRows = std::to_array<Converter>({
    {"GRU", 7, kAnyOpset, gru},
    {"LSTM", 7, kAnyOpset, lstm},
    {"RNN", 7, kAnyOpset, rnn},
});

}  // namespace

std::span<const Converter> recurrent_converters() { return kRows; }

}  // namespace hidet::graph::onnx
