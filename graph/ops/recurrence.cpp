// recurrence.cpp - the steps of an LSTM, GRU or simple RNN over time, when the inputs' product is done already: one
// kernel that walks through the steps, a sequence and direction a task. The recurrent weights come in panels of 64
// bytes of hidden units, [d, panels, h, gates, lanes], so that a step reads them in order; every other step reads them
// backwards: what does not fit the L2 cache is fetched again, the rest is still there (docs/cpu_kernels.md, 7b).
// Gates as in ONNX: i o f c; z r h; h. The state lives in the outputs `last` and `cell`.
// f32 and f64 only. The reference is a plain loop of doubles.
#include <hidet/lang/build.h>
#include <hidet/lang/loops.h>
#include <hidet/lang/memory.h>
#include <hidet/lang/primitives.h>
#include <hidet/lang/script_module.h>
#include <hidet/lang/statements.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "core/op_common.h"

namespace hidet::graph {
namespace {
constexpr const char* kName = "recurrence";

enum class Kind { lstm, gru, rnn };

struct Activation {
  const char* name;
  double (*number)(double);
  ir::Value (*value)(const ir::Value&);
};
const Activation kActivations[] = {
    {"sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); },
     [](const ir::Value& x) { return math("sigmoid", x); }},
    {"tanh", [](double x) { return std::tanh(x); },
     [](const ir::Value& x) { return math("tanh", x); }},
    {"relu", [](double x) { return std::isnan(x) ? x : std::max(x, 0.0); },
     [](const ir::Value& x) { return ir::max(x, constant(0, x.dtype())); }},
};

/// The call taken apart. Inputs: gates [t, b, d, gates * h], panels, first state [d, b, h], then where the
/// attributes ask for them the first cell [d, b, h], the recurrent bias of a GRU's h gate [d, h], peepholes
/// [d, 3 h] (i, o, f) and lengths i64 [b].
struct Cell {
  Kind kind = Kind::lstm;
  int64_t gates = 4, d = 1, h = 1, lanes = 16;
  DimExpr t, b;
  DType dtype = f32;
  bool after = false;  ///< GRU: the reset gate acts behind the product ("linear_before_reset")
  int cell = -1, bias = -1, peepholes = -1, lengths = -1;  ///< input numbers
  std::string direction;
  double clip = 0;
  std::vector<const Activation*> act;
  int64_t panels() const { return (h + lanes - 1) / lanes; }
};

std::vector<const Activation*> activations_of(const std::string& list) {
  std::vector<const Activation*> out;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string name = list.substr(at, end - at);
    const auto* row = std::find_if(std::begin(kActivations), std::end(kActivations),
                                   [&](const Activation& a) { return name == a.name; });
    HIDET_OP_REQUIRE(row != std::end(kActivations), kName, "there is no activation '", name, "'");
    out.push_back(row);
    at = end + 1;
  }
  return out;
}

void check_shape(const OpCall& call, int input, const Dims& shape, DType dtype) {
  const TensorSpec& s = call.inputs[static_cast<size_t>(input)];
  bool fits = s.dtype == dtype && s.shape.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); i++)
    fits = s.shape[i] == shape[i] || !s.shape[i].is_const() || !shape[i].is_const();
  HIDET_OP_REQUIRE(fits, kName, "input ", input, " is ", s.dtype, shape_text(s.shape), ", not ",
                   dtype, shape_text(shape));
}

Cell cell_of(const OpCall& call) {
  HIDET_OP_REQUIRE(call.inputs.size() >= 3, kName, "has ", call.inputs.size(), " inputs");
  const Dims &gates = call.inputs[0].shape, &state = call.inputs[2].shape;
  HIDET_OP_REQUIRE(
      gates.size() == 4 && state.size() == 3 && state[0].is_const() && state[2].is_const(), kName,
      "the gates ", shape_text(gates), " and the state ", shape_text(state),
      " are not [t, b, d, gates * h] and [d, b, h]");
  Cell c;
  const std::string& kind = call.attrs.text("cell");
  HIDET_OP_REQUIRE(kind == "lstm" || kind == "gru" || kind == "rnn", kName, "the cell is '", kind,
                   "', not lstm, gru or rnn");
  c.kind = kind == "lstm" ? Kind::lstm : kind == "gru" ? Kind::gru : Kind::rnn;
  c.gates = c.kind == Kind::lstm ? 4 : c.kind == Kind::gru ? 3 : 1;
  c.dtype = call.inputs[0].dtype;
  HIDET_OP_REQUIRE(c.dtype == f32 || c.dtype == f64, kName, "takes f32 or f64, not ", c.dtype);
  c.lanes = 64 / static_cast<int64_t>(c.dtype.bytes());
  c.t = gates[0], c.b = gates[1], c.d = state[0].value(), c.h = state[2].value();
  c.direction = call.attrs.text("direction");
  HIDET_OP_REQUIRE(c.d == (c.direction == "bidirectional" ? 2 : 1), kName, "the state ",
                   shape_text(state), " does not have the directions of '", c.direction, "'");
  c.clip = call.attrs.number("clip");
  c.after = c.kind == Kind::gru && call.attrs.integer("linear_before_reset") != 0;
  c.act = activations_of(call.attrs.text("activations"));
  HIDET_OP_REQUIRE(c.act.size() == (c.kind == Kind::rnn   ? 1
                                    : c.kind == Kind::gru ? 2
                                                          : 3),
                   kName, "has ", c.act.size(), " activations");
  int next = 3;
  if (c.kind == Kind::lstm) c.cell = next++;
  if (c.after) c.bias = next++;
  if (call.attrs.integer("peepholes") != 0) c.peepholes = next++;
  if (call.attrs.integer("lengths") != 0) c.lengths = next++;
  op_inputs(kName, call, static_cast<size_t>(next));
  check_shape(call, 0, {c.t, c.b, c.d, c.gates * c.h}, c.dtype);
  check_shape(call, 1, {c.d, c.panels(), c.h, c.gates, c.lanes}, c.dtype);
  check_shape(call, 2, {c.d, c.b, c.h}, c.dtype);
  if (c.cell >= 0) check_shape(call, c.cell, {c.d, c.b, c.h}, c.dtype);
  if (c.bias >= 0) check_shape(call, c.bias, {c.d, c.h}, c.dtype);
  if (c.peepholes >= 0) check_shape(call, c.peepholes, {c.d, 3 * c.h}, c.dtype);
  if (c.lengths >= 0) check_shape(call, c.lengths, {c.b}, i64);
  return c;
}

std::vector<TensorSpec> infer(const OpCall& call) {
  const Cell c = cell_of(call);
  std::vector<TensorSpec> out{{c.dtype, {c.t, c.d, c.b, c.h}}, {c.dtype, {c.d, c.b, c.h}}};
  if (c.kind == Kind::lstm) out.push_back(out[1]);
  return out;
}

// --- the kernel

/// Records `launch`.
class Script {
 public:
  explicit Script(const Cell& cell) : c_(cell) {}

  ir::Module module(size_t inputs, size_t outputs) {
    lang::ScriptModule m(kName);
    m.public_func("launch", [&](lang::Function& f) {
      for (size_t i = 0; i < inputs; i++) {
        const DType t = static_cast<int>(i) == c_.lengths ? i64 : c_.dtype;
        in_.push_back(f.arg("x" + std::to_string(i), lang::ptr(t)));
      }
      for (size_t i = 0; i < outputs; i++)
        out_.push_back(f.arg("y" + std::to_string(i), lang::ptr(c_.dtype)));
      for (auto unit : lang::parallel(index_value(c_.b * c_.d))) sequence(unit);
    });
    return m.module();
  }

 private:
  using Value = ir::Value;
  using Lane = std::function<void(const Value& lane)>;
  static Value num(int64_t v) { return index_value(v); }

  /// All steps of one batch row in one direction.
  void sequence(const Value& unit) {
    const auto batch = index_value(c_.b), steps = index_value(c_.t);
    const auto d = lang::let("d", unit / batch), row = lang::let("row", unit % batch);
    const auto state = lang::let("state", out_[1] + unit * num(c_.h));
    const auto first = lang::let("first", in_[2] + unit * num(c_.h));
    for (auto j : lang::range(num(c_.h))) state[j] = first[j];
    std::unique_ptr<lang::Handle> cell;
    if (c_.kind == Kind::lstm) {
      cell = std::make_unique<lang::Handle>(lang::let("cell", out_[2] + unit * num(c_.h)));
      const auto from = lang::let("from", in_[static_cast<size_t>(c_.cell)] + unit * num(c_.h));
      for (auto j : lang::range(num(c_.h))) (*cell)[j] = from[j];
    }
    Value length = steps;
    if (c_.lengths >= 0)
      length =
          lang::max(lang::min(Value(in_[static_cast<size_t>(c_.lengths)][row]), steps), num(0));
    const auto used = lang::let("used", length);
    const auto place = [&](const Value& at) { return ((at * num(c_.d) + d) * batch + row); };
    for (auto s : lang::range(used)) {
      const Value back = used - num(1) - s;
      const auto at =
          lang::let("at", c_.direction == "forward"   ? Value(s)
                          : c_.direction == "reverse" ? back
                                                      : lang::select(d == num(0), s, back));
      const auto y = lang::let("y", out_[0] + place(at) * num(c_.h));
      const auto x =
          lang::let("x", in_[0] + ((at * batch + row) * num(c_.d) + d) * num(c_.gates * c_.h));
      odd_ = lang::let("odd", s % num(2) == num(1));
      step(d, x, y, state, cell.get());
      for (auto j : lang::range(num(c_.h))) state[j] = y[j];
    }
    for (auto at : lang::range(used, steps)) {
      const auto y = lang::let("y", out_[0] + place(at) * num(c_.h));
      for (auto j : lang::range(num(c_.h))) y[j] = constant(0, c_.dtype);
    }
  }

  void step(const Value& d, const lang::Handle& x, const lang::Handle& y, const lang::Handle& state,
            const lang::Handle* cell) {
    const bool before = c_.kind == Kind::gru && !c_.after;
    if (!before) {
      panels(d, state, 0, c_.gates, [&](const Value& j, const Sums& sum) {
        if (c_.kind == Kind::lstm) lstm(d, x, y, *cell, j, sum);
        else if (c_.kind == Kind::gru) gru_after(d, x, y, state, j, sum);
        else y[j] = act(0, clipped(sum(0) + x[j]));
      });
      return;
    }
    // The reset gate scales the state before its product: y holds z meanwhile.
    const auto scaled = lang::registers("scaled", c_.dtype, {num(c_.h)});
    panels(d, state, 0, 2, [&](const Value& j, const Sums& sum) {
      const auto r = lang::let("r", act(0, clipped(sum(1) + x[j + num(c_.h)])));
      scaled(j) = r * state[j];
      y[j] = act(0, clipped(sum(0) + x[j]));
    });
    panels(d, scaled, 2, 1, [&](const Value& j, const Sums& sum) {
      const auto n = lang::let("n", act(1, clipped(sum(0) + x[j + num(2 * c_.h)])));
      const auto z = lang::let("z", y[j]);
      y[j] = (constant(1, c_.dtype) - z) * n + z * state[j];
    });
  }

  using Sums = std::function<Value(int64_t gate)>;
  /// The products of `count` gates from `first` on with `source`, panel by panel, then `unit` for each hidden unit.
  void panels(const Value& d, const lang::Handle& source, int64_t first, int64_t count,
              const std::function<void(const Value& j, const Sums&)>& unit) {
    const auto sums = lang::registers("sums", c_.dtype, {num(c_.panels() * count * c_.lanes)});
    for (auto turn : lang::range(num(c_.panels()))) {
      const auto p =
          lang::let("p", lang::select(*odd_, Value(num(c_.panels() - 1) - turn), Value(turn)));
      const auto weights = lang::let(
          "weights", in_[1] + (d * num(c_.panels()) + p) * num(c_.h * c_.gates * c_.lanes) +
                         num(first * c_.lanes));
      products(source, weights, sums, p * num(count * c_.lanes), count);
    }
    const auto lane = [&](const Value& p, const Value& l) {
      // No variable: the vectorizer sees that it runs along.
      unit(p * num(c_.lanes) + l, [&](int64_t g) {
        return Value(sums(p * num(count * c_.lanes) + (num(g * c_.lanes) + l)));
      });
    };
    for (auto p : lang::range(num(c_.h / c_.lanes)))
      for (auto l : lang::vectorize(num(c_.lanes))) lane(p, l);
    for (auto l : lang::range(num(c_.h % c_.lanes))) lane(num(c_.h / c_.lanes), l);
  }

  void products(const lang::Handle& source, const lang::Handle& weights, const lang::Handle& sums,
                const Value& at_sums, int64_t count) {
    const auto width = static_cast<int>(c_.lanes);
    const ir::Type vector = ir::Type::vector(c_.dtype, width);
    std::vector<std::unique_ptr<lang::Var>> total;
    for (int64_t g = 0; g < count; g++)
      total.emplace_back(
          new lang::Var(lang::var("total", vector, lang::broadcast(constant(0, c_.dtype), width))));
    for (auto k : lang::range(num(c_.h))) {
      const auto from = source.type().is_tensor() ? Value(source(k)) : Value(source[k]);
      const auto h = lang::let("h", lang::broadcast(from, width));
      const auto at = lang::let("at", weights + k * num(c_.gates * c_.lanes));
      for (int64_t g = 0; g < count; g++)
        *total[static_cast<size_t>(g)] = lang::fma(h, lang::load(at + num(g * c_.lanes), width),
                                                   total[static_cast<size_t>(g)]->value());
    }
    for (int64_t g = 0; g < count; g++)
      sums.store({at_sums + num(g * c_.lanes)}, total[static_cast<size_t>(g)]->value());
  }

  Value act(size_t i, const Value& x) const { return c_.act[i]->value(x); }
  Value clipped(const Value& x) const {
    if (c_.clip <= 0) return x;
    return lang::max(lang::min(x, constant(c_.clip, c_.dtype)), constant(-c_.clip, c_.dtype));
  }

  void lstm(const Value& d, const lang::Handle& x, const lang::Handle& y, const lang::Handle& cell,
            const Value& j, const Sums& sum) {
    const auto gate = [&](int64_t g) { return sum(g) + x[j + num(g * c_.h)]; };
    const auto peep = [&](int64_t part, const Value& state) {
      if (c_.peepholes < 0) return constant(0, c_.dtype);
      return in_[static_cast<size_t>(c_.peepholes)][(d * num(3) + num(part)) * num(c_.h) + j] *
             state;
    };
    const auto old = lang::let("old", cell[j]);
    const auto i = lang::let("i", act(0, clipped(gate(0) + peep(0, old))));
    const auto f = lang::let("f", act(0, clipped(gate(2) + peep(2, old))));
    const auto g = lang::let("g", act(1, clipped(gate(3))));
    const auto now = lang::let("now", f * old + i * g);
    const auto o = lang::let("o", act(0, clipped(gate(1) + peep(1, now))));
    cell[j] = now;
    y[j] = o * act(2, now);
  }

  void gru_after(const Value& d, const lang::Handle& x, const lang::Handle& y,
                 const lang::Handle& state, const Value& j, const Sums& sum) {
    const auto z = lang::let("z", act(0, clipped(sum(0) + x[j])));
    const auto r = lang::let("r", act(0, clipped(sum(1) + x[j + num(c_.h)])));
    const auto linear = sum(2) + in_[static_cast<size_t>(c_.bias)][d * num(c_.h) + j];
    const auto n = lang::let("n", act(1, clipped(x[j + num(2 * c_.h)] + r * linear)));
    y[j] = (constant(1, c_.dtype) - z) * n + z * state[j];
  }

  Cell c_;
  std::vector<lang::Handle> in_, out_;
  std::optional<Value> odd_;  ///< of the step
};

ir::Task compute(const OpCall& call) {
  const std::vector<TensorSpec> outputs = infer(call);
  ir::Task task = new_task(kName, call);
  for (size_t i = 0; i < outputs.size(); i++)
    task.outputs.push_back(task_input(static_cast<int>(call.inputs.size() + i), outputs[i]));
  task.opaque = std::make_shared<const ir::Module>(
      Script(cell_of(call)).module(call.inputs.size(), outputs.size()));
  return task;
}

// --- the reference

/// One sequence in one direction, in doubles.
class Sequence {
 public:
  Sequence(const Cell& c, const std::vector<std::vector<double>>& in, int64_t d)
      : c_(c), in_(in), d_(d) {}

  void step(const double* x, std::vector<double>& state, std::vector<double>& cell) const {
    const auto h = static_cast<size_t>(c_.h);
    std::vector<double> next(h);
    std::vector<double> scaled = state;
    if (c_.kind == Kind::gru && !c_.after)
      for (size_t j = 0; j < h; j++) scaled[j] *= gate(x, state, 1, j, 0);
    for (size_t j = 0; j < h; j++) next[j] = unit(x, state, scaled, cell, j);
    state = next;
  }

 private:
  double product(const std::vector<double>& state, int64_t g, size_t j) const {
    const auto unit = static_cast<int64_t>(j);
    double sum = 0;
    for (int64_t k = 0; k < c_.h; k++) {
      const int64_t row = (d_ * c_.panels() + unit / c_.lanes) * c_.h + k;
      sum += state[static_cast<size_t>(k)] *
             in_[1][static_cast<size_t>((row * c_.gates + g) * c_.lanes + unit % c_.lanes)];
    }
    return sum;
  }
  double act(size_t i, double x) const {
    return c_.act[i]->number(c_.clip > 0 ? std::min(std::max(x, -c_.clip), c_.clip) : x);
  }
  double gate(const double* x, const std::vector<double>& state, int64_t g, size_t j, size_t a,
              double more = 0) const {
    return act(a, product(state, g, j) + x[static_cast<size_t>(g * c_.h) + j] + more);
  }
  double unit(const double* x, const std::vector<double>& state, const std::vector<double>& scaled,
              std::vector<double>& cell, size_t j) const {
    const auto h = static_cast<size_t>(c_.h);
    if (c_.kind == Kind::rnn) return gate(x, state, 0, j, 0);
    if (c_.kind == Kind::lstm) {
      const auto peep = [&](size_t part, double v) {
        return c_.peepholes < 0 ? 0
                                : v * in_[static_cast<size_t>(c_.peepholes)]
                                         [(static_cast<size_t>(d_) * 3 + part) * h + j];
      };
      const double i = gate(x, state, 0, j, 0, peep(0, cell[j]));
      const double f = gate(x, state, 2, j, 0, peep(2, cell[j]));
      cell[j] = f * cell[j] + i * gate(x, state, 3, j, 1);
      return gate(x, state, 1, j, 0, peep(1, cell[j])) * c_.act[2]->number(cell[j]);
    }
    const double z = gate(x, state, 0, j, 0);
    double n;
    if (c_.after) {
      const double bias = in_[static_cast<size_t>(c_.bias)][static_cast<size_t>(d_) * h + j];
      n = act(1, x[2 * h + j] + gate(x, state, 1, j, 0) * (product(state, 2, j) + bias));
    } else {
      n = gate(x, scaled, 2, j, 1);
    }
    return (1 - z) * n + z * state[j];
  }

  const Cell& c_;
  const std::vector<std::vector<double>>& in_;
  int64_t d_;
};

std::vector<Tensor> reference(const OpCall& call, const std::vector<Tensor>& inputs) {
  const Cell c = cell_of(call);
  std::vector<std::vector<double>> in;
  for (const Tensor& t : inputs) in.push_back(t.to_doubles());
  const int64_t steps = c.t.value(), batch = c.b.value();
  std::vector<double> y(static_cast<size_t>(steps * c.d * batch * c.h));
  std::vector<double> last, cells;
  for (int64_t d = 0; d < c.d; d++)
    for (int64_t b = 0; b < batch; b++) {
      const auto from = [&](int k) {
        const auto at = in[static_cast<size_t>(k)].begin() + (d * batch + b) * c.h;
        return std::vector<double>(at, at + c.h);
      };
      std::vector<double> state = from(2), cell;
      if (c.cell >= 0) cell = from(c.cell);
      const int64_t given =
          c.lengths < 0
              ? steps
              : static_cast<int64_t>(in[static_cast<size_t>(c.lengths)][static_cast<size_t>(b)]);
      const int64_t used = std::max<int64_t>(0, std::min(given, steps));
      const Sequence sequence(c, in, d);
      for (int64_t s = 0; s < used; s++) {
        const int64_t at = c.direction == "reverse" || d == 1 ? used - 1 - s : s;
        sequence.step(in[0].data() + ((at * batch + b) * c.d + d) * c.gates * c.h, state, cell);
        std::copy(state.begin(), state.end(), y.begin() + ((at * c.d + d) * batch + b) * c.h);
      }
      last.insert(last.end(), state.begin(), state.end());
      cells.insert(cells.end(), cell.begin(), cell.end());
    }
  const auto tensor = [&](const std::vector<double>& values, const Shape& shape) {
    return c.dtype == f64 ? from_vector(values, shape)
                          : from_vector(std::vector<float>(values.begin(), values.end()), shape);
  };
  std::vector<Tensor> out{tensor(y, {steps, c.d, batch, c.h}), tensor(last, {c.d, batch, c.h})};
  if (c.cell >= 0) out.push_back(tensor(cells, {c.d, batch, c.h}));
  return out;
}

/// `flags`: peepholes "p", lengths "l", linear before reset "a".
OpSample sample(const char* cell, DType t, const DimExpr& steps, const DimExpr& batch, int64_t h,
                const char* direction, const char* activations, const std::string& flags = "",
                double clip = 0) {
  const auto has = [&](char c) { return int64_t{flags.find(c) != std::string::npos}; };
  const std::string kind = cell;
  const int64_t d = std::string(direction) == "bidirectional" ? 2 : 1;
  const int64_t gates = kind == "lstm" ? 4 : kind == "gru" ? 3 : 1;
  const int64_t lanes = 64 / static_cast<int64_t>(t.bytes());
  OpSample s{{{t, {steps, batch, d, gates * h}},
              {t, {d, (h + lanes - 1) / lanes, h, gates, lanes}},
              {t, {d, batch, h}}},
             {{"cell", kind},
              {"direction", std::string(direction)},
              {"activations", std::string(activations)},
              {"clip", clip},
              {"linear_before_reset", has('a')},
              {"peepholes", has('p')},
              {"lengths", has('l')}},
             0,
             6};
  if (kind == "lstm") s.inputs.push_back({t, {d, batch, h}});
  if (has('a')) s.inputs.push_back({t, {d, h}});
  if (has('p')) s.inputs.push_back({t, {d, 3 * h}});
  if (has('l')) s.inputs.push_back({i64, {batch}});
  return s;
}
}  // namespace

void register_recurrence(OpRegistry& ops) {
  const char *lstm = "sigmoid,tanh,tanh", *gru = "sigmoid,tanh";
  ops.add(
      {.name = kName,
       .doc =
           "steps of an LSTM, GRU or RNN over the input's products: all states, the last, the cell",
       .infer = infer,
       .compute = compute,
       .reference = reference,
       .samples = {sample("lstm", f32, 5, 2, 19, "bidirectional", lstm),
                   sample("lstm", f32, "n", 1, 16, "forward", lstm),
                   sample("lstm", f64, 3, 2, 5, "reverse", lstm),
                   sample("lstm", f32, 4, 3, 5, "bidirectional", "sigmoid,relu,tanh", "pl", 0.5),
                   sample("gru", f32, 1, 1, 33, "forward", gru, "a"),
                   sample("gru", f32, 5, "n", 6, "reverse", gru, "al"),
                   sample("gru", f32, "n", 2, 17, "bidirectional", gru, "l"),
                   sample("gru", f64, 4, 2, 9, "forward", gru),
                   sample("rnn", f32, 4, 2, 7, "forward", "relu"),
                   sample("rnn", f32, 0, 2, 7, "bidirectional", "tanh"),
                   sample("rnn", f64, 3, 0, 7, "forward", "tanh", "l"),
                   sample("rnn", f32, 6, 2, 18, "reverse", "tanh", "l")}});
}

}  // namespace hidet::graph
