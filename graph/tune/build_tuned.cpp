// build_tuned.cpp - a build whose candidates are measured on this machine, and of which the file keeps the fastest.
// Threading: a measurement is of use on a quiet machine only.
#include <hidet/graph/build.h>
#include <hidet/runtime/error.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "build/plan.h"

namespace hidet::graph {
namespace {

using Cells = std::vector<std::string>;

/// The lines of a dispatch table, which parse has checked.
std::vector<Cells> cells_of(const std::string& table) {
  std::vector<Cells> lines;
  std::istringstream text(table);
  for (std::string line; std::getline(text, line);) {
    lines.emplace_back();
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) lines.back().push_back(cell);
  }
  return lines;
}

/// The choices of a measured program by the names of the candidates, one a kernel, in each row.
struct Choice {
  std::string target;
  std::vector<Cells> rows;                             // device, dims, names
  std::set<std::pair<std::string, std::string>> kept;  // default's function, candidate's name
};

Choice choice_of(const ModelData& data, const ProgramData& p, const std::string& table) {
  Choice c{p.target, cells_of(table), {}};
  const size_t first = 1 + data.symbols.size();
  for (size_t line = 1; line < c.rows.size(); line++)
    for (size_t k = 0; k < p.kernels.size(); k++) {
      std::string& cell = c.rows[line][first + k];
      cell = p.kernels[k].candidates.at(std::stoul(cell)).name;
      c.kept.emplace(p.kernels[k].candidates[0].function, cell);
    }
  return c;
}

/// The table again for a program that has those candidates only.
std::string table_of(const ModelData& data, const ProgramData& p, const Choice& c) {
  std::string text;
  const size_t first = 1 + data.symbols.size();
  for (size_t line = 0; line < c.rows.size(); line++) {
    for (size_t i = 0; i < c.rows[line].size(); i++) {
      std::string cell = c.rows[line][i];
      if (line > 0 && i >= first) {
        const auto& all = p.kernels.at(i - first).candidates;
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const KernelCandidate& k) { return k.name == cell; });
        HIDET_CHECK(at != all.end(), "the candidate ", cell, " of ", p.kernels[i - first].name,
                    " was not built again");
        cell = std::to_string(at - all.begin());
      }
      text += (i ? "\t" : "") + cell;
    }
    text += "\n";
  }
  return text;
}

bool has_candidates(const ProgramData& p) {
  return std::any_of(p.kernels.begin(), p.kernels.end(),
                     [](const KernelData& k) { return k.candidates.size() > 1; });
}

/// Measures program `index` in a model of its own.
TargetTuning measured(const ModelData& data, size_t index, const std::vector<SymbolMap>& dims,
                      const TuneOptions& tune, std::vector<Choice>& choices) {
  const ProgramData& p = data.programs[index];
  TargetTuning done{p.target};
  if (!has_candidates(p)) {
    done.note = "its kernels have one candidate each";
    return done;
  }
  ModelData own = data;
  own.programs = {p};
  CompiledModel model = CompiledModel::from_data(std::move(own));
  try {
    done.reports = model.tune(dims, tune);
  } catch (const Error& e) {
    if (e.code() != ErrorCode::device) throw;
    done.note = e.what();  // it is for another machine
    return done;
  }
  choices.push_back(choice_of(data, p, model.dispatch_table()));
  return done;
}

}  // namespace

ModelData build_tuned(const std::vector<FlowGraph>& graphs, const BuildModelOptions& options,
                      const std::vector<SymbolMap>& dims, const TuneOptions& tune,
                      std::vector<TargetTuning>* done, BuildReport* report) {
  ModelData data = build_filtered(graphs, options, report, {});
  std::vector<Choice> choices;
  TuneOptions part = tune;
  part.budget = tune.budget / static_cast<double>(std::max<size_t>(data.programs.size(), 1));
  for (size_t i = 0; i < data.programs.size(); i++) {
    TargetTuning one = measured(data, i, dims, part, choices);
    if (done) done->push_back(std::move(one));
  }
  if (choices.empty()) return data;
  const auto choice_for = [&](const std::string& target) {
    return std::find_if(choices.begin(), choices.end(),
                        [&](const Choice& c) { return c.target == target; });
  };
  if (report) *report = {};
  data = build_filtered(
      graphs, options, report,
      [&](const std::string& target, const std::string& function, const std::string& candidate) {
        const auto c = choice_for(target);
        return c == choices.end() || c->kept.count({function, candidate}) > 0;
      });
  for (ProgramData& p : data.programs)
    if (const auto c = choice_for(p.target); c != choices.end())
      p.dispatch_table = table_of(data, p, *c);
  return data;
}

}  // namespace hidet::graph
