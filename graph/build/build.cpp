// build.cpp - FlowGraph::build: splits the graph into an init program (weights only) and a run program, makes their
// plans and code, and hands a ModelData to the runtime.
// Threading: pure function of the graph and options.
#include <hidet/backends/cpu.h>
#include <hidet/backends/cuda.h>
#include <hidet/codegen/codegen.h>
#include <hidet/graph/build.h>
#include <hidet/graph/flow_graph.h>
#include <hidet/ir/passes.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>

#include "build/plan.h"
#include "build/split.h"

namespace hidet {
namespace graph {
namespace {

using NodeList = std::vector<const FlowGraph::Node*>;

/// Text that identifies how an init value is made.
class Keys {
 public:
  /// `sources`: for each weight of g its index among the model's source weights.
  Keys(const FlowGraph& g, const std::vector<int>& sources) {
    for (size_t i = 0; i < g.weights().size(); i++)
      keys_[g.weights()[i].id()] = "w" + std::to_string(sources[i]);
    for (const FlowGraph::Node& n : g.nodes())
      for (size_t i = 0; i < n.outputs.size(); i++) makers_[n.outputs[i].id()] = {&n, i};
  }
  std::string of(const Tensor& t) {
    if (auto it = keys_.find(t.id()); it != keys_.end()) return it->second;
    const auto& [n, index] = makers_.at(t.id());
    std::string key =
        n->op->def->name + "." + std::to_string(index) + "(" + n->op->attrs.to_string();
    for (const Tensor& in : n->op->inputs) key += "; " + of(in);
    return keys_[t.id()] = key + ")";
  }

 private:
  std::map<ValueId, std::string> keys_;
  std::map<ValueId, std::pair<const FlowGraph::Node*, size_t>> makers_;
};

/// C expression of the address of a value.
class Addresses {
 public:
  Addresses(const Plan& plan) : plan_(plan) {}
  std::string of(int value) const {
    const Place& p = plan_.values[plan_.root(value)].place;
    const std::string i = std::to_string(p.index);
    switch (p.kind) {
      case Place::Kind::input: return "inputs[" + i + "]";
      case Place::Kind::weight: return "weights[" + i + "]";
      case Place::Kind::source: return "sources[" + i + "]";
      case Place::Kind::output: return "outputs[" + i + "]";
      case Place::Kind::workspace: return slot(p.index);
      case Place::Kind::none: break;
    }
    HIDET_CHECK(false, "a value without memory");
    return "";
  }
  static std::string slot(int k) { return "(void*)(base + o" + std::to_string(k) + ")"; }

 private:
  const Plan& plan_;
};

/// Names for symbols in C.
std::map<std::string, std::string> symbol_names(const std::vector<std::string>& symbols) {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < symbols.size(); i++) names[symbols[i]] = "s" + std::to_string(i);
  return names;
}

/// The table of the candidates of kernel `index`.
std::string choices_name(int index) { return "choices_" + std::to_string(index); }

/// The body shared by init and launch: slot offsets, then one call a step. `dispatch`: of the candidate that the argument
/// `candidates` says.
std::string steps_text(const Plan& plan, const KernelStore& kernels,
                       const std::map<std::string, std::string>& names, bool dispatch) {
  std::string out = "  char* base = workspace;\n  (void)base;\n";
  std::string previous = "0";
  for (size_t k = 0; k < plan.slots.size(); k++) {
    out += "  const int64_t o" + std::to_string(k) + " = " + previous + ";\n";
    previous = "o" + std::to_string(k) + " + " + c_formula(plan.slots[k], names);
  }
  const Addresses at(plan);
  for (const PlanStep& s : plan.steps) {
    const PlanKernel& k = kernels.kernels()[s.kernel];
    std::string args = "ctx";
    for (int v : s.inputs) args += ", " + at.of(v);
    for (int v : s.outputs) args += ", " + at.of(v);
    if (s.workspace_slot >= 0) args += ", " + Addresses::slot(s.workspace_slot);
    for (const std::string& symbol : k.symbols) args += ", " + names.at(symbol);
    const std::string function =
        dispatch && !k.others.empty()
            ? choices_name(s.kernel) + "[candidates[" + std::to_string(s.kernel) + "]]"
            : k.function;
    out += "  if ((status = " + function + "(" + args + "))) return status;\n";
  }
  return out + "  return 0;\n}\n";
}

std::string symbol_loads(const std::map<std::string, std::string>& names,
                         const std::vector<std::string>& symbols) {
  std::string out;
  for (size_t i = 0; i < symbols.size(); i++)
    out += "  const int64_t " + names.at(symbols[i]) + " = symbols[" + std::to_string(i) +
           "];\n  (void)" + names.at(symbols[i]) + ";\n";
  return out + "  (void)symbols;\n";
}

constexpr const char kFormulaHelpers[] =
    R"(static inline int64_t hidet_floordiv(int64_t a, int64_t b) { return b == 0 ? 0 : a / b - (a % b != 0 && (a < 0) != (b < 0)); }
static inline int64_t hidet_floormod(int64_t a, int64_t b) { int64_t r = b == 0 ? 0 : a % b; return r != 0 && (r < 0) != (b < 0) ? r + b : r; }
static inline int64_t hidet_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t hidet_most(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t hidet_broadcast(int64_t a, int64_t b) { return a == 1 ? b : a; }
)";

/// Prototypes of a kernel and its candidates, and the table of them where there are several.
std::string declarations(const PlanKernel& k, size_t index) {
  std::string params = "hidet_ctx*";
  const size_t pointers =
      k.data.inputs.size() + k.data.outputs.size() + (k.workspace.is_const(0) ? 0 : 1);
  for (size_t i = 0; i < pointers; i++) params += ", void*";
  for (size_t i = 0; i < k.symbols.size(); i++) params += ", int64_t";
  std::string out, list;
  for (const KernelCandidate& c : k.data.candidates) {
    out += "int32_t " + c.function + "(" + params + ");\n";
    list += (list.empty() ? "" : ", ") + c.function;
  }
  if (!k.others.empty())
    out += "static int32_t (*const " + choices_name(static_cast<int>(index)) + "[])(" + params +
           ") = {" + list + "};\n";
  return out;
}

/// hidet_graph_launch; where kernels have several candidates it is hidet_graph_launch_chosen with the first of each.
std::string launch_text(const Plan& run, const KernelStore& kernels,
                        const std::vector<std::string>& symbols,
                        const std::map<std::string, std::string>& names) {
  const auto& all = kernels.kernels();
  const bool dispatch =
      std::any_of(all.begin(), all.end(), [](const PlanKernel& k) { return !k.others.empty(); });
  const std::string params =
      "(hidet_ctx* ctx, const int64_t* symbols, void* const* inputs, void* const* outputs, "
      "void* const* weights, void* workspace";
  std::string out = "HIDET_EXPORT int32_t hidet_graph_launch" +
                    std::string(dispatch ? "_chosen" : "") + params +
                    (dispatch ? ", const int32_t* candidates" : "") +
                    ") {\n  int32_t status = 0;\n  (void)ctx, (void)inputs, "
                    "(void)outputs, (void)weights, (void)status;\n" +
                    symbol_loads(names, symbols) + steps_text(run, kernels, names, dispatch);
  if (dispatch)
    out += "HIDET_EXPORT int32_t hidet_graph_launch" + params +
           ") {\n  static const int32_t first[" + std::to_string(all.size()) +
           "];\n  return hidet_graph_launch_chosen(ctx, symbols, inputs, outputs, weights, "
           "workspace, first);\n}\n";
  return out;
}

/// The program's main unit: prototypes of the kernels, and the graph's functions as abi.h says.
std::string main_unit(const Plan& init, const KernelStore& init_kernels, const Plan& run,
                      const KernelStore& run_kernels, const std::vector<std::string>& symbols,
                      const std::vector<Tensor>& outputs) {
  const auto names = symbol_names(symbols);
  std::string out = codegen::abi_declarations() + codegen::table_definition() + kFormulaHelpers;
  for (size_t i = 0; i < run_kernels.kernels().size(); i++)
    out += declarations(run_kernels.kernels()[i], i);
  if (&init_kernels != &run_kernels)
    for (const PlanKernel& k : init_kernels.kernels()) out += declarations(k, 0);
  out +=
      "HIDET_EXPORT int32_t hidet_graph_init(hidet_ctx* ctx, void* const* sources, void* const* "
      "outputs, void* workspace) {\n"
      "  int32_t status = 0;\n  (void)ctx, (void)sources, (void)outputs, (void)status;\n" +
      steps_text(init, init_kernels, {}, false);
  out += launch_text(run, run_kernels, symbols, names);
  out += "HIDET_EXPORT int64_t hidet_graph_workspace(const int64_t* symbols, int32_t init) {\n" +
         symbol_loads(names, symbols) + "  return init ? " + c_formula(init.workspace(), {}) +
         " : " + c_formula(run.workspace(), names) + ";\n}\n";
  out += "HIDET_EXPORT void hidet_graph_output_shapes(const int64_t* symbols, int64_t* dims) {\n" +
         symbol_loads(names, symbols) + "  (void)dims;\n";
  int at = 0;
  for (const Tensor& t : outputs)
    for (const DimExpr& d : t.shape_expr())
      out += "  dims[" + std::to_string(at++) + "] = " + c_formula(d, names) + ";\n";
  return out + "}\n";
}

/// The run plan as data.
Execution execution_of(const Plan& plan, const FlowGraph& g, const KernelStore& kernels,
                       size_t stored) {
  Execution e;
  std::vector<int> weight_ids(stored, -1);
  for (size_t v = 0; v < plan.values.size(); v++) {
    const PlanValue& value = plan.values[v];
    e.tensors.push_back(
        {value.tensor.dtype(), value.tensor.shape_expr(), value.tensor.device(), value.alias});
    if (value.place.kind == Place::Kind::weight)
      weight_ids[value.place.index] = static_cast<int>(v);
  }
  for (const Tensor& t : g.input_tensors()) e.inputs_index.push_back(plan.ids.at(t.id()));
  e.weights_index = weight_ids;
  for (const Tensor& t : g.output_tensors()) e.outputs_index.push_back(plan.ids.at(t.id()));
  std::vector<int> last(plan.values.size(), -1);
  for (size_t s = 0; s < plan.steps.size(); s++) {
    const PlanStep& step = plan.steps[s];
    Instruction i;
    i.task = step.kernel;
    i.inputs = step.inputs;
    i.outputs = step.outputs;
    i.name = step.name;
    for (const std::string& symbol : kernels.kernels()[step.kernel].symbols)
      i.symbols.emplace_back(symbol);
    e.instructions.push_back(std::move(i));
    for (int v : step.inputs) last[plan.root(v)] = static_cast<int>(s);
    for (int v : step.outputs) last[plan.root(v)] = static_cast<int>(s);
  }
  for (size_t v = 0; v < plan.values.size(); v++)
    if (last[v] >= 0 && plan.values[v].place.kind == Place::Kind::workspace)
      e.instructions[last[v]].free.push_back(static_cast<int>(v));
  return e;
}

/// Builds the program of one target into `model`.
class ProgramBuilder {
 public:
  ProgramBuilder(const FlowGraph& g, const BuildModelOptions& options,
                 const CandidateFilter& filter, ModelData& model, BuildReport* report)
      : g_(g),
        options_(options),
        filter_(filter),
        model_(model),
        report_(report),
        sources_(add_sources(g, model)),
        keys_(g, sources_) {}

  void build(const std::string& target) {
    const bool cuda = !CpuTarget::is_cpu_target(target);
    // Host code of CUDA programs is plain x86-64.
    const CpuTarget host = backends::resolve_target(cuda ? "x86-64" : target);
    const std::string name = cuda ? target : host.name();
    const CpuTargetInfo info{host.name(), host.vector_bytes(), options_.fewer_products,
                             host.has("amx")};
    KernelStore run_kernels(info, cuda), init_only(info);
    KernelStore& init_kernels = cuda ? init_only : run_kernels;
    const Parts parts = split(g_);
    ProgramData p;
    p.target = name;

    // The run program decides which weights and init results are stored.
    const std::vector<Tensor> used = stored_values(g_, parts);
    for (const Tensor& t : used) p.stored.push_back(store(t));
    run_kernels.set_space(options_.space, wanted_of(name));
    const Plan run = run_plan(parts, used, run_kernels);
    run_kernels.set_space(0);  // init runs once
    const Plan init = init_plan(parts, used, init_kernels);

    p.execution = execution_of(run, g_, run_kernels, used.size());
    (cuda ? p.workspace_cuda : p.workspace_cpu) = run.workspace();
    std::vector<std::string> symbols;
    for (const SymbolRange& s : model_.symbols) symbols.push_back(s.name);
    for (const PlanKernel& k : run_kernels.kernels()) p.kernels.push_back(with_digests(k, name));
    compile_host(p, host.name(), init, init_kernels, run, run_kernels, symbols);
    if (cuda) compile_device(p, target, run_kernels);
    if (report_) {
      report_->kernels = static_cast<int>(run.steps.size());
      for (const PlanKernel& k : run_kernels.kernels())
        report_->kernels_unique += 1 + static_cast<int>(k.others.size());
      report_->values.clear();
      for (const PlanValue& v : run.values) report_->values.push_back(v.tensor);
    }
    model_.programs.push_back(std::move(p));
  }

 private:
  KernelStore::Wanted wanted_of(const std::string& target) const {
    if (!filter_) return {};
    return [this, target](const std::string& function, const std::string& candidate) {
      return filter_(target, function, candidate);
    };
  }
  Plan run_plan(const Parts& parts, const std::vector<Tensor>& used, KernelStore& kernels) {
    PlanRequest run;
    run.nodes = parts.run;
    for (size_t i = 0; i < g_.input_tensors().size(); i++)
      run.given.push_back({g_.input_tensors()[i], {Place::Kind::input, static_cast<int>(i)}});
    for (size_t i = 0; i < used.size(); i++)
      run.given.push_back({used[i], {Place::Kind::weight, static_cast<int>(i)}});
    for (size_t i = 0; i < g_.output_tensors().size(); i++)
      run.results.push_back({g_.output_tensors()[i], {Place::Kind::output, static_cast<int>(i)}});
    Plan plan = make_plan(run, kernels);
    HIDET_REQUIRE(model_.programs.empty() || model_.share_map == run.share, ErrorCode::unsupported,
                  "", "the programs of '", model_.name,
                  "' for different devices share different outputs with their inputs");
    model_.share_map = run.share;
    return plan;
  }
  Plan init_plan(const Parts& parts, const std::vector<Tensor>& used, KernelStore& kernels) const {
    PlanRequest init;
    init.nodes = needed(parts.init, used);
    for (size_t i = 0; i < g_.weights().size(); i++)
      init.given.push_back({g_.weights()[i], {Place::Kind::source, sources_[i]}});
    for (size_t i = 0; i < used.size(); i++)
      if (used[i].is_symbolic())
        init.results.push_back({used[i], {Place::Kind::output, static_cast<int>(i)}});
    return make_plan(init, kernels);
  }

  void compile_host(ProgramData& p, const std::string& target, const Plan& init,
                    const KernelStore& init_kernels, const Plan& run,
                    const KernelStore& run_kernels, const std::vector<std::string>& symbols) {
    std::vector<backends::Unit> units;
    const auto add = [&](const KernelStore& store) {
      each_candidate(store, [&](const PlanKernel& k) {
        units.push_back({k.function, k.text});
        model_.source_texts[p.target + "/" + k.function + ".c"] = k.text;
        model_.source_texts[p.target + "/" + k.function + ".ir"] = ir::print(k.module);
      });
    };
    add(run_kernels);
    if (&init_kernels != &run_kernels) add(init_kernels);
    units.push_back(
        {"program", main_unit(init, init_kernels, run, run_kernels, symbols, g_.output_tensors())});
    backends::CpuOptions o;
    o.target = target;
    o.fast_math = options_.fast_math;
    o.jobs = options_.threads;
    o.progress = progress("compile " + p.target);
    backends::BuildStats stats;
    p.code = Bytes(backends::build_shared_object(units, o, &stats));
    if (report_) report_->cache_hits += stats.cache_hits;
  }
  void compile_device(ProgramData& p, const std::string& target, const KernelStore& kernels) {
    std::vector<backends::CudaUnit> units;
    each_candidate(kernels, [&](const PlanKernel& k) {
      if (k.cuda_text.empty()) return;
      units.push_back({k.function, k.cuda_text, k.cuda_kernels});
      p.cuda_kernels.insert(p.cuda_kernels.end(), k.cuda_kernels.begin(), k.cuda_kernels.end());
      model_.source_texts[p.target + "/" + k.function + ".cu"] = k.cuda_text;
    });
    if (units.empty()) return;
    backends::CudaOptions o;
    o.compiler = options_.cuda_compiler;
    o.target = target;
    o.fast_math = options_.fast_math;
    o.jobs = options_.threads;
    o.progress = progress("compile " + target);
    p.cuda_image = Bytes(backends::compile_cuda(units, o));
  }
  std::function<bool(int, int)> progress(const std::string& phase) const {
    if (!options_.progress) return {};
    return [this, phase](int done, int total) {
      options_.progress(phase, done, total);
      return true;
    };
  }

  static void each_candidate(const KernelStore& kernels,
                             const std::function<void(const PlanKernel&)>& f) {
    for (const PlanKernel& k : kernels.kernels()) {
      f(k);
      for (const PlanKernel& other : k.others) f(other);
    }
  }
  /// What measurements of the candidates are kept under: their texts, and what makes code of these.
  KernelData with_digests(const PlanKernel& k, const std::string& target) const {
    KernelData data = k.data;
    if (k.others.empty()) return data;
    const bool cuda = !k.cuda_text.empty();
    std::string by = cuda ? backends::cuda_compiler_identity(options_.cuda_compiler)
                          : backends::compiler_identity();
    by = by.substr(0, by.find(" ["));  // its version, without the stamps of its files
    by += "\n" + target + (options_.fast_math ? " fast" : "") + "\n";
    for (size_t i = 0; i < data.candidates.size(); i++) {
      const PlanKernel& c = i == 0 ? k : k.others[i - 1];
      data.candidates[i].digest = hash_text(by + c.text + c.cuda_text);
    }
    return data;
  }

  /// The index in ModelData::sources of each weight of g; graphs of one model share a tensor's.
  static std::vector<int> add_sources(const FlowGraph& g, ModelData& model) {
    std::vector<int> out;
    for (size_t i = 0; i < g.weights().size(); i++) {
      const Tensor& w = g.weights()[i];
      const auto same = std::find_if(model.sources.begin(), model.sources.end(),
                                     [&](const SourceWeight& s) { return s.data.same_as(w); });
      out.push_back(static_cast<int>(same - model.sources.begin()));
      if (same == model.sources.end())
        model.sources.push_back({g.weight_names()[i], w.dtype(), w.shape(), w});
    }
    return out;
  }
  /// Index in ModelData::stored, shared between targets by key.
  int store(const Tensor& t) {
    const std::string key = keys_.of(t);
    for (size_t i = 0; i < model_.stored.size(); i++)
      if (model_.stored[i].key == key) return static_cast<int>(i);
    StoredWeight w;
    w.key = key;
    w.dtype = t.dtype();
    w.shape = t.shape();
    for (size_t i = 0; i < g_.weights().size(); i++)
      if (g_.weights()[i].same_as(t)) w.source = sources_[i];
    model_.stored.push_back(std::move(w));
    return static_cast<int>(model_.stored.size()) - 1;
  }
  /// The init nodes that some of `results` need.
  static NodeList needed(const NodeList& nodes, const std::vector<Tensor>& results) {
    std::set<ValueId> wanted;
    for (const Tensor& t : results) wanted.insert(t.id());
    NodeList out;
    for (size_t i = nodes.size(); i-- > 0;) {
      const FlowGraph::Node* n = nodes[i];
      if (std::none_of(n->outputs.begin(), n->outputs.end(),
                       [&](const Tensor& t) { return wanted.count(t.id()) != 0; }))
        continue;
      for (const Tensor& t : n->op->inputs) wanted.insert(t.id());
      out.insert(out.begin(), n);
    }
    return out;
  }

  const FlowGraph& g_;
  const BuildModelOptions& options_;
  const CandidateFilter& filter_;
  ModelData& model_;
  BuildReport* report_;
  const std::vector<int> sources_;
  Keys keys_;
};

bool on_gpu(const FlowGraph& g) {
  const std::vector<Tensor>& in = g.input_tensors();
  return std::any_of(in.begin(), in.end(), [](const Tensor& t) { return t.device().is_cuda(); });
}

/// The targets to build, by name; without any: those that suit the first graph's device.
std::vector<std::string> targets_of(const std::vector<FlowGraph>& graphs,
                                    const BuildModelOptions& options) {
  const bool all_on_gpu = std::all_of(graphs.begin(), graphs.end(), on_gpu);
  if (options.targets.empty())
    return on_gpu(graphs[0]) ? backends::default_cuda_targets()
                             : std::vector<std::string>{"native"};
  std::vector<std::string> targets = options.targets;
  for (std::string& t : targets)
    if (all_on_gpu && t == "native")
      t = backends::CudaArch::parse(t).name;  // not the CPU of this machine
  return targets;
}

/// The graph that is built for a target.
const FlowGraph& graph_for(const std::string& target, const std::vector<FlowGraph>& graphs,
                           const std::string& model) {
  const bool cpu = CpuTarget::is_cpu_target(target) || target == "native";
  for (const FlowGraph& g : graphs)
    if (on_gpu(g) != cpu || g.input_tensors().empty()) return g;
  throw Error(ErrorCode::usage,
              detail::concat("the model '", model, "' has inputs on a ", cpu ? "GPU" : "CPU",
                             " and cannot be built for '", target, "'"));
}

bool same_interface(const std::vector<TensorSignature>& a, const std::vector<TensorSignature>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.name == y.name && x.dtype == y.dtype && x.shape == y.shape;
  });
}

}  // namespace

ModelData build_filtered(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                         BuildReport* report, const CandidateFilter& filter) {
  HIDET_REQUIRE(!graphs.empty(), ErrorCode::usage, "", "a model is built from at least one graph");
  HIDET_REQUIRE(options.space >= 0 && options.space <= 2, ErrorCode::usage, "",
                "the space of candidates is ", options.space, "; it should be 0, 1 or 2");
  const FlowGraph& first = graphs[0];
  ModelData m;
  m.name = options.name;
  m.inputs = first.inputs();
  m.outputs = first.outputs();
  for (const FlowGraph& g : graphs)
    HIDET_REQUIRE(same_interface(g.inputs(), m.inputs) && same_interface(g.outputs(), m.outputs),
                  ErrorCode::usage, "", "the graphs of '", m.name,
                  "' differ in their inputs or outputs");
  for (const std::string& s : first.symbols()) m.symbols.push_back({s});
  m.graph_string = first.text();
  m.graph_hash = hash_text(m.graph_string);
  for (const std::string& t : targets_of(graphs, options))
    ProgramBuilder(graph_for(t, graphs, m.name), options, filter, m, report).build(t);
  return m;
}

ModelData build_model_data(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                           BuildReport* report) {
  return build_filtered(graphs, options, report, {});
}

ModelData build_model_data(const FlowGraph& g, const BuildModelOptions& options,
                           BuildReport* report) {
  return build_model_data(std::vector<FlowGraph>{g}, options, report);
}

}  // namespace graph

CompiledModel FlowGraph::build(const BuildModelOptions& options) const {
  return CompiledModel::from_data(graph::build_model_data(*this, options));
}

}  // namespace hidet
