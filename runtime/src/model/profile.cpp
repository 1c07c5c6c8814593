// profile.cpp - times of a profiled run as a table and as Chrome trace JSON.
// Threading: thread-safe.
#include <cmath>
#include <cstdio>

#include "hidet/runtime/compiled_model.h"
#include "hidet/runtime/file.h"
#include "src/container/json.h"

namespace hidet {

namespace {
double least_ms_of(const OperatorTime& t, const MachineLimits& limits) {
  return std::fmax(t.flops / limits.gflops, t.bytes / limits.gbps) / 1e6;
}
}  // namespace

double Profile::least_ms(const MachineLimits& limits) const {
  double total = 0;
  for (const OperatorTime& t : operators) total += least_ms_of(t, limits);
  return total;
}

std::string Profile::text(const std::optional<MachineLimits>& limits) const {
  std::string out = "      ms      %   GFLOP/s     GB/s";
  out += limits ? "  of limit  operator\n" : "  operator\n";
  char line[96];
  for (const OperatorTime& t : operators) {
    std::snprintf(line, sizeof line, "%8.4f  %5.1f  %8.1f %8.1f  ", t.milliseconds,
                  total_ms > 0 ? 100 * t.milliseconds / total_ms : 0.0, t.gflops(), t.gbps());
    out += line;
    if (limits && t.milliseconds > 0) {
      std::snprintf(line, sizeof line, "%6.0f %%  ",
                    100 * least_ms_of(t, *limits) / t.milliseconds);
      out += line;
    }
    out += t.name + " (" + t.kernel + ", " + t.candidate + ") " + t.shapes + "\n";
  }
  std::snprintf(line, sizeof line, "%8.4f  total\n", total_ms);
  return out + line;
}

void Profile::save_trace(const std::string& path) const {
  runtime::Json events = runtime::Json::array();
  for (const OperatorTime& t : operators)
    events.push_back({{"name", t.name},
                      {"ph", "X"},
                      {"pid", 0},
                      {"tid", 0},
                      {"ts", t.start_ms * 1000},
                      {"dur", t.milliseconds * 1000},
                      {"args",
                       {{"kernel", t.kernel},
                        {"shapes", t.shapes},
                        {"candidate", t.candidate},
                        {"gflops", t.gflops()},
                        {"gbps", t.gbps()}}}});
  runtime::write_file(path, runtime::Json{{"traceEvents", events}}.dump() + "\n");
}

}  // namespace hidet
