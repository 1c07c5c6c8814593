// tuning.h - what `hidet tune` and `hidet compile --tune` share.
// Threading: one thread.
#pragma once
#include <hidet/graph/build.h>
#include <hidet/graph/tune_records.h>

#include "command.h"

namespace hidet::tools {

/// How candidates are measured.
struct TuningOptions {
  double budget = 60;
  int rounds = 5;
  std::vector<std::string> dims;
  std::string records;
  bool retry = false;
  void add_to(CLI::App& app);
};

/// The sizes at which to measure: all combinations of those given, 1 for a symbol without.
std::vector<SymbolMap> dims_from(const std::vector<std::string>& given,
                                 const std::vector<std::string>& symbols, bool quiet);

/// The records that --records names, or those of the build cache; null where there are none.
std::unique_ptr<graph::TuneRecords> open_records(const std::string& path);

/// Progress, Ctrl-C and records of one tuning.
class Tuning {
 public:
  Tuning(const TuningOptions& options, bool quiet);
  const TuneOptions& options() const { return tune_; }
  /// Where the records are, for people; empty without.
  std::string place() const { return records_ ? records_->path() : ""; }

 private:
  std::unique_ptr<graph::TuneRecords> records_;
  Progress progress_;
  TuneOptions tune_;
};

/// Says for each kernel what won by how much, and what was left out.
void print_reports(const std::vector<ModelTuneReport>& reports);
nlohmann::ordered_json reports_json(const std::vector<ModelTuneReport>& reports);

}  // namespace hidet::tools
