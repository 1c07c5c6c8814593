// candidates.cpp - loads the candidates of a parameter space; the table of what was measured best.
// Threading: see candidates.h.
#include "src/compiled/candidates.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "hidet/runtime/cuda.h"
#include "hidet/runtime/error.h"
#include "src/compiled/code.h"

namespace hidet::runtime {
namespace {

constexpr const char* kHeader = "device\tfunction\tdims\tcandidate";

double distance(const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i)
    sum += std::fabs(std::log1p(std::fabs(static_cast<double>(a[i]))) -
                     std::log1p(std::fabs(static_cast<double>(b[i])))) +
           ((a[i] < 0) != (b[i] < 0) ? 1 : 0);
  return sum;
}

std::string signatures(const ModuleData& data) {
  std::string text;
  for (const FunctionInfo& f : data.functions) text += f.signature() + "\n";
  return text;
}

}  // namespace

Candidates::Candidates(const LoadedCode& first) : first_(first) {
  for (const ModuleData& other : first.data.candidates) {
    HIDET_REQUIRE(signatures(other) == signatures(first.data), ErrorCode::usage, "",
                  "the candidates '", first.data.candidate, "' and '", other.candidate, "' of '",
                  first.data.name, "' have different public functions");
    others_.push_back(std::make_unique<LoadedCode>(other, true));
  }
}
Candidates::~Candidates() = default;

const LoadedCode& Candidates::at(size_t i) const { return i == 0 ? first_ : *others_.at(i - 1); }

const std::string& Candidates::device() const {
  std::call_once(named_, [&] {
    device_ = first_.data.images.empty() ? first_.data.target
                                         : cuda_device_info(first_.data.device.index()).name;
  });
  return device_;
}

std::shared_ptr<const Candidates::Table> Candidates::table() const {
  const std::lock_guard lock(mutex_);
  return table_;
}
void Candidates::publish(Table next) {
  auto made = std::make_shared<const Table>(std::move(next));
  const std::lock_guard lock(mutex_);
  table_.swap(made);
}

const LoadedCode& Candidates::choose(const std::string& function,
                                     const std::vector<int64_t>& dims) const {
  const auto rows = table();
  if (rows->empty()) return first_;
  const Row* best = nullptr;
  double least = 0;
  for (const Row& row : *rows) {
    if (row.function != function || row.dims.size() != dims.size() || row.device != device())
      continue;
    const double d = distance(row.dims, dims);
    if (!best || d < least) best = &row, least = d;
  }
  return best ? at(best->candidate) : first_;
}

void Candidates::keep(const std::string& function, const std::vector<int64_t>& dims,
                      size_t candidate) {
  const std::string& here = device();
  Table next = *table();
  std::erase_if(next, [&](const Row& r) {
    return r.device == here && r.function == function && r.dims == dims;
  });
  next.push_back({here, function, dims, candidate});
  publish(std::move(next));
}

std::string Candidates::text() const {
  std::string out = std::string(kHeader) + "\n";
  for (const Row& row : *table()) {
    out += row.device + "\t" + row.function + "\t";
    for (size_t i = 0; i < row.dims.size(); ++i)
      out += (i ? "," : "") + std::to_string(row.dims[i]);
    out += "\t" + at(row.candidate).data.candidate + "\n";
  }
  return out;
}

void Candidates::read(const std::string& text) {
  Table next;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto require = [&](bool good, const std::string& what) {
      HIDET_REQUIRE(good, ErrorCode::bad_file, "", "line ", number, " of the dispatch table of '",
                    first_.data.name, "' ", what);
    };
    if (number == 1) {
      require(line == kHeader, "is not the header");
      continue;
    }
    std::vector<std::string> cells(1);
    for (const char c : line)
      if (c == '\t') cells.emplace_back();
      else cells.back() += c;
    require(cells.size() == 4, "has not 4 columns");
    Row row{cells[0], cells[1], {}, size()};
    require(std::any_of(first_.data.functions.begin(), first_.data.functions.end(),
                        [&](const FunctionInfo& f) { return f.name == row.function; }),
            "names the function '" + row.function + "', which the module has not");
    std::istringstream dims(cells[2]);
    for (std::string dim; std::getline(dims, dim, ',');) {
      const auto [end, error] =
          std::from_chars(dim.data(), dim.data() + dim.size(), row.dims.emplace_back());
      require(error == std::errc() && end == dim.data() + dim.size(), "has a dim '" + dim + "'");
    }
    for (size_t i = 0; i < size(); ++i)
      if (at(i).data.candidate == cells[3]) row.candidate = i;
    require(row.candidate < size(), "names the candidate '" + cells[3] + "', which is none");
    next.push_back(std::move(row));
  }
  publish(std::move(next));
}

std::vector<int64_t> dims_of(const FunctionInfo& f, std::span<const CallArg> args) {
  std::vector<int64_t> dims;
  for (size_t i = 0; i < args.size() && i < f.params.size(); ++i) {
    const CallArg::Kind kind = args[i].kind();
    if (kind == CallArg::Kind::tensor && args[i].tensor().defined())
      for (const int64_t n : args[i].tensor().shape()) dims.push_back(n);
    if (kind == CallArg::Kind::integer || kind == CallArg::Kind::unsigned_integer)
      dims.push_back(args[i].value().i);
  }
  return dims;
}

}  // namespace hidet::runtime
