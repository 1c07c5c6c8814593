// bundle.cpp - writes and reads bundles of GPU code.
// Needs: nothing. Leaves: views into the bytes that were given; trusts no number in them.
// Threading: pure functions.
#include <cstring>

#include <hidet/runtime/cuda_bundle.h>
#include <hidet/runtime/error.h>

namespace hidet::runtime {
namespace {

constexpr char kMagic[8] = {'H', 'I', 'D', 'E', 'T', 'C', 'U', 'B'};
constexpr size_t kAlign = 64;

struct Header {
  char magic[8];
  uint32_t version, parts;
};
struct Entry {
  uint64_t code, code_size, names, names_size;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 32);

size_t aligned(size_t at) { return (at + kAlign - 1) / kAlign * kAlign; }

std::span<const std::byte> piece(std::span<const std::byte> bytes, uint64_t at, uint64_t size) {
  HIDET_REQUIRE(at <= bytes.size() && size <= bytes.size() - at, ErrorCode::bad_file, "",
                "the bundle of GPU code is damaged: a piece of ", size, " bytes at ", at,
                " leaves its ", bytes.size(), " bytes");
  return bytes.subspan(static_cast<size_t>(at), static_cast<size_t>(size));
}

std::vector<std::string> split_names(std::span<const std::byte> bytes) {
  std::vector<std::string> names;
  std::string name;
  for (std::byte b : bytes) {
    if (b == std::byte{0}) {
      names.push_back(std::move(name));
      name.clear();
    } else {
      name += static_cast<char>(b);
    }
  }
  HIDET_REQUIRE(name.empty(), ErrorCode::bad_file, "",
                "the bundle of GPU code is damaged: a kernel's name has no end");
  return names;
}

}  // namespace

std::vector<uint8_t> write_cuda_bundle(std::span<const CudaBundlePart> parts) {
  std::vector<Entry> entries;
  std::string names;
  size_t at = sizeof(Header) + parts.size() * sizeof(Entry);
  for (const CudaBundlePart& part : parts) {
    const size_t start = names.size();
    for (const std::string& name : part.kernels) names.append(name).push_back('\0');
    entries.push_back({0, part.code.size(), at + start, names.size() - start});
  }
  at += names.size();
  for (Entry& entry : entries) {
    entry.code = aligned(at);
    at = static_cast<size_t>(entry.code + entry.code_size);
  }
  std::vector<uint8_t> bytes(at);
  Header header{{}, 1, static_cast<uint32_t>(parts.size())};
  std::memcpy(header.magic, kMagic, sizeof(kMagic));
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!entries.empty())
    std::memcpy(bytes.data() + sizeof(header), entries.data(), entries.size() * sizeof(Entry));
  if (!names.empty())
    std::memcpy(bytes.data() + sizeof(header) + entries.size() * sizeof(Entry), names.data(),
                names.size());
  for (size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].code.empty())
      std::memcpy(bytes.data() + entries[i].code, parts[i].code.data(), parts[i].code.size());
  return bytes;
}

std::vector<CudaBundlePart> read_cuda_bundle(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(Header) || std::memcmp(bytes.data(), kMagic, sizeof(kMagic)) != 0)
    return {{{}, bytes}};
  Header header;
  std::memcpy(&header, bytes.data(), sizeof(header));
  HIDET_REQUIRE(header.version == 1, ErrorCode::bad_file, "", "the bundle of GPU code has version ",
                header.version, "; this runtime reads version 1");
  const std::span<const std::byte> table =
      piece(bytes, sizeof(Header), uint64_t{header.parts} * sizeof(Entry));
  std::vector<CudaBundlePart> parts;
  parts.reserve(header.parts);
  for (size_t i = 0; i < header.parts; ++i) {
    Entry entry;
    std::memcpy(&entry, table.data() + i * sizeof(Entry), sizeof(entry));
    parts.push_back({split_names(piece(bytes, entry.names, entry.names_size)),
                     piece(bytes, entry.code, entry.code_size)});
  }
  return parts;
}

}  // namespace hidet::runtime
