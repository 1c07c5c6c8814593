// profile.cpp - times of a profiled run as a table and as Chrome trace JSON.
// Threading: thread-safe.
#include <cstdio>

#include "hidet/runtime/compiled_model.h"
#include "hidet/runtime/file.h"
#include "src/container/json.h"

namespace hidet {

std::string Profile::text() const {
  std::string out = "      ms      %  operator\n";
  char line[64];
  for (const OperatorTime& t : operators) {
    std::snprintf(line, sizeof line, "%8.4f  %5.1f  ", t.milliseconds,
                  total_ms > 0 ? 100 * t.milliseconds / total_ms : 0.0);
    out += line + t.name + " (" + t.kernel + ", " + t.candidate + ") " + t.shapes + "\n";
  }
  std::snprintf(line, sizeof line, "%8.4f  total\n", total_ms);
  return out + line;
}

void Profile::save_trace(const std::string& path) const {
  runtime::Json events = runtime::Json::array();
  for (const OperatorTime& t : operators)
    events.push_back(
        {{"name", t.name},
         {"ph", "X"},
         {"pid", 0},
         {"tid", 0},
         {"ts", t.start_ms * 1000},
         {"dur", t.milliseconds * 1000},
         {"args", {{"kernel", t.kernel}, {"shapes", t.shapes}, {"candidate", t.candidate}}}});
  runtime::write_file(path, runtime::Json{{"traceEvents", events}}.dump() + "\n");
}

}  // namespace hidet
