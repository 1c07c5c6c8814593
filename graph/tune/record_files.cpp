// record_files.cpp - tuning records as JSON lines, and files of either kind merged.
// Threading: thread-safe.
#include <hidet/graph/tune_records.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/file.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <tuple>

namespace hidet::graph {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kDatabase = "SQLite format 3";

/// Nothing where there is no such file.
std::optional<std::string> contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool ends_in(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TuneRecord record_of(const Json& j) {
  TuneRecord r;
  r.key = {j.at("kernel").get<std::string>(), j.at("candidate").get<std::string>(),
           j.at("digest").get<std::string>(), j.at("dims").get<std::string>(),
           j.at("device").get<std::string>(), j.at("threads").get<int>()};
  r.time = {r.key.candidate, j.at("milliseconds").get<double>(), j.at("measured").get<int>(),
            j.at("note").get<std::string>()};
  r.locked = j.at("locked").get<bool>();
  r.changed = j.at("changed").get<int64_t>();
  return r;
}

}  // namespace

std::string to_lines(const std::vector<TuneRecord>& records) {
  std::string text;
  for (const TuneRecord& r : records)
    text += Json{{"kernel", r.key.kernel},
                 {"candidate", r.key.candidate},
                 {"digest", r.key.digest},
                 {"dims", r.key.dims},
                 {"device", r.key.device},
                 {"threads", r.key.threads},
                 {"milliseconds", r.time.milliseconds},
                 {"measured", r.time.measured},
                 {"note", r.time.note},
                 {"locked", r.locked},
                 {"changed", r.changed}}
                .dump(-1, ' ', false, Json::error_handler_t::replace) +
            "\n";
  return text;
}

std::vector<TuneRecord> from_lines(const std::string& text, const std::string& where) {
  std::vector<TuneRecord> records;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); number++) {
    if (line.empty()) continue;
    const auto refuse = [&](const std::string& why) {
      throw Error(ErrorCode::bad_file, detail::concat("line ", number, " of the tuning records '",
                                                      where, "' is no record: ", why));
    };
    try {
      records.push_back(record_of(Json::parse(line)));
    } catch (const Json::exception& e) {
      refuse(e.what());
    }
    const CandidateTime& t = records.back().time;
    if (!(t.milliseconds >= 0) || t.measured < 0 || records.back().key.digest.empty())
      refuse("a time or a count below 0, or no digest");
  }
  return records;
}

std::vector<TuneRecord> read_records(const std::string& path) {
  const auto text = contents(path);
  HIDET_REQUIRE(text, ErrorCode::bad_file, "", "there are no tuning records '", path, "'");
  return text->compare(0, kDatabase.size(), kDatabase) == 0 ? TuneRecords(path).list()
                                                            : from_lines(*text, path);
}

int merge_into(const std::string& path, const std::vector<TuneRecord>& records) {
  const auto text = contents(path);
  const bool database = text && !text->empty() ? text->compare(0, kDatabase.size(), kDatabase) == 0
                                               : !ends_in(path, ".jsonl");
  if (database) return TuneRecords(path).merge(records);
  const auto key = [](const TuneRecord& r) {
    return std::tuple(r.key.kernel, r.key.device, r.key.threads, r.key.dims, r.key.candidate,
                      r.key.digest);
  };
  std::map<decltype(key(records[0])), TuneRecord> all;
  for (const TuneRecord& r : from_lines(text.value_or(""), path)) all[key(r)] = r;
  int taken = 0;
  for (const TuneRecord& r : records) {
    const auto [at, fresh] = all.emplace(key(r), r);
    if (!fresh && replaces(r, at->second)) at->second = r, taken++;
    taken += fresh;
  }
  std::vector<TuneRecord> merged;
  for (auto& [k, r] : all) merged.push_back(std::move(r));
  runtime::write_file(path, to_lines(merged));
  return taken;
}

}  // namespace hidet::graph
