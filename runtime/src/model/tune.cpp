// tune.cpp - CompiledModel::tune. Whole runs are measured, in which each kernel takes one of its candidates in turn, so that every
// candidate finds caches as they are in a run. Before, each candidate runs once on the same tensors as the default and must
// give the same; on a CPU in a process of its own, where it may crash or never end.
// Threading: thread-safe; a measurement is of use on a quiet machine only.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>

#include "hidet/runtime/device_api.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/thread_pool.h"
#include "src/compiled/trial.h"
#include "src/model/state.h"

namespace hidet {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kClearly = 0.98;  // a candidate must take at most this part of the default's time
constexpr double kBehind = 1.3;    // a candidate this much slower than the best drops out
constexpr double kFarBehind = 2;   // after one measurement
constexpr int kFinal =
    3;  // times as many measurements of the default and the best: of many, one is the fastest by chance
constexpr double kLeastTrial =
    1;  // seconds that a first run may take, however short the default's is
constexpr double kHopeless =
    50;  // times that of the default, with one thread, after which it is given up

/// How far results of two candidates may be apart, as a part of the largest value.
double tolerance(DType t) {
  if (!t.is_float()) return 0;
  if (t == f32 || t == f64) return 2e-4;
  return t == bf16 ? 3e-2 : t.bytes() >= 2 ? 4e-3 : 0.25;
}

/// What is wrong with `got` beside `expected`; empty where nothing is.
std::string difference(const Tensor& got, const Tensor& expected) {
  const std::vector<double> a = got.to_doubles(), b = expected.to_doubles();
  double scale = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(b[i])) scale = std::max(scale, std::fabs(b[i]));
    const bool same = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
    if (same) continue;
    const double d = std::fabs(a[i] - b[i]);
    most = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(most, d);
  }
  if (most <= tolerance(expected.dtype()) * scale) return "";
  return hidet::detail::concat("its results differ from the default's by ", most, " at a scale of ",
                               scale);
}

/// A tensor like `t` whose bytes are no likely result, so that what is not written shows.
Tensor poisoned(const Tensor& t) {
  Tensor on_cpu = empty(t.shape(), t.dtype());
  if (on_cpu.bytes() > 0) std::memset(on_cpu.data(), 0xff, static_cast<size_t>(on_cpu.bytes()));
  return on_cpu.to(t.device());
}

/// Inputs at these sizes: normal values; integers 0 and 1, which are indices of most tables.
std::vector<Tensor> generated_inputs(const ModelState& state, const SymbolMap& dims) {
  std::vector<Tensor> inputs;
  for (const TensorSignature& s : state.input_signatures) {
    Shape shape;
    for (const DimExpr& d : s.shape) shape.push_back(d.eval(dims));
    const uint64_t seed = inputs.size();
    inputs.push_back(s.dtype.is_float() ? randn(shape, s.dtype, s.device, seed)
                                        : randint(shape, 0, 2, s.dtype, s.device, seed));
  }
  return inputs;
}

/// Every symbol of the model has a size in `dims`, and no other has.
void check_dims(const ModelState& state, const SymbolMap& dims) {
  for (const std::string& name : state.symbol_names)
    HIDET_REQUIRE(dims.count(name), ErrorCode::usage, "", "tune: the symbol '", name, "' of '",
                  state.data.name, "' has no size");
  for (const auto& [name, value] : dims)
    HIDET_REQUIRE(std::find(state.symbol_names.begin(), state.symbol_names.end(), name) !=
                      state.symbol_names.end(),
                  ErrorCode::usage, "", "tune: '", state.data.name, "' has no symbol '", name, "'");
}

std::string dims_text(const SymbolMap& dims) {
  std::string text;
  for (const auto& [name, value] : dims)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return text;
}

/// The candidates of one kernel.
struct TunedKernel {
  int index;
  TuneKey key;  // but for the candidate
  TuneReport report;
  std::vector<bool> tried;
};

/// Measures at one set of sizes.
class ModelTuning {
 public:
  ModelTuning(const ModelState& state, const SymbolMap& dims, const TuneOptions& options,
              double budget)
      : state_(state),
        options_(options),
        budget_(budget),
        dims_(dims),
        text_(dims.empty() ? state.data.name : dims_text(dims)),
        inputs_(generated_inputs(state, dims)),
        chosen_(state.program().kernels.size(), 0) {
    std::vector<int64_t> values(state.symbol_names.size());
    solve_inputs(state, inputs_, values.data());
    for (size_t k = 0; k < state.program().kernels.size(); ++k) add_kernel(static_cast<int>(k));
  }

  void run() {
    if (complete()) return;
    try_candidates();
    while (!complete() && !out_of_time()) round();
  }

  /// The fastest of each kernel, as far as is known.
  std::vector<int> best() const {
    std::vector<int> all(state_.program().kernels.size(), 0);
    for (const TunedKernel& k : kernels_) all[k.index] = best_of(k);
    return all;
  }

  ModelTuneReport report() const {
    ModelTuneReport r{dims_, {}, complete(), seconds_since(start_)};
    for (const TunedKernel& k : kernels_) {
      r.kernels.push_back(k.report);
      TuneReport& one = r.kernels.back();
      one.best = one.candidates[best_of(k)].name;
      for (CandidateTime& t : one.candidates)
        if (t.measured == 0 && t.note.empty()) t.note = "not measured: the budget was used up";
    }
    return r;
  }

 private:
  /// Kernels that no instruction runs, and those that work in place, are left as they are.
  void add_kernel(int index) {
    const KernelData& data = state_.program().kernels[index];
    const auto& all = state_.program().execution.instructions;
    const auto first =
        std::find_if(all.begin(), all.end(), [&](const Instruction& i) { return i.task == index; });
    if (data.candidates.size() < 2 || first == all.end() || !data.share_map.empty()) return;
    TunedKernel k{index, {}, {data.candidates[0].function, {}, {}, {}, 0}, {}};
    SymbolMap own;
    for (size_t i = 0; i < data.symbols.size(); ++i) {
      own[data.symbols[i]] = first->symbols[i].eval(dims_);
      k.report.dims.push_back(own[data.symbols[i]]);
    }
    const bool cpu = state_.device.is_cpu();
    k.key = {
        data.name, "", "", dims_text(own), state_.dispatch.load()->device, cpu ? num_threads() : 0};
    for (const KernelCandidate& c : data.candidates) {
      CandidateTime t{c.name};
      if (options_.memory.find && !c.digest.empty())
        if (const auto known = options_.memory.find(key_of(k, c))) t = *known;
      t.name = c.name;
      k.report.candidates.push_back(t);
      k.tried.push_back(t.measured > 0 || k.tried.empty());
    }
    kernels_.push_back(std::move(k));
  }

  static TuneKey key_of(const TunedKernel& k, const KernelCandidate& c) {
    TuneKey key = k.key;
    key.candidate = c.name;
    key.digest = c.digest;
    return key;
  }
  void keep(const TunedKernel& k, size_t candidate, const CandidateTime& t) const {
    const KernelCandidate& c = state_.program().kernels[k.index].candidates[candidate];
    if (options_.memory.keep && !c.digest.empty()) options_.memory.keep(key_of(k, c), t);
  }

  bool out_of_time() const { return seconds_since(start_) >= budget_; }
  bool wants(const TunedKernel& k, size_t candidate) const {
    const CandidateTime& t = k.report.candidates[candidate];
    return t.note.empty() && t.measured < wanted(k, candidate);
  }
  int wanted(const TunedKernel& k, size_t candidate) const {
    const bool final = candidate == 0 || static_cast<int>(candidate) == best_of(k);
    return final ? kFinal * options_.rounds : options_.rounds;
  }
  /// Measurements that are still wanted of a kernel.
  int left(const TunedKernel& k) const {
    int n = 0;
    for (size_t c = 0; c < k.tried.size(); ++c)
      if (wants(k, c)) n += wanted(k, c) - k.report.candidates[c].measured;
    return n;
  }
  bool complete() const {
    return std::all_of(kernels_.begin(), kernels_.end(),
                       [&](const TunedKernel& k) { return left(k) == 0; });
  }
  int best_of(const TunedKernel& k) const {
    const std::vector<CandidateTime>& all = k.report.candidates;
    int best = 0;
    for (size_t c = 1; c < all.size(); ++c) {
      if (all[c].measured == 0) continue;
      const double limit = best == 0 ? kClearly * all[0].milliseconds : all[best].milliseconds;
      if (all[0].measured && all[c].milliseconds < limit) best = static_cast<int>(c);
    }
    return best;
  }

  /// A run of the defaults, in which the candidates that nobody knows run once.
  void try_candidates() {
    std::vector<bool> seen(state_.program().kernels.size(), false);
    const std::vector<int> first(seen.size(), 0);
    WalkOptions walk;
    walk.candidates = &first;
    walk.step = [&](const WalkStep& step) {
      const int index = step.instruction.task;
      if (seen[index]) return;
      seen[index] = true;
      for (TunedKernel& k : kernels_)
        if (k.index == index) try_candidates_of(k, step);
    };
    (void)run_interpreted(state_, inputs_, walk);
  }
  void try_candidates_of(TunedKernel& k, const WalkStep& step) {
    for (size_t c = 1; c < k.tried.size(); ++c) {
      CandidateTime& t = k.report.candidates[c];
      if (k.tried[c] || !t.note.empty() || out_of_time()) continue;
      tell(t.name, 0);
      CandidateTime started = t;
      started.note = kTuneStarted;
      keep(k, c, started);
      t.note = problem_of(static_cast<int>(c), step);
      k.tried[c] = t.note.empty();
      keep(k, c, t);
    }
  }
  std::string problem_of(int candidate, const WalkStep& step) const {
    const auto run = [&] {
      std::vector<Tensor> other;
      for (const Tensor& t : step.out) other.push_back(poisoned(t));
      (void)step.again(candidate, other);
      for (size_t i = 0; i < other.size(); ++i)
        if (const std::string wrong = difference(other[i], step.out[i]); !wrong.empty())
          throw Error(wrong);
    };
    if (state_.device.is_cpu()) {
      const double limit = kHopeless * num_threads() * step.milliseconds / 1e3;
      return try_in_child(run, std::max(kLeastTrial, limit));
    }
    try {
      run();
      return "";
    } catch (const Error& e) {
      return e.what();
    }
  }

  /// One run, with the candidate of each kernel that was measured least.
  void round() {
    std::vector<double> sums(chosen_.size(), 0);
    std::vector<int> counts(chosen_.size(), 0);
    for (const TunedKernel& k : kernels_) chosen_[k.index] = next_of(k);
    WalkOptions walk;
    walk.candidates = &chosen_;
    walk.step = [&](const WalkStep& step) {
      sums[step.instruction.task] += step.milliseconds;
      counts[step.instruction.task]++;
    };
    const Clock::time_point before = Clock::now();
    (void)run_interpreted(state_, inputs_, walk);
    const double seconds = seconds_since(before);
    ++rounds_;
    for (TunedKernel& k : kernels_) {
      const size_t c = static_cast<size_t>(chosen_[k.index]);
      if (!wants(k, c) || !k.tried[c]) continue;
      CandidateTime& t = k.report.candidates[c];
      const double ms = sums[k.index] / counts[k.index];
      t.milliseconds = t.measured++ ? std::min(t.milliseconds, ms) : ms;
      drop_slow(k);
      keep(k, c, t);
    }
    tell(text_, seconds * 1e3);
  }
  int next_of(const TunedKernel& k) const {
    int next = -1;
    for (size_t c = 0; c < k.tried.size(); ++c)
      if (wants(k, c) && k.tried[c] &&
          (next < 0 || k.report.candidates[c].measured < k.report.candidates[next].measured))
        next = static_cast<int>(c);
    return next < 0 ? best_of(k) : next;
  }
  void drop_slow(TunedKernel& k) const {
    const double least = k.report.candidates[best_of(k)].milliseconds;
    for (size_t c = 1; c < k.tried.size(); ++c) {
      CandidateTime& t = k.report.candidates[c];
      if (!wants(k, c) || t.measured == 0 || k.report.candidates[0].measured == 0) continue;
      if (t.milliseconds <= (t.measured > 1 ? kBehind : kFarBehind) * least) continue;
      t.note = "dropped: far behind the best";
      keep(k, c, t);
    }
  }

  /// A run measures a candidate of every kernel: as many are left as the kernel with the most wants.
  void tell(const std::string& what, double milliseconds) {
    if (!options_.progress) return;
    int most = 0;
    for (const TunedKernel& k : kernels_) most = std::max(most, left(k));
    const double spent = seconds_since(start_), rest = std::max(budget_ - spent, 0.0);
    const double eta = rounds_ ? std::min(spent / rounds_ * most, rest) : rest;
    options_.progress({rounds_, rounds_ + most, spent, eta, what, milliseconds});
  }

  const ModelState& state_;
  const TuneOptions& options_;
  const double budget_;
  const SymbolMap dims_;
  const std::string text_;
  const std::vector<Tensor> inputs_;
  std::vector<int> chosen_;
  std::vector<TunedKernel> kernels_;
  const Clock::time_point start_ = Clock::now();
  int rounds_ = 0;
};

}  // namespace

std::string dispatch_text(const ModelState& state, const ProgramData& p) {
  return &p == &state.program() ? state.dispatch.load()->text(state.data, p) : p.dispatch_table;
}

}  // namespace runtime

std::vector<ModelTuneReport> CompiledModel::tune(const std::vector<SymbolMap>& dims,
                                                 const TuneOptions& options) {
  HIDET_REQUIRE(state_, ErrorCode::usage, "", "this CompiledModel is empty");
  State& state = *state_;
  runtime::require_code(state);
  HIDET_REQUIRE(options.budget > 0 && options.rounds > 0, ErrorCode::usage, "",
                "tune() takes a budget of seconds and a number of rounds above 0");
  HIDET_REQUIRE(state.launch_chosen, ErrorCode::usage, "", "the kernels of '", state.data.name,
                "' have one candidate each: build it with space 1 or 2");
  for (const SymbolMap& at : dims) runtime::check_dims(state, at);
  std::vector<ModelTuneReport> reports;
  const auto start = runtime::Clock::now();
  for (size_t i = 0; i < dims.size(); ++i) {
    const double rest = std::max(options.budget - runtime::seconds_since(start), 0.0);
    runtime::ModelTuning tuning(state, dims[i], options,
                                rest / static_cast<double>(dims.size() - i));
    const auto publish = [&] {
      auto table = std::make_shared<runtime::DispatchTable>(*state.dispatch.load());
      std::vector<int64_t> values;
      for (const std::string& name : state.symbol_names) values.push_back(dims[i].at(name));
      table->put(values, tuning.best());
      state.dispatch.store(std::move(table));
    };
    try {
      tuning.run();
    } catch (...) {
      publish();  // what was measured until then is not lost
      throw;
    }
    publish();
    reports.push_back(tuning.report());
  }
  return reports;
}

std::string CompiledModel::dispatch_table() const {
  HIDET_REQUIRE(state_, ErrorCode::usage, "", "this CompiledModel is empty");
  return runtime::dispatch_text(*state_, state_->program());
}

void CompiledModel::use_dispatch_table(const std::string& text) {
  HIDET_REQUIRE(state_, ErrorCode::usage, "", "this CompiledModel is empty");
  auto table = std::make_shared<runtime::DispatchTable>(
      runtime::DispatchTable::parse(state_->data, state_->program(), text, ""));
  table->device = state_->dispatch.load()->device;
  state_->dispatch.store(std::move(table));
}

}  // namespace hidet
