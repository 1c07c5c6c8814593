// faults.h - a table row per planted fault: one kernel, recorded with the fault and without it. The first must be reported in the
// words given, at the line given; the second, the correct twin, must run without a report.
// Threading: one thread at a time.
#pragma once
#include <gtest/gtest.h>

#include <hidet/backends/sim.h>
#include <hidet/hidet.h>

#include <cstring>
#include <functional>

namespace faults {
using namespace hidet::lang;

/// Arguments of the kernel: 64 floats and 16 integers, all zero.
struct Args {
  Handle x, n;
};
/// The lines of the fault and of the other place that the report names; FAULT and OTHER set them.
struct Lines {
  int fault = 0, other = 0;
};
inline Lines lines;
#define FAULT(...)                  \
  do {                              \
    faults::lines.fault = __LINE__; \
    __VA_ARGS__;                    \
  } while (false)
#define OTHER(...)                  \
  do {                              \
    faults::lines.other = __LINE__; \
    __VA_ARGS__;                    \
  } while (false)

struct Fault {
  const char* name;
  int blocks, threads;
  std::function<void(const Args&, bool bad)> body;
  /// All that is reported behind the place of the fault; $ stands for "<file>:<other line>", # for the fault's own.
  std::string report;
  hidet::backends::SimOptions options = {};
};

std::string run(const Fault& fault, bool bad, std::string* where);
std::string expected(const Fault& fault, const std::string& file);

class Planted : public testing::TestWithParam<Fault> {};

inline std::string name_of(const testing::TestParamInfo<Fault>& row) { return row.param.name; }

/// The test of a file's table.
#define PLANTED_FAULTS(suite, table)                                              \
  using suite = faults::Planted;                                                  \
  TEST_P(suite, IsReportedAndItsTwinIsNot) {                                      \
    const char* file = std::strrchr(__FILE__, '/');                               \
    file = file ? file + 1 : __FILE__;                                            \
    std::string where;                                                            \
    faults::lines = {};                                                           \
    const std::string what = faults::run(GetParam(), true, &where);               \
    const std::string place = file + (":" + std::to_string(faults::lines.fault)); \
    EXPECT_EQ(where, place);                                                      \
    EXPECT_EQ(what, place + ": error: " + faults::expected(GetParam(), file));    \
    EXPECT_EQ(faults::run(GetParam(), false, &where), "");                        \
  }                                                                               \
  INSTANTIATE_TEST_SUITE_P(Faults, suite, testing::ValuesIn(table), faults::name_of)

}  // namespace faults
