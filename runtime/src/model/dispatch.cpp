// dispatch.cpp - reads dispatch_table.txt strictly; nearest row for unseen dims, so that nothing is measured in a run.
// Threading: thread-safe.
#include "src/model/dispatch.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "hidet/runtime/error.h"
#include "hidet/runtime/model_data.h"

namespace hidet::runtime {
namespace {

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <class T>
bool number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size() && *value >= 0;
}

}  // namespace

DispatchTable DispatchTable::parse(const ModelData& data, const ProgramData& p,
                                   const std::string& where) {
  DispatchTable table;
  if (p.dispatch_table.empty()) return table;
  const std::string entry = "programs/" + p.target + "/dispatch_table.txt";
  const size_t columns = 1 + data.symbols.size() + p.kernels.size();
  std::vector<std::string_view> lines = split(p.dispatch_table, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (size_t n = 0; n < lines.size(); ++n) {
    const std::vector<std::string_view> cells = split(lines[n], '\t');
    HIDET_REQUIRE(cells.size() == columns, ErrorCode::bad_file, where, "entry '", entry, "': line ",
                  n + 1, " has ", cells.size(), " columns, not ", columns);
    if (n == 0) continue;
    Row row{std::string(cells[0]), std::vector<int64_t>(data.symbols.size()),
            std::vector<int>(p.kernels.size())};
    size_t c = 1;
    bool good = true;
    for (int64_t& dim : row.dims) good = number(cells[c++], &dim) && good;
    for (size_t k = 0; k < p.kernels.size(); ++k) {
      int& chosen = row.candidates[k];
      good = number(cells[c++], &chosen) &&
             static_cast<size_t>(chosen) < p.kernels[k].candidates.size() && good;
    }
    HIDET_REQUIRE(good, ErrorCode::bad_file, where, "entry '", entry, "': line ", n + 1,
                  " has a dim or candidate that cannot be");
    table.rows.push_back(std::move(row));
  }
  return table;
}

const DispatchTable::Row* DispatchTable::nearest(const int64_t* dims) const {
  const Row* best = nullptr;
  double least = 0;
  for (const Row& row : rows) {
    double distance = 0;
    for (size_t i = 0; i < row.dims.size(); ++i)
      distance += std::fabs(std::log1p(static_cast<double>(row.dims[i])) -
                            std::log1p(static_cast<double>(dims[i])));
    if (!best || distance < least) best = &row, least = distance;
  }
  return best;
}

}  // namespace hidet::runtime
