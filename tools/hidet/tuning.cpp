// tuning.cpp - options, records, progress and reports of a tuning.
// Threading: one thread.
#include "tuning.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace hidet::tools {

void TuningOptions::add_to(CLI::App& app) {
  const char* group = "Measuring";
  app.add_option("--budget", budget, "seconds of measuring, all sizes together; default 60")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--dims", dims,
                 "sizes of symbols at which to measure: n=1,8,64 (repeatable; several symbols: all "
                 "combinations; default 1)")
      ->group(group);
  app.add_option("--rounds", rounds, "measurements of each candidate; default 5")
      ->check(CLI::PositiveNumber)
      ->group(group);
  app.add_option("--records", records,
                 "file of the measurements; default tune.sqlite in HIDET_CACHE_DIR")
      ->group(group);
  app.add_flag("--retry", retry, "also candidates that were wrong or failed before")->group(group);
}

std::vector<SymbolMap> dims_from(const std::vector<std::string>& given,
                                 const std::vector<std::string>& symbols, bool quiet) {
  std::map<std::string, std::vector<int64_t>> sizes;
  for (const std::string& entry : given) {
    const size_t equals = entry.find('=');
    const std::string name = entry.substr(0, equals);
    HIDET_REQUIRE(equals != std::string::npos && equals > 0, ErrorCode::usage, "", "--dims: '",
                  entry, "' should be NAME=SIZE,SIZE, such as n=1,8,64");
    HIDET_REQUIRE(std::find(symbols.begin(), symbols.end(), name) != symbols.end(),
                  ErrorCode::usage, "", "--dims: the model has no symbol '", name, "'");
    for (const std::string& size : split(entry.substr(equals + 1), ',')) {
      const double value = parse_number("--dims " + name, size);
      HIDET_REQUIRE(
          value >= 0 && value <= 1e15 && value == static_cast<double>(static_cast<int64_t>(value)),
          ErrorCode::usage, "", "--dims: '", size, "' is no size of '", name, "'");
      sizes[name].push_back(static_cast<int64_t>(value));
    }
    HIDET_REQUIRE(!sizes[name].empty(), ErrorCode::usage, "", "--dims: '", entry, "' has no size");
  }
  std::vector<SymbolMap> all(1);
  for (const std::string& name : symbols) {
    if (!sizes.count(name) && !quiet)
      std::fprintf(stderr, "hidet: the symbol '%s' is taken as 1\n", name.c_str());
    std::vector<SymbolMap> longer;
    for (const SymbolMap& at : all)
      for (const int64_t size : sizes.count(name) ? sizes[name] : std::vector<int64_t>{1}) {
        longer.push_back(at);
        longer.back()[name] = size;
      }
    all = std::move(longer);
  }
  return all;
}

std::unique_ptr<graph::TuneRecords> open_records(const std::string& path) {
  const std::string file = path.empty() ? graph::TuneRecords::default_path() : path;
  return file.empty() ? nullptr : std::make_unique<graph::TuneRecords>(file);
}

Tuning::Tuning(const TuningOptions& o, bool quiet)
    : records_(open_records(o.records)), progress_(quiet) {
  tune_.budget = o.budget;
  tune_.rounds = o.rounds;
  tune_.progress = [this](const TuneProgress& p) {
    progress_("measure " + p.candidate, p.done, p.total);
  };
  if (!records_) return;
  if (o.retry) records_->forget_failures();
  tune_.memory = records_->memory();
}

void print_reports(const std::vector<ModelTuneReport>& reports) {
  for (const ModelTuneReport& r : reports) {
    std::string dims;
    for (const auto& [name, value] : r.dims) dims += " " + name + "=" + std::to_string(value);
    std::printf("%s%s, %.1f s%s\n", dims.empty() ? "fixed sizes" : "at", dims.c_str(), r.seconds,
                r.complete ? "" : ", not complete: the budget was used up");
    for (const TuneReport& k : r.kernels) {
      const auto best = std::find_if(k.candidates.begin(), k.candidates.end(),
                                     [&](const CandidateTime& t) { return t.name == k.best; });
      const CandidateTime& first = k.candidates.front();
      std::printf("  %8.4f ms  %s", best->milliseconds, k.function.c_str());
      if (best->name != first.name)
        std::printf("  %s (default %.4f ms)", best->name.c_str(), first.milliseconds);
      std::printf("\n");
      for (const CandidateTime& t : k.candidates)
        if (t.measured == 0)
          std::printf("              %s is left out: %s\n", t.name.c_str(), t.note.c_str());
    }
  }
}

nlohmann::ordered_json reports_json(const std::vector<ModelTuneReport>& reports) {
  using Json = nlohmann::ordered_json;
  Json list = Json::array();
  for (const ModelTuneReport& r : reports) {
    Json kernels = Json::array();
    for (const TuneReport& k : r.kernels) {
      Json candidates = Json::array();
      for (const CandidateTime& t : k.candidates)
        candidates.push_back(
            {{"name", t.name}, {"ms", t.milliseconds}, {"measured", t.measured}, {"note", t.note}});
      kernels.push_back({{"kernel", k.function}, {"best", k.best}, {"candidates", candidates}});
    }
    list.push_back(
        {{"dims", r.dims}, {"complete", r.complete}, {"seconds", r.seconds}, {"kernels", kernels}});
  }
  return list;
}

}  // namespace hidet::tools
