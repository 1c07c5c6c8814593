// archive.h - the entries of a model: a zip file, a folder with the same files, or a zip in memory.
// Threading: immutable once opened; thread-safe.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "hidet/runtime/bytes.h"
#include "src/container/zip_reader.h"

namespace hidet::runtime {

class Archive {
 public:
  /// Maps the file or the folder's files; nothing is read but the directory. Throws Error(bad_file), Error(io).
  static Archive open(const std::string& path);
  static Archive of(Bytes zip, const std::string& where);

  const std::string& where() const { return where_; }
  /// The manifest is read and everything asked for from now on with `get` is compared with it.
  void use_manifest();
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  /// Contents, in place; throws Error(bad_file) where the entry is missing or, when `check`, differs from the manifest.
  Bytes get(const std::string& name, bool check = true) const;
  const std::map<std::string, Bytes, std::less<>>& entries() const { return entries_; }
  /// Throws Error(bad_file) at this archive that names the entry.
  [[noreturn]] void fail(const std::string& entry, const std::string& message) const;

 private:
  struct Digest {
    uint64_t bytes;
    std::string xxh3;
  };
  std::string where_;
  bool folder_ = false, checked_ = false;
  std::map<std::string, Bytes, std::less<>> entries_;
  std::map<std::string, Digest, std::less<>> manifest_;
};

}  // namespace hidet::runtime
