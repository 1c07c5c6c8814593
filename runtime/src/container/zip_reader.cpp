// zip_reader.cpp - end record, central directory, local headers; then a check that nothing overlaps.
// Every number is compared with the file's size before it is used; memory is bounded by the directory's size.
// Threading: thread-safe.
#include "src/container/zip_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "hidet/runtime/error.h"
#include "src/container/zip_format.h"

namespace hidet::runtime {
namespace {

static_assert(std::endian::native == std::endian::little);

struct Directory {
  uint64_t offset = 0, size = 0, count = 0;
};
struct Extent {
  uint64_t begin, end;
  std::string name;
};

class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& where) : file_(file), where_(where) {}

  ZipDirectory read() {
    const Directory directory = find_directory();
    ZipDirectory result;
    uint64_t at = directory.offset;
    for (uint64_t i = 0; i < directory.count; ++i) at = read_entry(at, directory, i == 0, result);
    require(at == directory.offset + directory.size,
            "the central directory's size does not fit its entries");
    check_overlaps();
    return result;
  }

 private:
  template <class T>
  T get(uint64_t at) const {
    T value;
    std::memcpy(&value, file_.data() + at, sizeof value);
    return value;
  }
  template <class... Args>
  void require(bool condition, const Args&... args) const {
    HIDET_REQUIRE(condition, ErrorCode::bad_file, where_, args...);
  }
  bool has(uint64_t at, uint64_t bytes) const {
    return at <= file_.size() && bytes <= file_.size() - at;
  }

  Directory find_directory() const {
    require(file_.size() >= zip::kEndBytes, "not a model file: ", file_.size(), " bytes");
    const uint64_t end = file_.size() - zip::kEndBytes;
    require(get<uint32_t>(end) == zip::kEnd,
            "not a model file, or cut: no zip directory at its end");
    require(get<uint32_t>(end + 4) == 0 && get<uint16_t>(end + 20) == 0,
            "more than one disk or a comment in the zip's end");
    Directory d{get<uint32_t>(end + 16), get<uint32_t>(end + 12), get<uint16_t>(end + 10)};
    require(d.count == get<uint16_t>(end + 8), "two numbers of entries in the zip's end");
    uint64_t limit = end;
    if (d.offset == zip::kFull32 || d.size == zip::kFull32 || d.count == zip::kFull16)
      limit = find_end64(end, &d);
    require(d.offset <= limit && d.size == limit - d.offset,
            "the central directory is not where the zip's end says");
    require(d.count <= d.size / zip::kCentralBytes, "the zip's end counts ", d.count,
            " entries, more than fit in ", d.size, " bytes");
    return d;
  }

  uint64_t find_end64(uint64_t end, Directory* d) const {
    require(end >= zip::kLocatorBytes + zip::kEnd64Bytes, "the zip64 end is cut");
    const uint64_t locator = end - zip::kLocatorBytes, at = locator - zip::kEnd64Bytes;
    require(get<uint32_t>(locator) == zip::kLocator64 && get<uint64_t>(locator + 8) == at &&
                get<uint32_t>(locator + 4) == 0 && get<uint32_t>(locator + 16) == 1,
            "the zip64 locator is wrong");
    require(get<uint32_t>(at) == zip::kEnd64 && get<uint64_t>(at + 4) == zip::kEnd64Bytes - 12 &&
                get<uint64_t>(at + 16) == 0,
            "the zip64 end is wrong");
    d->count = get<uint64_t>(at + 32);
    require(d->count == get<uint64_t>(at + 24), "two numbers of entries in the zip64 end");
    d->size = get<uint64_t>(at + 40);
    d->offset = get<uint64_t>(at + 48);
    return at;
  }

  /// Replaces the 32-bit values that say "look there" by those of the zip64 field; nullptr: not stored in this header.
  void read_extra64(uint64_t at, uint64_t bytes, const std::string& name,
                    std::initializer_list<uint64_t*> values) const {
    const uint64_t end = at + bytes;
    bool wanted = false;
    for (const uint64_t* v : values) wanted |= *v == zip::kFull32;
    while (end - at >= 4) {
      const uint16_t id = get<uint16_t>(at), size = get<uint16_t>(at + 2);
      require(size <= end - at - 4, "entry '", name, "': an extra field is cut");
      if (id == zip::kExtra64 && wanted) {
        uint64_t next = at + 4;
        for (uint64_t* v : values) {
          if (*v != zip::kFull32) continue;
          require(next + 8 <= at + 4 + size, "entry '", name, "': the zip64 field is cut");
          *v = get<uint64_t>(next);
          next += 8;
        }
        return;
      }
      at += 4 + size;
    }
    require(end == at, "entry '", name, "': ", end - at, " bytes too many in the extra fields");
    require(!wanted, "entry '", name, "': the zip64 field is missing");
  }

  uint64_t read_entry(uint64_t at, const Directory& d, bool first, ZipDirectory& result) {
    const uint64_t limit = d.offset + d.size;
    require(limit - at >= zip::kCentralBytes && get<uint32_t>(at) == zip::kCentral,
            "the central directory is damaged");
    const uint64_t name_bytes = get<uint16_t>(at + 28), extra = get<uint16_t>(at + 30),
                   comment = get<uint16_t>(at + 32);
    require(name_bytes + extra + comment <= limit - at - zip::kCentralBytes,
            "the central directory is cut");
    std::string name(reinterpret_cast<const char*>(file_.data() + at + zip::kCentralBytes),
                     name_bytes);
    require(good_entry_name(name), "entry '", printable(name), "' has a name that is not allowed");
    require((get<uint16_t>(at + 8) & ~zip::kUtf8) == 0 && get<uint16_t>(at + 10) == 0, "entry '",
            name, "' is compressed, encrypted or streamed; entries must be stored");
    uint64_t stored = get<uint32_t>(at + 20), size = get<uint32_t>(at + 24),
             offset = get<uint32_t>(at + 42);
    read_extra64(at + zip::kCentralBytes + name_bytes, extra, name, {&size, &stored, &offset});
    require(stored == size, "entry '", name, "' has two sizes: ", stored, " and ", size);
    require(get<uint16_t>(at + 34) == 0, "entry '", name, "' is on another disk");
    ZipEntry entry{0, size, get<uint32_t>(at + 16)};
    entry.offset = read_local(offset, entry, name, d.offset);
    extents_.push_back({offset, entry.offset + size, name});
    require(result.entries.emplace(name, entry).second, "entry '", name, "' is there twice");
    if (first) result.first = std::move(name);
    return at + zip::kCentralBytes + name_bytes + extra + comment;
  }

  /// Checks the local header against the directory; the place of the data.
  uint64_t read_local(uint64_t at, const ZipEntry& entry, const std::string& name,
                      uint64_t limit) const {
    require(at <= limit && limit - at >= zip::kLocalBytes, "entry '", name,
            "' begins outside the file's data");
    require(get<uint32_t>(at) == zip::kLocal, "entry '", name, "' has no header");
    const uint64_t name_bytes = get<uint16_t>(at + 26), extra = get<uint16_t>(at + 28);
    require(name_bytes + extra <= limit - at - zip::kLocalBytes, "entry '", name, "' is cut");
    const std::string_view local(
        reinterpret_cast<const char*>(file_.data() + at + zip::kLocalBytes), name_bytes);
    require(local == name, "entry '", name, "' has another name in its header");
    require((get<uint16_t>(at + 6) & ~zip::kUtf8) == 0 && get<uint16_t>(at + 8) == 0, "entry '",
            name, "' is not stored in its header");
    uint64_t stored = get<uint32_t>(at + 18), size = get<uint32_t>(at + 22);
    read_extra64(at + zip::kLocalBytes + name_bytes, extra, name, {&size, &stored});
    require(stored == entry.size && size == entry.size && get<uint32_t>(at + 14) == entry.crc,
            "entry '", name, "' has another size or checksum in its header");
    const uint64_t data = at + zip::kLocalBytes + name_bytes + extra;
    require(entry.size <= limit - data, "entry '", name, "' of ", entry.size,
            " bytes is larger than the file");
    return data;
  }

  void check_overlaps() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
    for (size_t i = 1; i < extents_.size(); ++i)
      require(extents_[i].begin >= extents_[i - 1].end, "entries '", extents_[i - 1].name,
              "' and '", extents_[i].name, "' overlap");
  }

  static std::string printable(std::string_view name) {
    std::string text;
    for (const char c : name.substr(0, 80)) text += c >= 32 && c < 127 ? c : '?';
    return text;
  }

  std::span<const std::byte> file_;
  const std::string& where_;
  std::vector<Extent> extents_;
};

}  // namespace

bool good_entry_name(std::string_view name) {
  if (name.empty() || name.size() > 4096) return false;
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 32 || c == 127 || c == '\\' || c == ':') return false;
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

ZipDirectory read_zip(std::span<const std::byte> file, const std::string& where) {
  return Reader(file, where).read();
}

}  // namespace hidet::runtime
