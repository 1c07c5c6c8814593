// space.cpp - records and compiles the candidates of a parameter space.
// Threading: see space.h.
#include "space.h"

#include <hidet/lang/script_module.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/log.h>
#include <hidet/runtime/thread_pool.h>

#include <algorithm>

namespace hidet::lang {
using namespace detail;

ModuleState& detail::Parts::state(const ScriptModule& module) { return *module.state_; }
Space& detail::Parts::space(const ScriptModule& module) { return *module.space_; }

int64_t Params::operator[](const std::string& name) const {
  for (const auto& [key, value] : values_)
    if (key == name) return value;
  throw Error(ErrorCode::usage,
              "the parameter space has no parameter '" + name + "'; it has " + text());
}
std::string Params::text() const {
  std::string out;
  for (const auto& [key, value] : values_)
    out += (out.empty() ? "" : ",") + key + "=" + std::to_string(value);
  return out;
}

void ScriptModule::space(std::vector<SpaceDim> dims,
                         std::function<void(ScriptModule&, const Params&)> define, Here at) {
  const std::string where = SourceLoc(at).text();
  HIDET_REQUIRE(space_->dims.empty(), ErrorCode::usage, where, "the module '", name(),
                "' already has a parameter space (", space_->loc.text(), ")");
  HIDET_REQUIRE(define && !dims.empty(), ErrorCode::usage, where,
                "a parameter space takes parameters and a function");
  for (size_t i = 0; i < dims.size(); i++) {
    check_name(dims[i].name, "a parameter", at);
    HIDET_REQUIRE(!dims[i].values.empty(), ErrorCode::usage, where, "the parameter '", dims[i].name,
                  "' has no values");
    for (size_t j = 0; j < i; j++)
      HIDET_REQUIRE(dims[i].name != dims[j].name, ErrorCode::usage, where,
                    "there are two parameters called '", dims[i].name, "'");
    std::vector<int64_t> sorted = dims[i].values;
    std::sort(sorted.begin(), sorted.end());
    HIDET_REQUIRE(std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end(),
                  ErrorCode::usage, where, "the parameter '", dims[i].name, "' has a value twice");
  }
  *space_ = {std::move(dims), std::move(define), at};
}

namespace {
std::vector<Params> combinations(const std::vector<SpaceDim>& dims) {
  std::vector<std::vector<std::pair<std::string, int64_t>>> all(1);
  for (const SpaceDim& dim : dims) {
    std::vector<std::vector<std::pair<std::string, int64_t>>> longer;
    for (const auto& before : all)
      for (const int64_t value : dim.values) {
        longer.push_back(before);
        longer.back().emplace_back(dim.name, value);
      }
    all = std::move(longer);
  }
  std::vector<Params> out;
  for (auto& values : all) out.emplace_back(std::move(values));
  return out;
}

/// True for what a candidate may fail with (`internal`: the compiler refuses its text); anything else is no property of the candidate.
bool is_refusal(const Error& e) {
  return e.code() == ErrorCode::usage || e.code() == ErrorCode::unsupported ||
         e.code() == ErrorCode::internal;
}
}  // namespace

void LeftOut::note(const std::string& candidate, const std::string& reason) {
  log_note("candidate " + candidate + " of '" + state_.name + "' is left out: " + reason);
  reasons_ += "; " + candidate + ": " + reason;
}
void LeftOut::require(bool some) const {
  HIDET_REQUIRE(some, ErrorCode::usage, space_.loc.text(), "no candidate of '", state_.name,
                "' can be built", reasons_);
}

std::vector<Candidate> detail::record_candidates(const ModuleState& state, const Space& space,
                                                 LeftOut& left_out, size_t most) {
  std::vector<Candidate> out;
  for (const Params& params : combinations(space.dims)) {
    if (out.size() == most) break;
    try {
      ScriptModule module(state.name);
      ModuleState& own = Parts::state(module);
      own.loc = space.loc;
      own.globals = state.globals;
      space.define(module, params);
      const Space& inner = Parts::space(module);
      HIDET_REQUIRE(inner.dims.empty(), ErrorCode::usage, inner.loc.text(),
                    "a parameter space inside another");
      out.push_back({params.text(), assemble(own, &state)});
    } catch (const Error& e) {
      if (!is_refusal(e)) throw;
      left_out.note(params.text(), e.what());
    }
  }
  left_out.require(!out.empty());
  return out;
}

ModuleData detail::compile_candidates(std::vector<Candidate> candidates,
                                      const BuildOptions& options, LeftOut& left_out) {
  std::vector<ModuleData> built(candidates.size());
  std::vector<std::exception_ptr> failures(candidates.size());
  std::vector<std::string> reports(candidates.size());
  const auto compile = [&](size_t i) {
    try {
      BuildOptions own = options;
      if (options.report) own.report = &reports[i];
      built[i] = compile_module(candidates[i].module, own);
      built[i].candidate = candidates[i].name;
    } catch (...) {
      failures[i] = std::current_exception();
    }
  };
  runtime::parallel_for(static_cast<int64_t>(candidates.size()), 1,
                        [&](int64_t begin, int64_t end) {
                          for (int64_t i = begin; i < end; i++) compile(static_cast<size_t>(i));
                        });
  for (const std::string& report : reports)
    if (options.report) *options.report += report;

  std::vector<ModuleData> good;
  for (size_t i = 0; i < candidates.size(); i++) try {
      if (failures[i]) std::rethrow_exception(failures[i]);
      good.push_back(std::move(built[i]));
    } catch (const Error& e) {
      if (!is_refusal(e)) throw;
      left_out.note(candidates[i].name, e.what());
    }
  left_out.require(!good.empty());
  ModuleData first = std::move(good.front());
  first.candidates.assign(std::make_move_iterator(good.begin() + 1),
                          std::make_move_iterator(good.end()));
  return first;
}

}  // namespace hidet::lang
