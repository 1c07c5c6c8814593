// candidates.cpp - the candidates of a kernel: its template with other numbers than the cost rule's. Those whose module is that of
// an earlier candidate are left out, so that a template may offer values that change nothing at some sizes.
// Threading: pure; several kernels at a time.
#include <hidet/ir/passes.h>

#include <cstdio>
#include <set>

#include "build/plan.h"

namespace hidet::graph {

std::string hash_text(const std::string& text) {
  uint64_t h = 14695981039346656037ull;
  for (unsigned char c : text) h = (h ^ c) * 1099511628211ull;
  char out[17];
  std::snprintf(out, sizeof out, "%016llx", static_cast<unsigned long long>(h));
  return out;
}

std::vector<Choices> candidates_of(const std::vector<ScheduleParameter>& parameters, int space) {
  std::vector<Choices> all(1);
  if (space == 0) return all;
  for (const ScheduleParameter& p : parameters) {
    const size_t before = all.size();
    for (const int64_t value : p.values)
      for (size_t i = 0; i < before; i++) {
        if (all[i].size() >= static_cast<size_t>(space)) continue;
        all.push_back(all[i]);
        all.back().emplace_back(p.name, value);
      }
  }
  return all;
}

namespace {
std::string text_of(const Choices& choices) {
  std::string text;
  for (const auto& [name, value] : choices)
    text += (text.empty() ? "" : ",") + name + "=" + std::to_string(value);
  return text;
}
std::string name_of(const Choices& choices) {
  std::string text;
  for (const auto& [name, value] : choices)
    text += (text.empty() ? "" : "_") + name + std::to_string(value);
  return text;
}
}  // namespace

void KernelStore::add_candidates(PlanKernel& kernel, const Pending& pending) const {
  if (!kernel.parameters || !kernel.data.share_map.empty()) return;
  std::set<std::string> seen{ir::print(kernel.recorded)};
  for (const Choices& choices : candidates_of(*kernel.parameters, pending.space)) {
    if (wanted_ && !wanted_(kernel.function, text_of(choices))) continue;
    Group group = pending.group;
    group.fused.choices = choices;
    PlanKernel k = scheduled(group);
    if (!seen.insert(ir::print(k.recorded)).second) continue;
    // Named after its choices: the text, and what is kept under it, does not depend on the other candidates.
    lower(k, group, pending.name + "_" + name_of(choices));
    if (k.symbols != kernel.symbols || !(k.workspace == kernel.workspace)) continue;
    kernel.data.candidates.push_back({text_of(choices), k.made_by, k.function});
    kernel.others.push_back(std::move(k));
  }
}

}  // namespace hidet::graph
