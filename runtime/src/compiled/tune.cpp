// tune.cpp - measures the candidates of a parameter space, and the kernels of one call, on copies of the arguments.
// Threading: thread-safe; a measurement is of use on a quiet machine only.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/error.h"
#include "src/compiled/code.h"

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
  /// Makes the copies what the arguments are.
  void restore() const {
    for (const Copy& c : copies_) c.to.copy_from(c.from);
  }
  std::span<const CallArg> args() const { return args_; }

 private:
  struct Copy {
    Tensor from, to;
  };
  std::deque<Copy> copies_;  // a deque: args_ points into it
  std::vector<CallArg> args_;
};

/// Milliseconds of one call, from `calls` in a row.
double measure(const runtime::LoadedCode& code, size_t function, const ArgumentCopies& copies,
               int calls) {
  copies.restore();
  const auto run = [&] {
    for (int i = 0; i < calls; ++i) (void)runtime::call_loaded(code, function, copies.args());
  };
  if (code.data.images.empty()) {
    const auto start = Clock::now();
    run();
    return seconds_since(start) * 1e3 / calls;
  }
  const int device = code.data.device.index();
  cuda_synchronize(device);
  CudaEvent begin(device), end(device);
  begin.record(nullptr);
  run();
  end.record(nullptr);
  const float ms = end.since(begin);
  code.check_kernels();
  return static_cast<double>(ms) / calls;
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
        (void)measure(space_.at(i), function_, copies_, 1);
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
  const ArgumentCopies copies_;
  std::vector<int> calls_;
  std::vector<size_t> left_;
  const Clock::time_point start_ = Clock::now();
  int done_ = 0;
  double last_ = 0;
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
  if (best == code_->space->size())
    throw Error(ErrorCode::usage, detail::concat("no candidate of '", code_->data.name,
                                                 "' runs: ", report.candidates[0].name, ": ",
                                                 report.candidates[0].note));
  report.best = report.candidates[best].name;
  code_->space->keep(report.function, report.dims, best);
  return report;
}

Profile CompiledFunction::profile_call(std::span<const CallArg> args) const {
  const runtime::LoadedCode& code =
      code_->space ? code_->space->choose(info().name, runtime::dims_of(info(), args)) : *code_;
  const ArgumentCopies copies(info(), args);
  const size_t index = static_cast<size_t>(index_);
  (void)measure(code, index, copies, 1);  // loads code, fills caches
  copies.restore();
  Profile profile;
  (void)runtime::call_loaded(code, index, copies.args(), &profile);
  return profile;
}

}  // namespace hidet
