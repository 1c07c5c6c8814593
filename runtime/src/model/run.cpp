// run.cpp - the fast path: checks inputs, solves symbols, makes outputs, calls the program's launch function.
// Threading: thread-safe; each run has a context of its own.
#include <algorithm>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "src/cuda/cuda_module.h"
#include "src/model/state.h"

namespace hidet::runtime {

std::string got_text(const Tensor& t) {
  if (!t.defined()) return "an empty tensor";
  return t.describe() + (t.is_symbolic() ? " without values" : "");
}

namespace {

constexpr size_t kMaxSymbols = 64;

[[noreturn]] void refuse_input(const InputCheck& check, const Tensor& t,
                               const std::string& more = "") {
  throw Error(ErrorCode::usage,
              detail::concat("input '", check.signature.name, "': expected ",
                             check.signature.dtype.name(), shape_text(check.signature.shape), " ",
                             check.signature.device.name(), ", got ", got_text(t), more));
}

std::string symbol_text(const ModelState& state, int symbol, int64_t value) {
  return detail::concat(" (", state.symbol_names[symbol], " is ", value, ")");
}

void check_input(const ModelState& state, const InputCheck& check, const Tensor& t,
                 int64_t* symbols) {
  if (!t.defined() || t.is_symbolic() || t.dtype() != check.signature.dtype ||
      t.device() != check.signature.device || t.rank() != static_cast<int>(check.dims.size()))
    refuse_input(check, t);
  const Shape& shape = t.shape();
  for (size_t d = 0; d < shape.size(); ++d) {
    const DimCheck& c = check.dims[d];
    if (c.kind == DimCheck::Kind::constant) {
      if (shape[d] != c.value) refuse_input(check, t);
    } else if (c.kind == DimCheck::Kind::bind) {
      const SymbolRange& range = state.data.symbols[c.symbol];
      symbols[c.symbol] = shape[d];
      if (shape[d] < range.min || shape[d] > range.max)
        refuse_input(
            check, t,
            detail::concat(" (", range.name, " must be from ", range.min, " to ", range.max, ")"));
    } else if (c.kind == DimCheck::Kind::same) {
      if (shape[d] != symbols[c.symbol])
        refuse_input(check, t, symbol_text(state, c.symbol, symbols[c.symbol]));
    }
  }
}

/// GPU kernels read whole vectors, so a tensor that begins elsewhere is read from a copy, made in the order of `stream`.
Tensor aligned_input(const ModelState& state, size_t i, const Tensor& t, CUstream_st* stream) {
  for (const OutputPlan& plan : state.outputs)
    HIDET_REQUIRE(plan.from != OutputPlan::From::shared || plan.index != static_cast<int>(i),
                  ErrorCode::usage, "", "input '", state.inputs[i].signature.name,
                  "' is changed in place and must begin at a multiple of ", kCudaAlignment,
                  " bytes");
  Tensor copy = empty(t.shape(), t.dtype(), t.device());
  cuda_copy_async(t.device().index(), stream, copy.data(), t.data(),
                  static_cast<size_t>(t.bytes()));
  return copy;
}

}  // namespace

Shape output_shape(const OutputPlan& plan, const int64_t* symbols) {
  Shape shape(plan.dims.size());
  for (size_t d = 0; d < shape.size(); ++d) shape[d] = plan.dims[d].run(symbols);
  return shape;
}

Tensor make_output(const OutputPlan& plan, const std::vector<Tensor>& inputs,
                   const int64_t* symbols) {
  if (plan.from == OutputPlan::From::shared)
    return inputs[plan.index].view_at(0, output_shape(plan, symbols), plan.signature.dtype);
  return empty(output_shape(plan, symbols), plan.signature.dtype, plan.signature.device);
}

void copy_into(const Tensor& to, const Tensor& from) {
  HIDET_REQUIRE(to.bytes() == from.bytes(), ErrorCode::bad_file, "", "an output of ", to.bytes(),
                " bytes is a copy of ", from.bytes(), " bytes");
  if (to.bytes() > 0)
    copy_bytes(to.data(), to.device(), from.data(), from.device(), static_cast<size_t>(to.bytes()));
}

void require_code(const ModelState& state) {
  HIDET_REQUIRE(state.code, ErrorCode::device, "", "model '", state.data.name,
                "' cannot run here: ", state.why_not);
}

void solve_inputs(const ModelState& state, const std::vector<Tensor>& inputs, int64_t* symbols) {
  HIDET_REQUIRE(inputs.size() == state.inputs.size(), ErrorCode::usage, "", "model '",
                state.data.name, "' takes ", state.inputs.size(), " inputs, got ", inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i)
    check_input(state, state.inputs[i], inputs[i], symbols);
  for (size_t i = 0; i < inputs.size(); ++i)
    for (size_t d = 0; d < state.inputs[i].dims.size(); ++d) {
      const DimCheck& c = state.inputs[i].dims[d];
      if (c.kind != DimCheck::Kind::formula) continue;
      const int64_t expected = c.program.run(symbols);
      if (inputs[i].shape()[d] != expected)
        refuse_input(state.inputs[i], inputs[i],
                     detail::concat(" (axis ", d, " must be ", expected, ")"));
    }
}

void check_limits(const ModelState& state, const int64_t* symbols) {
  const int64_t cpu = state.limit_cpu.load(std::memory_order_relaxed),
                cuda = state.limit_cuda.load(std::memory_order_relaxed);
  if (cpu == 0 && cuda == 0) return;
  SymbolMap dims;
  for (size_t i = 0; i < state.symbol_names.size(); ++i) dims[state.symbol_names[i]] = symbols[i];
  const MemoryNeed need = memory_need(state, dims);
  HIDET_REQUIRE(cpu == 0 || need.cpu.total() <= cpu, ErrorCode::memory, "", "a run of '",
                state.data.name, "' needs ", need.cpu.total(),
                " bytes of CPU memory, over the limit of ", cpu);
  HIDET_REQUIRE(cuda == 0 || need.cuda.total() <= cuda, ErrorCode::memory, "", "a run of '",
                state.data.name, "' needs ", need.cuda.total(),
                " bytes of GPU memory, over the limit of ", cuda);
}

void check_earlier_kernels(const ModelState& state) {
  if (!state.code->cuda_loaded()) return;
  if (const int32_t id = state.code->cuda().take_error())
    throw Error(ErrorCode::device, detail::concat("an assertion (number ", id,
                                                  ") failed in a GPU kernel of an earlier run of '",
                                                  state.data.name, "'"));
}

std::shared_ptr<const Weights> ready_weights(const ModelState& state) {
  std::shared_ptr<const Weights> weights = state.weights.load();
  HIDET_REQUIRE(weights && weights->ready, ErrorCode::usage, "", "model '", state.data.name,
                "' was saved without weights: call set_weights before it is run");
  return weights;
}

int32_t launch_program(const ModelState& state, hidet_ctx* context, const int64_t* symbols,
                       void* const* inputs, void* const* outputs, void* const* weights,
                       void* workspace) {
  if (state.launch_chosen) [[unlikely]] {
    const std::shared_ptr<const DispatchTable> table = state.dispatch.load();
    if (const DispatchTable::Row* row = table->nearest(symbols))
      return state.launch_chosen(context, symbols, inputs, outputs, weights, workspace,
                                 row->candidates.data());
  }
  return state.launch(context, symbols, inputs, outputs, weights, workspace);
}

std::vector<Tensor> run_code(const ModelState& state, const std::vector<Tensor>& inputs,
                             CUstream_st* stream) {
  require_code(state);
  int64_t few[kMaxSymbols];
  std::vector<int64_t> many;
  int64_t* symbols = few;
  if (state.symbol_names.size() > kMaxSymbols) {
    many.resize(state.symbol_names.size());
    symbols = many.data();
  }
  solve_inputs(state, inputs, symbols);
  check_limits(state, symbols);
  const std::shared_ptr<const Weights> weights = ready_weights(state);
  if (state.device.is_cuda()) check_earlier_kernels(state);

  using From = OutputPlan::From;
  std::vector<Tensor> outputs;
  outputs.reserve(state.outputs.size());
  const ContextPool::Use context(state.code->pool);
  std::vector<void*>& pointers = context->pointers;
  pointers.clear();
  std::vector<Tensor> copies;  // until the launch
  for (size_t i = 0; i < inputs.size(); ++i) {
    const bool moved = state.device.is_cuda() && !is_cuda_aligned(inputs[i]);
    if (moved) copies.push_back(aligned_input(state, i, inputs[i], stream));
    pointers.push_back(moved ? copies.back().data() : inputs[i].data());
  }
  for (const OutputPlan& plan : state.outputs) {
    outputs.push_back(make_output(plan, inputs, symbols));
    const bool given = plan.from == From::code || plan.from == From::shared;
    pointers.push_back(given ? outputs.back().data() : nullptr);
  }
  // Copies of inputs come first: a shared output may change its input.
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPlan& plan = state.outputs[i];
    if (plan.from == From::input) copy_into(outputs[i], inputs[plan.index]);
    if (plan.from == From::weight) copy_into(outputs[i], weights->placed[plan.index]);
  }
  const int64_t bytes = state.workspace_bytes(symbols, 0);
  HIDET_REQUIRE(bytes >= 0, ErrorCode::memory, "", "the workspace of '", state.data.name,
                "' does not fit in 63 bits at these sizes");
  context->stream = stream;
  // On a stream of the user's the memory goes back in that stream's order, not to the next run.
  Tensor own = stream ? empty({bytes}, u8, state.device) : Tensor();
  void* workspace = stream ? own.data() : context->workspace.get(state.device, bytes);
  const ScratchScope scope;
  const int32_t status =
      launch_program(state, context.get(), symbols, pointers.data(),
                     pointers.data() + inputs.size(), weights->pointers.data(), workspace);
  context->check(status, state.data.name.c_str());
  for (size_t i = 0; i < outputs.size(); ++i)
    if (state.outputs[i].from == From::output)
      copy_into(outputs[i], outputs[state.outputs[i].index]);
  return outputs;
}

}  // namespace hidet::runtime
