// check_data.cpp - the numbers of a ModelData fit each other, so that nothing later need ask.
// Threading: pure functions; thread-safe.
#include <set>

#include "hidet/runtime/error.h"
#include "src/model/dispatch.h"
#include "src/model/state.h"

namespace hidet::runtime {
namespace {

class Checker {
 public:
  Checker(const ModelData& data, const std::string& where) : data_(data), where_(where) {}

  void run() {
    require(!data_.programs.empty(), "the model has no program");
    std::set<std::string> names;
    for (const SymbolRange& s : data_.symbols)
      require(!s.name.empty() && names.insert(s.name).second, "symbol '", s.name,
              "' is there twice");
    std::set<std::string> bound;
    for (const TensorSignature& s : data_.inputs) {
      check_symbols(s.shape, "input '" + s.name + "'");
      for (const DimExpr& d : s.shape)
        if (d.is_symbol()) bound.insert(d.name());
    }
    for (const SymbolRange& s : data_.symbols)
      require(bound.count(s.name), "symbol '", s.name, "' is the size of no input");
    for (const TensorSignature& s : data_.outputs)
      check_symbols(s.shape, "output '" + s.name + "'");
    for (const auto& [out, in] : data_.share_map)
      require(in_range(out, data_.outputs) && in_range(in, data_.inputs), "share_map has ", out,
              ": ", in, ", which is out of range");
    for (const StoredWeight& w : data_.stored) check_stored(w);
    for (const ProgramData& p : data_.programs) check_program(p);
  }

 private:
  template <class... Args>
  void require(bool condition, const Args&... args) const {
    HIDET_REQUIRE(condition, ErrorCode::bad_file, where_, args...);
  }
  template <class List>
  static bool in_range(int i, const List& list) {
    return i >= 0 && static_cast<size_t>(i) < list.size();
  }
  void check_symbols(const SymbolicShape& shape, const std::string& what) const {
    for (const DimExpr& d : shape) check_formula(d, what);
  }
  void check_formula(const DimExpr& d, const std::string& what) const {
    for (const std::string& name : d.symbol_names()) {
      bool known = false;
      for (const SymbolRange& s : data_.symbols) known = known || s.name == name;
      require(known, what, " has the unknown symbol '", name, "'");
    }
  }
  void check_stored(const StoredWeight& w) const {
    require(w.source >= -1 && (w.source < 0 || in_range(w.source, data_.sources)),
            "stored weight '", w.key, "' names source ", w.source, " of ", data_.sources.size());
    if (w.source < 0) return;
    const SourceWeight& s = data_.sources[w.source];
    require(s.dtype == w.dtype && s.shape == w.shape, "stored weight '", w.key,
            "' differs from its source '", s.name, "'");
  }
  void check_ids(const std::vector<int>& ids, const ProgramData& p, const char* what,
                 int least = 0) const {
    for (const int id : ids)
      require(id >= least && (id < 0 || in_range(id, p.execution.tensors)), "program ", p.target,
              ": tensor id ", id, " in ", what, " of ", p.execution.tensors.size());
  }
  void check_program(const ProgramData& p) const {
    require(CpuTarget::is_cpu_target(p.target) || CudaTarget::is_cuda(p.target), "unknown target '",
            p.target, "'");
    for (const int s : p.stored)
      require(in_range(s, data_.stored), "program ", p.target, " uses stored weight ", s, " of ",
              data_.stored.size());
    const Execution& e = p.execution;
    require(e.inputs_index.size() == data_.inputs.size() &&
                e.outputs_index.size() == data_.outputs.size() &&
                e.weights_index.size() == p.stored.size(),
            "program ", p.target,
            " has other numbers of inputs, outputs or weights than the model");
    check_ids(e.inputs_index, p, "inputs_index");
    check_ids(e.outputs_index, p, "outputs_index");
    check_ids(e.weights_index, p, "weights_index", -1);
    for (size_t i = 0; i < e.tensors.size(); ++i) {
      check_symbols(e.tensors[i].shape, detail::concat("program ", p.target, ": tensor ", i));
      check_alias(p, static_cast<int>(i));
    }
    for (const Instruction& i : e.instructions) check_instruction(p, i);
    for (const KernelData& k : p.kernels)
      require(!k.candidates.empty(), "program ", p.target, ": kernel '", k.name,
              "' has no candidate");
    (void)DispatchTable::parse(data_, p, p.dispatch_table, where_);
    check_formula(p.workspace_cpu, "workspace of " + p.target);
    check_formula(p.workspace_cuda, "workspace of " + p.target);
  }
  void check_alias(const ProgramData& p, int id) const {
    size_t steps = 0;
    for (int at = id; p.execution.tensors[at].alias >= 0; ++steps) {
      at = p.execution.tensors[at].alias;
      require(in_range(at, p.execution.tensors) && steps < p.execution.tensors.size(), "program ",
              p.target, ": the alias of tensor ", id, " leads nowhere");
    }
  }
  void check_instruction(const ProgramData& p, const Instruction& i) const {
    HIDET_REQUIRE(i.kind == "launch", ErrorCode::unsupported, where_, "program ", p.target,
                  " has an instruction '", i.kind, "', which this version does not know");
    require(in_range(i.task, p.kernels), "program ", p.target, ": an instruction names kernel ",
            i.task, " of ", p.kernels.size());
    const KernelData& k = p.kernels[i.task];
    require(i.inputs.size() == k.inputs.size() && i.outputs.size() == k.outputs.size() &&
                i.symbols.size() == k.symbols.size(),
            "program ", p.target, ": kernel '", k.name,
            "' is called with another number of tensors or symbols than it takes");
    check_ids(i.inputs, p, "inputs");
    check_ids(i.outputs, p, "outputs");
    check_ids(i.free, p, "free");
    for (const DimExpr& d : i.symbols) check_formula(d, "an instruction of " + p.target);
    for (const std::string& name : k.workspace.symbol_names()) {
      bool known = false;
      for (const std::string& s : k.symbols) known = known || s == name;
      require(known, "kernel '", k.name, "': its workspace has the unknown symbol '", name, "'");
    }
  }

  const ModelData& data_;
  const std::string& where_;
};

}  // namespace

void check_model_data(const ModelData& data, const std::string& where) {
  Checker(data, where).run();
}

}  // namespace hidet::runtime
