// tune.cpp - measures the candidates of a parameter space, and the kernels of one call, on copies of the arguments. Each call finds
// the copies as the arguments are. A candidate for the CPU runs first in a process of its own, where it may crash or never end.
// Threading: thread-safe; a measurement is of use on a quiet machine only.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <deque>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/error.h"
#include "src/compiled/code.h"
#include "src/compiled/trial.h"

namespace hidet {
namespace {

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr double kMeasured = 2e-3;  // seconds of calls that one measurement takes at least
constexpr int kMostCalls = 100;     // but no more calls than this
constexpr double kBehind = 1.5;     // a candidate this much slower than the best drops out
constexpr int kLeastRounds = 3;     // but not before so many rounds
constexpr double kLeastTrial =
    0.25;                         // seconds that a first call may take, however small the budget
constexpr double kHopeless = 50;  // a first call this much longer than the shortest is given up

/// Copies of a call's tensors; tensors on the same memory share a copy. Numbers pass as they are.
class ArgumentCopies {
 public:
  ArgumentCopies(const FunctionInfo& f, std::span<const CallArg> args) {
    for (size_t i = 0; i < args.size(); ++i) {
      const CallArg& a = args[i];
      HIDET_REQUIRE(a.kind() != CallArg::Kind::pointer || !a.value().p, ErrorCode::usage, "",
                    "argument ", i < f.params.size() ? "'" + f.params[i].name + "'" : "", " of ",
                    f.signature(),
                    " is a pointer, whose memory cannot be copied to be measured; pass a Tensor");
      if (a.kind() != CallArg::Kind::tensor || !a.tensor().defined() || a.tensor().bytes() == 0) {
        args_.push_back(a);
        continue;
      }
      const auto same = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& c) {
        return c.from.data() == a.tensor().data() && c.from.describe() == a.tensor().describe();
      });
      if (same == copies_.end()) copies_.push_back({a.tensor(), a.tensor().clone()});
      args_.emplace_back(same == copies_.end() ? copies_.back().to : same->to);
    }
  }
  std::span<const CallArg> args() const { return args_; }
  /// Makes the copies what the arguments are, where a call was seen to change them.
  void restore() const {
    for (const Copy& c : copies_)
      if (c.changes) c.to.copy_from(c.from);
  }
  /// After a call: sees which copies it changed.
  void note_changes() {
    for (Copy& c : copies_) c.changes = c.changes || !same_bytes(c.from, c.to);
  }
  bool changing() const {
    return std::any_of(copies_.begin(), copies_.end(), [](const Copy& c) { return c.changes; });
  }

 private:
  struct Copy {
    Tensor from, to;
    bool changes = false;
  };
  static bool same_bytes(const Tensor& a, const Tensor& b) {
    const Tensor x = a.cpu(), y = b.cpu();
    return std::memcmp(x.data(), y.data(), static_cast<size_t>(x.bytes())) == 0;
  }
  std::deque<Copy> copies_;  // a deque: args_ points into it
  std::vector<CallArg> args_;
};

void call_once(const runtime::LoadedCode& code, size_t function, const ArgumentCopies& copies) {
  (void)runtime::call_loaded(code, function, copies.args());
}

/// Milliseconds of one call on the CPU, from `calls` of them; what calls change is restored between.
double measure_cpu(const runtime::LoadedCode& code, size_t function, const ArgumentCopies& copies,
                   int calls) {
  const bool changing = copies.changing();
  double seconds = 0;
  auto start = Clock::now();
  for (int i = 0; i < calls; ++i) {
    if (changing) {
      copies.restore();
      start = Clock::now();
    }
    call_once(code, function, copies);
    if (changing || i + 1 == calls) seconds += seconds_since(start);
  }
  return seconds * 1e3 / calls;
}

/// The same on a GPU. Nothing waits between the calls, so that the host is ahead of the GPU, and gaps are not measured.
double measure_gpu(const runtime::LoadedCode& code, size_t function, const ArgumentCopies& copies,
                   int calls) {
  const bool changing = copies.changing();
  const int device = code.data.device.index();
  cuda_synchronize(device);
  std::deque<std::pair<CudaEvent, CudaEvent>> spans;
  for (int i = 0; i < calls; ++i) {
    if (changing) copies.restore();
    if (changing || i == 0) {
      spans.emplace_back(CudaEvent(device), CudaEvent(device));
      spans.back().first.record(nullptr);
    }
    call_once(code, function, copies);
    if (changing || i + 1 == calls) spans.back().second.record(nullptr);
  }
  double ms = 0;
  for (auto& [begin, end] : spans) ms += static_cast<double>(end.since(begin));
  code.check_kernels();
  return ms / calls;
}

/// The first call in this process: loads code, and sees what it changes.
void first_call(const runtime::LoadedCode& code, size_t function, ArgumentCopies& copies) {
  copies.restore();
  call_once(code, function, copies);
  if (!code.data.images.empty()) {
    cuda_synchronize(code.data.device.index());
    code.check_kernels();
  }
  copies.note_changes();
}

double measure(const runtime::LoadedCode& code, size_t function, const ArgumentCopies& copies,
               int calls) {
  copies.restore();
  return (code.data.images.empty() ? measure_cpu : measure_gpu)(code, function, copies, calls);
}

class Tuning {
 public:
  Tuning(const runtime::Candidates& space, size_t function, const TuneOptions& options,
         std::span<const CallArg> args, TuneReport& report)
      : space_(space),
        function_(function),
        options_(options),
        report_(report),
        copies_(space.at(0).functions[function].info, args),
        calls_(space.size(), 1) {
    for (size_t i = 0; i < space.size(); ++i)
      report.candidates.push_back({space.at(i).data.candidate});
  }

  void run() {
    for (size_t i = 0; i < space_.size(); ++i) left_.push_back(i);
    warm_up();
    for (int round = 0; round < options_.rounds && !out_of_time(); ++round) {
      for (const size_t i : left_) {
        if (out_of_time() && done_ > 0) break;
        take(i, measure(space_.at(i), function_, copies_, calls_[i]));
        report_progress(i, options_.rounds - round);
      }
      if (round + 1 >= kLeastRounds) drop_slow();
      if (left_.size() == 1) break;
    }
    report_.seconds = seconds_since(start_);
  }

  size_t best() const {
    size_t found = space_.size();
    for (size_t i = 0; i < space_.size(); ++i) {
      const CandidateTime& t = report_.candidates[i];
      if (t.measured &&
          (found == space_.size() || t.milliseconds < report_.candidates[found].milliseconds))
        found = i;
    }
    return found;
  }

 private:
  bool out_of_time() const { return seconds_since(start_) >= options_.budget; }

  void take(size_t i, double ms) {
    CandidateTime& t = report_.candidates[i];
    t.milliseconds = t.measured++ ? std::min(t.milliseconds, ms) : ms;
    last_ = ms;
    ++done_;
  }

  /// Loads and tries each; decides how many calls make a measurement. Always tries one.
  void warm_up() {
    std::erase_if(left_, [&](size_t i) {
      CandidateTime& t = report_.candidates[i];
      if (out_of_time() && done_ > 0) {
        t.note = "not measured: the budget was used up";
        return true;
      }
      try {
        t.note = try_it(i);
        if (!t.note.empty()) return true;
        first_call(space_.at(i), function_, copies_);
        take(i, measure(space_.at(i), function_, copies_, 1));
      } catch (const Error& e) {
        t.note = e.what();
        return true;
      }
      const double wanted = std::ceil(kMeasured * 1e3 / std::max(last_, 1e-6));
      calls_[i] = static_cast<int>(std::clamp(wanted, 1.0, double{kMostCalls}));
      report_progress(i, options_.rounds + 1);
      return false;
    });
  }

  /// Why a candidate for the CPU cannot be called here; "" where it can.
  std::string try_it(size_t i) {
    const runtime::LoadedCode& code = space_.at(i);
    if (!code.data.images.empty()) return "";
    const double rest = options_.budget - seconds_since(start_);
    const auto others = static_cast<double>(space_.size() - i);
    double limit = rest / (others + 1);
    if (shortest_ > 0) limit = std::min(limit, kHopeless * shortest_);
    copies_.restore();
    const auto start = Clock::now();
    const std::string problem = runtime::try_in_child([&] { call_once(code, function_, copies_); },
                                                      std::max(limit, kLeastTrial));
    const double took = seconds_since(start);
    if (problem.empty()) shortest_ = shortest_ > 0 ? std::min(shortest_, took) : took;
    return problem;
  }

  void drop_slow() {
    const double least = report_.candidates[best()].milliseconds;
    std::erase_if(left_, [&](size_t i) {
      if (report_.candidates[i].milliseconds <= kBehind * least) return false;
      report_.candidates[i].note = "dropped: far behind the best";
      return true;
    });
  }

  void report_progress(size_t i, int rounds_left) const {
    if (!options_.progress) return;
    const double spent = seconds_since(start_);
    const int total = done_ + rounds_left * static_cast<int>(left_.size());
    const double rest = std::max(options_.budget - spent, 0.0);
    options_.progress({done_, total, spent, std::min(spent / done_ * (total - done_), rest),
                       report_.candidates[i].name, last_});
  }

  const runtime::Candidates& space_;
  const size_t function_;
  const TuneOptions& options_;
  TuneReport& report_;
  ArgumentCopies copies_;
  std::vector<int> calls_;
  std::vector<size_t> left_;
  const Clock::time_point start_ = Clock::now();
  int done_ = 0;
  double last_ = 0;
  double shortest_ = 0;  // first call, in seconds; 0: none yet
};

}  // namespace

TuneReport CompiledFunction::tune_call(const TuneOptions& options,
                                       std::span<const CallArg> args) const {
  HIDET_REQUIRE(code_->space, ErrorCode::usage, "", "module '", code_->data.name,
                "' has no parameter space to tune; ScriptModule::space gives it one");
  HIDET_REQUIRE(options.budget > 0 && options.rounds > 0, ErrorCode::usage, "",
                "tune() takes a budget of seconds and a number of rounds above 0");
  TuneReport report;
  report.function = info().name;
  report.dims = runtime::dims_of(info(), args);
  Tuning tuning(*code_->space, static_cast<size_t>(index_), options, args, report);
  tuning.run();
  const size_t best = tuning.best();
  if (best == code_->space->size()) {
    std::string reasons;
    for (const CandidateTime& c : report.candidates) reasons += "; " + c.name + ": " + c.note;
    throw Error(ErrorCode::usage,
                detail::concat("no candidate of '", code_->data.name, "' runs", reasons));
  }
  report.best = report.candidates[best].name;
  code_->space->keep(report.function, report.dims, best);
  return report;
}

Profile CompiledFunction::profile_call(std::span<const CallArg> args) const {
  const runtime::LoadedCode& code =
      code_->space ? code_->space->choose(info().name, runtime::dims_of(info(), args)) : *code_;
  ArgumentCopies copies(info(), args);
  const size_t index = static_cast<size_t>(index_);
  first_call(code, index, copies);  // loads code, fills caches
  copies.restore();
  Profile profile;
  (void)runtime::call_loaded(code, index, copies.args(), &profile);
  return profile;
}

}  // namespace hidet
