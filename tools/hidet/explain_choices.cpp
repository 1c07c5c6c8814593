// explain_choices.cpp - the candidates of a kernel for `hidet explain`: their measured times, and which runs at which sizes and why.
// Threading: one thread.
#include "explain_choices.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <sstream>

namespace hidet::tools {
namespace {

/// The time of a candidate in records of this machine or others, at the sizes of a row.
const graph::TuneRecord* record_at(const KernelChoices& k, const std::string& candidate,
                                   const std::string& dims, const std::string& device) {
  for (const graph::TuneRecord& r : k.records)
    if (r.key.candidate == candidate && r.key.dims == dims && r.key.device == device &&
        r.time.measured > 0)
      return &r;
  return nullptr;
}

std::string milliseconds(double ms) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4f ms", ms);
  return text;
}

/// Why a row has this candidate, from the records of the same sizes and device.
std::string reason(const KernelChoices& k, const ChoiceAt& at) {
  const auto* own = record_at(k, at.candidate, at.kernel_dims, at.device);
  const auto* first = record_at(k, k.kernel->candidates[0].name, at.kernel_dims, at.device);
  if (!own || !first) return "measured when the file was made; the records have no times of it";
  if (own == first)
    return "the default, " + milliseconds(own->time.milliseconds) + ": no other was faster by 2 %";
  return milliseconds(own->time.milliseconds) + ", the default " +
         milliseconds(first->time.milliseconds);
}

std::vector<ChoiceAt> choices_of(const ModelData& m, const ProgramData& p, size_t kernel) {
  std::vector<ChoiceAt> out;
  const KernelData& k = p.kernels[kernel];
  std::istringstream lines(p.dispatch_table);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = split(line, '\t');
    const size_t at = 1 + m.symbols.size() + kernel;
    HIDET_REQUIRE(cells.size() == 1 + m.symbols.size() + p.kernels.size(), ErrorCode::bad_file, "",
                  "a line of the dispatch table of '", p.target, "' has ", cells.size(),
                  " columns");
    const double candidate = parse_number("the dispatch table", cells[at]);
    HIDET_REQUIRE(candidate >= 0 && candidate < static_cast<double>(k.candidates.size()),
                  ErrorCode::bad_file, "", "the dispatch table of '", p.target,
                  "' has a candidate that cannot be");
    ChoiceAt c{cells[0], "", "", k.candidates[static_cast<size_t>(candidate)].name};
    SymbolMap dims, own;
    for (size_t i = 0; i < m.symbols.size(); i++) {
      dims[m.symbols[i].name] =
          static_cast<int64_t>(parse_number("the dispatch table", cells[i + 1]));
      c.dims += (i ? "," : "") + m.symbols[i].name + "=" + cells[i + 1];
    }
    for (const Instruction& i : p.execution.instructions)
      for (size_t s = 0; static_cast<size_t>(i.task) == kernel && s < k.symbols.size(); s++)
        own[k.symbols[s]] = i.symbols.at(s).eval(dims);
    for (const auto& [name, value] : own)
      c.kernel_dims += (c.kernel_dims.empty() ? "" : ",") + name + "=" + std::to_string(value);
    out.push_back(std::move(c));
  }
  return out;
}
}  // namespace

KernelChoices choices_with_times(const ModelData& m, const ProgramData& p, size_t kernel,
                                 const std::vector<graph::TuneRecord>& records) {
  KernelChoices k{&p.kernels[kernel], choices_of(m, p, kernel), {}};
  for (const graph::TuneRecord& r : records)
    if (std::any_of(k.kernel->candidates.begin(), k.kernel->candidates.end(),
                    [&](const KernelCandidate& c) { return c.digest == r.key.digest; }))
      k.records.push_back(r);
  return k;
}

void print_choices(const KernelChoices& k) {
  if (k.kernel->candidates.size() == 1) {
    std::printf("  candidates one, the cost rule's (hidet compile --space 1 makes more)\n");
    return;
  }
  for (const KernelCandidate& c : k.kernel->candidates) {
    std::printf("  candidate  %s\n", c.name.c_str());
    for (const graph::TuneRecord& r : k.records) {
      if (r.key.digest != c.digest) continue;
      const std::string threads =
          r.key.threads ? ", " + std::to_string(r.key.threads) + " threads" : "";
      std::printf("             %s%s%s%s: %s%s%s\n", r.key.dims.c_str(),
                  r.key.dims.empty() ? "" : ", ", r.key.device.c_str(), threads.c_str(),
                  r.time.measured ? milliseconds(r.time.milliseconds).c_str() : "not measured",
                  r.time.note.empty() ? "" : "; ", r.time.note.c_str());
    }
  }
  for (const ChoiceAt& at : k.choices)
    std::printf("  chosen     %s: %s on %s: %s\n", at.dims.empty() ? "always" : at.dims.c_str(),
                at.candidate.c_str(), at.device.c_str(), reason(k, at).c_str());
  std::printf("  elsewhere  %s\n",
              k.choices.empty() ? "default, the cost rule's: the file has no choices (hidet tune)"
                                : "as at the nearest of these sizes");
}

nlohmann::ordered_json choices_json(const KernelChoices& k) {
  using Json = nlohmann::ordered_json;
  Json candidates = Json::array(), chosen = Json::array();
  for (const KernelCandidate& c : k.kernel->candidates) {
    Json times = Json::array();
    for (const graph::TuneRecord& r : k.records)
      if (r.key.digest == c.digest)
        times.push_back({{"dims", r.key.dims},
                         {"device", r.key.device},
                         {"threads", r.key.threads},
                         {"ms", r.time.milliseconds},
                         {"measured", r.time.measured},
                         {"note", r.time.note},
                         {"locked", r.locked}});
    candidates.push_back({{"name", c.name}, {"made_by", c.parameters}, {"times", times}});
  }
  for (const ChoiceAt& at : k.choices)
    chosen.push_back({{"dims", at.dims},
                      {"device", at.device},
                      {"candidate", at.candidate},
                      {"why", reason(k, at)}});
  return {{"candidates", candidates}, {"chosen", chosen}};
}

}  // namespace hidet::tools
