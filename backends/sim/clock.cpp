// clock.cpp - joins of clocks.
#include "sim/clock.h"

#include <algorithm>

namespace hidet::backends::sim {

bool Known::covers(uint16_t thread, uint32_t clock) const {
  if (thread / 32u < warps.size() && clock <= warps[thread / 32u]) return true;
  const auto it = std::lower_bound(threads.begin(), threads.end(), std::pair{thread, uint32_t{0}});
  return it != threads.end() && it->first == thread && clock <= it->second;
}

void Known::add(uint16_t thread, uint32_t clock) {
  const auto it = std::lower_bound(threads.begin(), threads.end(), std::pair{thread, uint32_t{0}});
  if (it != threads.end() && it->first == thread) it->second = std::max(it->second, clock);
  else threads.insert(it, {thread, clock});
}

void Known::join(const Known& other) {
  if (warps.size() < other.warps.size()) warps.resize(other.warps.size());
  for (size_t w = 0; w < other.warps.size(); w++) warps[w] = std::max(warps[w], other.warps[w]);
  for (const auto& [thread, clock] : other.threads)
    if (!covers(thread, clock)) add(thread, clock);
}

bool Clock::covers(uint32_t run, uint16_t thread, uint32_t clock) const {
  const auto it = runs.find(run);
  return it != runs.end() && it->second->covers(thread, clock);
}

void Clock::join(uint32_t run, const Known& known) {
  std::shared_ptr<const Known>& mine = runs[run];
  auto joined = mine ? std::make_shared<Known>(*mine) : std::make_shared<Known>();
  joined->join(known);
  mine = std::move(joined);
}

void Clock::join(const Clock& other) {
  for (const auto& [run, known] : other.runs) {
    const auto it = runs.find(run);
    if (it == runs.end()) runs.emplace(run, known);
    else if (it->second != known) join(run, *known);
  }
}

}  // namespace hidet::backends::sim
