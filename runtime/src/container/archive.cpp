// archive.cpp - opens zips and folders, compares entries with the manifest.
// Threading: thread-safe once opened.
#include "src/container/archive.h"

#include <filesystem>

#include "hidet/runtime/error.h"
#include "src/container/digest.h"
#include "src/container/json.h"
#include "src/container/mapped_file.h"

namespace hidet::runtime {
namespace fs = std::filesystem;

Archive Archive::of(Bytes zip, const std::string& where) {
  Archive archive;
  archive.where_ = where;
  const ZipDirectory directory = read_zip(zip.span(), where);
  HIDET_REQUIRE(directory.first == "meta.json", ErrorCode::bad_file, where,
                "not a hidet model: its first entry is '", directory.first, "', not 'meta.json'");
  for (const auto& [name, entry] : directory.entries)
    archive.entries_.emplace(name,
                             Bytes(zip.owner(), zip.span().subspan(entry.offset, entry.size)));
  return archive;
}

Archive Archive::open(const std::string& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return of(map_file(path), path);
  Archive archive;
  archive.where_ = path;
  archive.folder_ = true;
  for (auto it = fs::recursive_directory_iterator(path, error);
       !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
    std::error_code gone;  // a file that goes meanwhile is none of ours
    if (!it->is_regular_file(gone) || it->is_symlink(gone)) continue;
    const std::string name = it->path().lexically_relative(path).generic_string();
    if (good_entry_name(name)) archive.entries_.emplace(name, map_file(it->path().string()));
  }
  HIDET_REQUIRE(!error, ErrorCode::io, path, "cannot list the folder: ", error.message());
  HIDET_REQUIRE(archive.has("meta.json"), ErrorCode::bad_file, path,
                "not a hidet model: there is no meta.json in the folder");
  return archive;
}

void Archive::fail(const std::string& entry, const std::string& message) const {
  throw Error(ErrorCode::bad_file, detail::concat("entry '", entry, "' ", message), where_);
}

void Archive::use_manifest() {
  if (!has("manifest.json")) fail("manifest.json", "is missing");
  const Json json = parse_json(get("manifest.json").text(), where_, "manifest.json");
  for (const auto& [name, digest] :
       JsonView(json, where_, "manifest.json").at("entries").members()) {
    const int64_t bytes = digest.at("bytes").integer();
    manifest_.emplace(name, Digest{static_cast<uint64_t>(bytes), digest.at("xxh3").text()});
    if (!has(name)) fail(name, "is missing");
    if (entries_.find(name)->second.size() != static_cast<uint64_t>(bytes))
      fail(name, "has another size than the manifest says");
  }
  if (!folder_)
    for (const auto& [name, bytes] : entries_)
      if (name != "manifest.json" && !manifest_.count(name)) fail(name, "is not in the manifest");
  checked_ = true;
}

Bytes Archive::get(const std::string& name, bool check) const {
  const auto it = entries_.find(name);
  if (it == entries_.end()) fail(name, "is missing");
  if (check && checked_ && name != "manifest.json") {
    const auto digest = manifest_.find(name);
    if (digest == manifest_.end()) fail(name, "is not in the manifest");
    if (xxh3_hex(it->second.span()) != digest->second.xxh3)
      fail(name, "is damaged: its digest is not the manifest's");
  }
  return it->second;
}

}  // namespace hidet::runtime
