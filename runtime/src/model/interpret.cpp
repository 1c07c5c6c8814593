// interpret.cpp - walks a program kernel by kernel through the thunks, with a hook and times; equals the launch function.
// Threading: thread-safe.
#include <chrono>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/model/state.h"

namespace hidet::runtime {
namespace {

using Clock = std::chrono::steady_clock;
double ms(Clock::duration d) { return std::chrono::duration<double, std::milli>(d).count(); }

class Walk {
 public:
  Walk(const ModelState& state, const std::vector<Tensor>& inputs, const WalkOptions& options)
      : state_(state),
        options_(options),
        e_(state.program().execution),
        inputs_(inputs),
        weights_(ready_weights(state)),
        context_(state.code->pool) {
    std::vector<int64_t> values(state.symbol_names.size());
    solve_inputs(state, inputs, values.data());
    check_limits(state, values.data());
    for (size_t i = 0; i < values.size(); ++i) symbols_[state.symbol_names[i]] = values[i];
    context_->stream = nullptr;
    table_ = state.dispatch.load();
    if (const DispatchTable::Row* row = table_->nearest(values.data())) chosen_ = &row->candidates;
    if (options.candidates) chosen_ = options.candidates;
    tensors_.resize(e_.tensors.size());
    place(values.data());
  }

  std::vector<Tensor> run() {
    const auto& [hook, profile, candidates, step] = options_;
    const bool timed = hook || profile || step;
    if (timed && state_.device.is_cuda()) cuda_synchronize(state_.device.index());
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < e_.instructions.size(); ++i) {
      const Instruction& instruction = e_.instructions[i];
      const KernelData& kernel = state_.program().kernels[instruction.task];
      const std::string& name = instruction.name.empty() ? kernel.name : instruction.name;
      const std::vector<Tensor> in = take(instruction.inputs), out = take(instruction.outputs);
      const Clock::time_point before = Clock::now();
      call(instruction, candidate_of(instruction), in, out);
      if (timed && state_.device.is_cuda()) cuda_synchronize(state_.device.index());
      const double time = ms(Clock::now() - before);
      if (step) tell(instruction, in, out, time);
      const std::string& candidate = kernel.candidates[candidate_of(instruction)].name;
      if (hook) hook({static_cast<int>(i), name, kernel.name, candidate, in, out, time});
      if (profile)
        profile->operators.push_back(
            {name, kernel.name, candidate, shapes_of(in, out), ms(before - start), time,
             static_cast<double>(kernel.flops.eval(own(instruction, kernel))),
             bytes_of(in) + bytes_of(out)});
      for (const int id : instruction.free)
        if (!keep_[id]) tensors_[id] = Tensor();
    }
    if (profile) profile->total_ms = ms(Clock::now() - start);
    finish();
    return outputs_;
  }

 private:
  int candidate_of(const Instruction& i) const { return chosen_ ? (*chosen_)[i.task] : 0; }
  void tell(const Instruction& instruction, const std::vector<Tensor>& in,
            const std::vector<Tensor>& out, double time) {
    const std::function<double(int, const std::vector<Tensor>&)> again =
        [&](int candidate, const std::vector<Tensor>& other) {
          context_->begin();  // one before it may have failed
          const Clock::time_point before = Clock::now();
          call(instruction, candidate, in, other);
          if (state_.device.is_cuda()) cuda_synchronize(state_.device.index());
          return ms(Clock::now() - before);
        };
    options_.step({instruction, in, out, time, again});
  }
  int root(int id) const {
    while (e_.tensors[id].alias >= 0) id = e_.tensors[id].alias;
    return id;
  }

  /// Inputs, weights and outputs get their tensors before the first kernel.
  void place(const int64_t* values) {
    using From = OutputPlan::From;
    keep_.assign(e_.tensors.size(), false);
    for (size_t i = 0; i < inputs_.size(); ++i) set(e_.inputs_index[i], inputs_[i]);
    for (size_t i = 0; i < e_.weights_index.size(); ++i)
      if (e_.weights_index[i] >= 0) set(e_.weights_index[i], weights_->placed[i]);
    for (size_t i = 0; i < state_.outputs.size(); ++i) {
      const OutputPlan& plan = state_.outputs[i];
      const Shape shape = output_shape(plan, values);
      if (plan.from == From::shared) {
        outputs_.push_back(inputs_[plan.index].view_at(0, shape, plan.signature.dtype));
      } else {
        outputs_.push_back(empty(shape, plan.signature.dtype, plan.signature.device));
      }
      if (plan.from == From::code || plan.from == From::shared)
        set_if_empty(root(e_.outputs_index[i]), outputs_.back());
      if (plan.from == From::input) copy(i, inputs_[plan.index]);
      if (plan.from == From::weight) copy(i, weights_->placed[plan.index]);
    }
  }
  void set(int id, const Tensor& t) {
    tensors_[id] = t;
    keep_[id] = true;
  }
  void set_if_empty(int id, const Tensor& t) {
    if (!tensors_[id].defined()) set(id, t);
  }
  void copy(size_t output, const Tensor& from) {
    const Tensor& to = outputs_[output];
    HIDET_REQUIRE(to.bytes() == from.bytes(), ErrorCode::bad_file, "", "an output of ", to.bytes(),
                  " bytes is a copy of ", from.bytes(), " bytes");
    if (to.bytes() > 0)
      copy_bytes(to.data(), to.device(), from.data(), from.device(),
                 static_cast<size_t>(to.bytes()));
  }
  void finish() {
    for (size_t i = 0; i < outputs_.size(); ++i)
      if (state_.outputs[i].from == OutputPlan::From::output)
        copy(i, outputs_[state_.outputs[i].index]);
  }

  Shape shape_of(int id) const {
    Shape shape;
    for (const DimExpr& d : e_.tensors[id].shape) shape.push_back(d.eval(symbols_));
    return shape;
  }
  Tensor tensor(int id) {
    const ProgramTensor& t = e_.tensors[id];
    if (t.alias >= 0) return tensor(root(id)).view_at(0, shape_of(id), t.dtype);
    if (!tensors_[id].defined()) tensors_[id] = empty(shape_of(id), t.dtype, state_.device);
    // A reshaped output has its root's memory under another shape.
    return tensors_[id].rank() == static_cast<int>(t.shape.size())
               ? tensors_[id]
               : tensors_[id].view_at(0, shape_of(id), t.dtype);
  }
  std::vector<Tensor> take(const std::vector<int>& ids) {
    std::vector<Tensor> list;
    for (const int id : ids) list.push_back(tensor(id));
    return list;
  }

  /// Values of the kernel's own symbols.
  SymbolMap own(const Instruction& instruction, const KernelData& kernel) const {
    SymbolMap own;
    for (size_t i = 0; i < kernel.symbols.size(); ++i)
      own[kernel.symbols[i]] = instruction.symbols[i].eval(symbols_);
    return own;
  }
  void call(const Instruction& instruction, int candidate, const std::vector<Tensor>& in,
            const std::vector<Tensor>& out) {
    const KernelData& kernel = state_.program().kernels[instruction.task];
    const std::string& name = instruction.name.empty() ? kernel.name : instruction.name;
    std::vector<hidet_value> args;
    const auto pointer = [&](void* p) {
      hidet_value v{};
      v.p = p;
      args.push_back(v);
    };
    for (const Tensor& t : in) pointer(t.data());
    for (const Tensor& t : out) pointer(t.data());
    const SymbolMap symbols = own(instruction, kernel);
    if (!kernel.workspace.is_const(0))
      pointer(context_->workspace.get(state_.device, kernel.workspace.eval(symbols)));
    for (const std::string& symbol : kernel.symbols) {
      hidet_value v{};
      v.i = symbols.at(symbol);
      args.push_back(v);
    }
    args.emplace_back();  // where a result would go
    const ScratchScope scope;
    context_->check(state_.thunks[instruction.task][candidate](context_.get(), args.data()),
                    name.c_str());
  }
  static double bytes_of(const std::vector<Tensor>& list) {
    double bytes = 0;
    for (const Tensor& t : list) bytes += static_cast<double>(t.bytes());
    return bytes;
  }
  static std::string shapes_of(const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    std::string text;
    for (const Tensor& t : in) text += (text.empty() ? "" : " ") + shape_text(t.shape());
    text += " ->";
    for (const Tensor& t : out) text += " " + shape_text(t.shape());
    return text;
  }

  const ModelState& state_;
  const WalkOptions& options_;
  const Execution& e_;
  const std::vector<Tensor>& inputs_;
  const std::shared_ptr<const Weights> weights_;
  const ContextPool::Use context_;
  std::shared_ptr<const DispatchTable> table_;
  const std::vector<int>* chosen_ = nullptr;  // by kernel; null: the first of each
  SymbolMap symbols_;
  std::vector<Tensor> tensors_, outputs_;
  std::vector<bool> keep_;
};

}  // namespace

std::vector<Tensor> run_interpreted(const ModelState& state, const std::vector<Tensor>& inputs,
                                    const WalkOptions& options) {
  require_code(state);
  return Walk(state, inputs, options).run();
}

}  // namespace hidet::runtime
