// zip_writer.cpp - local headers, directory and end records, zip64 where numbers ask for it.
// Threading: one thread at a time.
#include "src/container/zip_writer.h"

#include <string_view>

#include "hidet/runtime/error.h"
#include "src/container/digest.h"
#include "src/container/zip_format.h"
#include "src/container/zip_reader.h"

namespace hidet::runtime {
namespace {

void put16(std::string& out, uint64_t v) {
  for (int i = 0; i < 2; ++i) out += static_cast<char>(v >> (8 * i));
}
void put32(std::string& out, uint64_t v) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(v >> (8 * i));
}
void put64(std::string& out, uint64_t v) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(v >> (8 * i));
}
uint64_t low32(uint64_t v) { return v >= zip::kFull32 ? zip::kFull32 : v; }

/// What local header and directory have in common: version to names' length.
void put_common(std::string& out, bool large, uint32_t crc, uint64_t size, size_t name_bytes,
                size_t extra_bytes) {
  put16(out, large ? 45 : 20);
  put16(out, zip::kUtf8);
  put16(out, 0);  // stored
  put16(out, 0);  // midnight
  put16(out, zip::kDosDate);
  put32(out, crc);
  put32(out, large ? zip::kFull32 : size);
  put32(out, large ? zip::kFull32 : size);
  put16(out, name_bytes);
  put16(out, extra_bytes);
}

}  // namespace

ZipPart zip_part(std::span<const std::byte> bytes) { return {bytes, crc32(bytes)}; }
ZipPart zip_part(std::string_view text) { return zip_part(std::as_bytes(std::span(text))); }

void ZipLayout::append(std::string bytes) {
  owned_.push_back(std::move(bytes));
  parts_.push_back(zip_part(std::string_view(owned_.back())));
  size_ += owned_.back().size();
}

void ZipLayout::add(const std::string& name, std::vector<ZipPart> data) {
  HIDET_CHECK(good_entry_name(name), "entry name '", name, "'");
  Entry entry{name, size_, 0, 0};
  for (const ZipPart& part : data) {
    entry.crc = crc32_join(entry.crc, part.crc, part.bytes.size());
    entry.size += part.bytes.size();
  }
  const bool large = entry.size >= zip::kFull32;
  std::string extra;
  if (large) {
    put16(extra, zip::kExtra64);
    put16(extra, 16);
    put64(extra, entry.size);
    put64(extra, entry.size);
  }
  const uint64_t data_at = size_ + zip::kLocalBytes + name.size() + extra.size();
  uint64_t pad = (zip::kAlign - data_at % zip::kAlign) % zip::kAlign;
  if (pad > 0) {
    if (pad < 4) pad += zip::kAlign;  // a field has a head of 4 bytes
    put16(extra, zip::kExtraPad);
    put16(extra, pad - 4);
    extra.append(pad - 4, '\0');
  }
  std::string header;
  put32(header, zip::kLocal);
  put_common(header, large, entry.crc, entry.size, name.size(), extra.size());
  append(header + name + extra);
  for (const ZipPart& part : data) {
    parts_.push_back(part);
    size_ += part.bytes.size();
  }
  entries_.push_back(std::move(entry));
}

void ZipLayout::finish() {
  const uint64_t begin = size_;
  std::string out;
  for (const Entry& entry : entries_) {
    const bool large = entry.size >= zip::kFull32, far = entry.offset >= zip::kFull32;
    std::string extra;
    if (large || far) {
      put16(extra, zip::kExtra64);
      put16(extra, (large ? 16 : 0) + (far ? 8 : 0));
      if (large) put64(extra, entry.size), put64(extra, entry.size);
      if (far) put64(extra, entry.offset);
    }
    put32(out, zip::kCentral);
    put16(out, 3 << 8 | 45);  // made on Unix
    put_common(out, large, entry.crc, entry.size, entry.name.size(), extra.size());
    put16(out, 0);               // comment
    put16(out, 0);               // disk
    put16(out, 0);               // internal attributes
    put32(out, 0100644u << 16);  // a plain file
    put32(out, low32(entry.offset));
    out += entry.name + extra;
  }
  const uint64_t bytes = out.size(), count = entries_.size();
  if (count >= zip::kFull16 || bytes >= zip::kFull32 || begin >= zip::kFull32) {
    const uint64_t at = begin + bytes;
    put32(out, zip::kEnd64);
    put64(out, zip::kEnd64Bytes - 12);
    put16(out, 3 << 8 | 45);
    put16(out, 45);
    put64(out, 0);  // disks
    put64(out, count);
    put64(out, count);
    put64(out, bytes);
    put64(out, begin);
    put32(out, zip::kLocator64);
    put32(out, 0);
    put64(out, at);
    put32(out, 1);
  }
  const uint64_t count16 = count >= zip::kFull16 ? zip::kFull16 : count;
  put32(out, zip::kEnd);
  put32(out, 0);
  put16(out, count16);
  put16(out, count16);
  put32(out, low32(bytes));
  put32(out, low32(begin));
  put16(out, 0);
  append(std::move(out));
}

}  // namespace hidet::runtime
