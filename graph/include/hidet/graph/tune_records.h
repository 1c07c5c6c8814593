// tune_records.h - measurements of candidates in a SQLite file, so that what was measured once need not be measured again, on this
// machine or, exported and merged, on others like it.
// Needs: a folder that can be written. Leaves: the file, and beside it those that SQLite keeps while it is open.
// Threading: one thread at a time an object; any number of processes a file.
#pragma once
#include <hidet/runtime/tune.h>

#include <memory>
#include <string>
#include <vector>

namespace hidet::graph {

/// One line of the file. Digest, dims, device and threads tell records apart.
struct TuneRecord {
  TuneKey key;
  CandidateTime time;   ///< its name is key.candidate
  bool locked = false;  ///< nothing changes it but unlocking
  int64_t changed = 0;  ///< seconds since 1970
};

class TuneRecords {
 public:
  /// tune.sqlite in the folder of the build cache (HIDET_CACHE_DIR); empty where there is none.
  static std::string default_path();

  /// Opens the file, or makes it and its folder. Throws Error(bad_file) where it is no such file or damaged (it is left as it is),
  /// Error(io) where it cannot be opened or written.
  explicit TuneRecords(const std::string& path);
  ~TuneRecords();
  TuneRecords(TuneRecords&&) noexcept;

  const std::string& path() const;
  std::optional<CandidateTime> find(const TuneKey& key) const;
  /// A locked record stays as it is.
  void keep(const TuneKey& key, const CandidateTime& time);
  std::vector<TuneRecord> list() const;  ///< in the order of their keys

  /// Locks or unlocks the records of kernels whose name has `part` in it; how many there are.
  int set_locked(const std::string& part, bool locked);
  /// Forgets candidates that were wrong, failed or ended the process; how many. Locked ones stay.
  int forget_failures();
  /// Takes each record that replaces() the one here; how many. All of them or, on an error, none.
  int merge(const std::vector<TuneRecord>& records);

  /// For CompiledModel::tune. A failure to keep one, such as a full disk, is told once and stops nothing.
  TuneMemory memory();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Whether `a` takes the place of `b`, which has the same key and is not locked: if it is locked itself, was measured more often, or
/// as often and is newer.
bool replaces(const TuneRecord& a, const TuneRecord& b);

/// One JSON object a line. Throws Error(bad_file) that names the line.
std::string to_lines(const std::vector<TuneRecord>& records);
std::vector<TuneRecord> from_lines(const std::string& text, const std::string& where);
/// The records of a file of either kind.
std::vector<TuneRecord> read_records(const std::string& path);
/// `records` added to the file `path`, of its kind; a new one is JSON lines where its name ends in .jsonl. How many were taken.
int merge_into(const std::string& path, const std::vector<TuneRecord>& records);

}  // namespace hidet::graph
