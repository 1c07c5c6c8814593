// records.cpp - tuning records in SQLite.
// Threading: see tune_records.h.
#include <hidet/backends/cache.h>
#include <hidet/graph/tune_records.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/log.h>

#include <sqlite3.h>

#include <ctime>
#include <filesystem>

namespace hidet::graph {
namespace {

constexpr int kVersion = 1;               // of the table
constexpr int kWaitMilliseconds = 10000;  // for another process that writes
constexpr const char* kColumns =
    "digest, dims, device, threads, kernel, candidate, milliseconds, measured, note, locked, "
    "changed";
constexpr const char* kTable =
    "CREATE TABLE IF NOT EXISTS records (digest TEXT NOT NULL, dims TEXT NOT NULL, device TEXT NOT "
    "NULL, threads INTEGER NOT NULL, kernel TEXT NOT NULL, candidate TEXT NOT NULL, milliseconds "
    "REAL NOT NULL, measured INTEGER NOT NULL, note TEXT NOT NULL, locked INTEGER NOT NULL, "
    "changed INTEGER NOT NULL, PRIMARY KEY (digest, dims, device, threads)) WITHOUT ROWID";

[[noreturn]] void fail(sqlite3* db, int status, const std::string& path) {
  const std::string why = db ? sqlite3_errmsg(db) : sqlite3_errstr(status);
  const int kind = status & 0xff;
  if (kind == SQLITE_NOTADB || kind == SQLITE_CORRUPT)
    throw Error(ErrorCode::bad_file,
                detail::concat("the tuning records '", path, "' are damaged (", why,
                               "): move the file away, or name another with --records"));
  throw Error(ErrorCode::io,
              detail::concat("the tuning records '", path, "' cannot be used: ", why));
}

/// A prepared statement; parameters are bound in order.
class Statement {
 public:
  Statement(sqlite3* db, const std::string& path, const std::string& sql) : db_(db), path_(path) {
    check(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement_, nullptr));
  }
  ~Statement() { sqlite3_finalize(statement_); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& operator<<(const std::string& text) {
    check(sqlite3_bind_text(statement_, ++bound_, text.data(), static_cast<int>(text.size()),
                            SQLITE_TRANSIENT));
    return *this;
  }
  Statement& operator<<(int64_t value) {
    check(sqlite3_bind_int64(statement_, ++bound_, value));
    return *this;
  }
  Statement& operator<<(double value) {
    check(sqlite3_bind_double(statement_, ++bound_, value));
    return *this;
  }
  /// True for a row.
  bool step() {
    const int status = sqlite3_step(statement_);
    if (status == SQLITE_ROW) return true;
    if (status != SQLITE_DONE) fail(db_, status, path_);
    return false;
  }
  std::string text(int column) const {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
    return bytes ? bytes : "";
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }

 private:
  void check(int status) const {
    if (status != SQLITE_OK) fail(db_, status, path_);
  }
  sqlite3* db_;
  const std::string& path_;
  sqlite3_stmt* statement_ = nullptr;
  int bound_ = 0;
};

TuneRecord record_of(const Statement& row) {
  TuneRecord r;
  r.key = {row.text(4), row.text(5), row.text(0),
           row.text(1), row.text(2), static_cast<int>(row.integer(3))};
  r.time = {row.text(5), row.real(6), static_cast<int>(row.integer(7)), row.text(8)};
  r.locked = row.integer(9) != 0;
  r.changed = row.integer(10);
  return r;
}

}  // namespace

struct TuneRecords::Impl {
  std::string path;
  sqlite3* db = nullptr;

  explicit Impl(std::string file) : path(std::move(file)) {
    const std::filesystem::path folder = std::filesystem::path(path).parent_path();
    std::error_code ignored;  // opening says what is wrong
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    const int status =
        sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    try {
      if (status != SQLITE_OK) fail(db, status, path);
      prepare_file();
    } catch (...) {
      sqlite3_close(db);
      throw;
    }
  }
  ~Impl() { sqlite3_close(db); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void prepare_file() {
    sqlite3_busy_timeout(db, kWaitMilliseconds);
    // A log beside the file: a write neither waits for the disk nor is lost when the process is killed.
    (void)Statement(db, path, "PRAGMA journal_mode = WAL").step();
    (void)Statement(db, path, "PRAGMA synchronous = NORMAL").step();
    const int64_t version = number("PRAGMA user_version");
    HIDET_REQUIRE(version <= kVersion, ErrorCode::unsupported, "", "the tuning records '", path,
                  "' are of version ", version, "; this hidet knows ", kVersion);
    if (version == 0) {
      (void)Statement(db, path, kTable).step();
      (void)Statement(db, path, "PRAGMA user_version = " + std::to_string(kVersion)).step();
    }
    (void)Statement(db, path, std::string("SELECT ") + kColumns + " FROM records LIMIT 1").step();
  }
  int64_t number(const std::string& sql) const {
    Statement s(db, path, sql);
    return s.step() ? s.integer(0) : 0;
  }
  std::optional<TuneRecord> find(const TuneKey& k) const {
    Statement s(db, path,
                std::string("SELECT ") + kColumns +
                    " FROM records WHERE digest = ? AND dims = ? AND device = ? AND threads = ?");
    s << k.digest << k.dims << k.device << static_cast<int64_t>(k.threads);
    if (!s.step()) return std::nullopt;
    return record_of(s);
  }
  void put(const TuneRecord& r) const {
    Statement s(db, path,
                std::string("INSERT INTO records (") + kColumns +
                    ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET kernel = "
                    "excluded.kernel, candidate = excluded.candidate, milliseconds = "
                    "excluded.milliseconds, measured = excluded.measured, note = excluded.note, "
                    "locked = excluded.locked, changed = excluded.changed WHERE locked = 0");
    s << r.key.digest << r.key.dims << r.key.device << static_cast<int64_t>(r.key.threads)
      << r.key.kernel << r.key.candidate << r.time.milliseconds
      << static_cast<int64_t>(r.time.measured) << r.time.note << static_cast<int64_t>(r.locked)
      << r.changed;
    (void)s.step();
  }
};

std::string TuneRecords::default_path() {
  const std::string folder = backends::BuildCache::options_from_environment().folder;
  return folder.empty() ? "" : folder + "/tune.sqlite";
}

TuneRecords::TuneRecords(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
TuneRecords::~TuneRecords() = default;
TuneRecords::TuneRecords(TuneRecords&&) noexcept = default;
const std::string& TuneRecords::path() const { return impl_->path; }

std::optional<CandidateTime> TuneRecords::find(const TuneKey& key) const {
  const auto r = impl_->find(key);
  if (!r) return std::nullopt;
  CandidateTime t = r->time;
  if (r->locked && t.note.empty()) t.note = "locked";  // it is not measured again
  return t;
}

void TuneRecords::keep(const TuneKey& key, const CandidateTime& time) {
  impl_->put({key, time, false, std::time(nullptr)});
}

std::vector<TuneRecord> TuneRecords::list() const {
  std::vector<TuneRecord> all;
  Statement s(impl_->db, impl_->path,
              std::string("SELECT ") + kColumns +
                  " FROM records ORDER BY kernel, device, threads, dims, candidate, digest");
  while (s.step()) all.push_back(record_of(s));
  return all;
}

int TuneRecords::set_locked(const std::string& part, bool locked) {
  Statement s(impl_->db, impl_->path, "UPDATE records SET locked = ? WHERE instr(kernel, ?) > 0");
  s << static_cast<int64_t>(locked) << part;
  (void)s.step();
  return sqlite3_changes(impl_->db);
}

int TuneRecords::forget_failures() {
  Statement s(impl_->db, impl_->path,
              "DELETE FROM records WHERE measured = 0 AND note <> '' AND locked = 0");
  (void)s.step();
  return sqlite3_changes(impl_->db);
}

int TuneRecords::merge(const std::vector<TuneRecord>& records) {
  const auto run = [&](const char* sql) { (void)Statement(impl_->db, impl_->path, sql).step(); };
  run("BEGIN IMMEDIATE");
  int taken = 0;
  try {
    for (const TuneRecord& r : records) {
      const auto here = impl_->find(r.key);
      if (here && !replaces(r, *here)) continue;
      impl_->put(r);
      taken++;
    }
    run("COMMIT");
  } catch (...) {
    sqlite3_exec(impl_->db, "ROLLBACK", nullptr, nullptr, nullptr);
    throw;
  }
  return taken;
}

TuneMemory TuneRecords::memory() {
  TuneMemory m;
  m.find = [this](const TuneKey& key) { return find(key); };
  m.keep = [this](const TuneKey& key, const CandidateTime& time) {
    try {
      keep(key, time);
    } catch (const Error& e) {
      log_once("tuning records", detail::concat(e.what(), "; what is measured now is not kept"));
    }
  };
  return m;
}

bool replaces(const TuneRecord& a, const TuneRecord& b) {
  if (a.locked || b.locked) return !b.locked;
  if (a.time.measured != b.time.measured) return a.time.measured > b.time.measured;
  return a.changed > b.changed;
}

}  // namespace hidet::graph
