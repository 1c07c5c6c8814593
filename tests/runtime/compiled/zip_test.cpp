// zip_test.cpp - the strict zip reader against hostile files, and the writer's alignment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include <hidet/runtime/error.h>

#include "src/container/digest.h"
#include "src/container/zip_reader.h"
#include "src/container/zip_writer.h"

using namespace hidet;
using namespace hidet::runtime;
using testing::HasSubstr;

namespace {

std::string make(const std::vector<std::pair<std::string, std::string>>& entries) {
  ZipLayout layout;
  for (const auto& [name, text] : entries) layout.add(name, {zip_part(std::string_view(text))});
  layout.finish();
  std::string out;
  for (const ZipPart& p : layout.parts())
    out.append(reinterpret_cast<const char*>(p.bytes.data()), p.bytes.size());
  EXPECT_EQ(out.size(), layout.size());
  return out;
}
ZipDirectory read(const std::string& file) {
  return read_zip(std::as_bytes(std::span(file)), "file");
}
std::string failure(const std::string& file) {
  try {
    (void)read(file);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    return e.what();
  }
  return "no error";
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  EXPECT_EQ(from.size(), to.size());
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + 1))
    text.replace(at, from.size(), to);
  return text;
}

TEST(Zip, WritesAlignedAndReadsBack) {
  const std::string file = make({{"a", "1"}, {"folder/b", std::string(1000, 'x')}, {"c", ""}});
  const ZipDirectory d = read(file);
  ASSERT_EQ(d.entries.size(), 3u);
  EXPECT_EQ(d.first, "a");
  for (const auto& [name, e] : d.entries) EXPECT_EQ(e.offset % 64, 0u) << name;
  EXPECT_EQ(file.substr(d.entries.at("folder/b").offset, 1000), std::string(1000, 'x'));
  EXPECT_TRUE(read(make({})).entries.empty());
}

TEST(Zip, ManyEntriesUseZip64) {
  std::vector<std::pair<std::string, std::string>> entries;
  for (int i = 0; i < 66000; ++i) entries.push_back({"e" + std::to_string(i), ""});
  EXPECT_EQ(read(make(entries)).entries.size(), 66000u);
}

TEST(Zip, HostileNames) {
  for (const char* name : {"", "/x", "../x", "a/../b", "a//b", "a/", ".", "a\\b", "c:x", "a\nb"})
    EXPECT_FALSE(good_entry_name(name)) << name;
  EXPECT_TRUE(good_entry_name("programs/x86-64-v4+vnni/code.so"));
  EXPECT_THAT(failure(replaced(make({{"aaaa", "1"}}), "aaaa", "../a")), HasSubstr("'../a'"));
  EXPECT_THAT(failure(replaced(make({{"aaaa", "1"}, {"bbbb", "2"}}), "bbbb", "aaaa")),
              HasSubstr("twice"));
}

TEST(Zip, LyingNumbers) {
  const std::string good = make({{"aaaa", "12345678"}, {"bbbb", "87654321"}});
  const size_t central = good.find("PK\1\2"), second = good.find("PK\1\2", central + 1),
               end = good.find("PK\5\6");
  const auto patched = [&](size_t at, uint32_t value) {
    std::string file = good;
    std::memcpy(file.data() + at, &value, 4);
    return failure(file);
  };
  EXPECT_THAT(patched(central + 24, 1u << 30), HasSubstr("'aaaa'"));
  EXPECT_THAT(patched(central + 42, 0x7fffffff), HasSubstr("'aaaa'"));
  EXPECT_THAT(patched(central + 10, 8), HasSubstr("compressed"));
  EXPECT_THAT(patched(second + 42, 0), HasSubstr("'bbbb'"));
  EXPECT_THAT(patched(end + 8, 0xfffefffe), HasSubstr("65534"));
  EXPECT_THAT(patched(end + 16, 5), HasSubstr("central directory"));
  EXPECT_THAT(failure(good + "x"), HasSubstr("cut"));
  EXPECT_THAT(failure(""), HasSubstr("0 bytes"));
}

/// Bit by bit, as the definition says.
uint32_t plain_crc(const std::string& text) {
  uint32_t crc = ~0u;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0xEDB88320u : 0);
  }
  return ~crc;
}

// Every length around the steps of 16 and 64 bytes, at every alignment.
TEST(Digest, CrcOfEveryLength) {
  std::string text(700, 0);
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 167 + i * i);
  for (size_t length = 0; length <= 300; ++length) {
    const size_t at = length % 17;
    EXPECT_EQ(crc32(std::as_bytes(std::span(text).subspan(at, length))),
              plain_crc(text.substr(at, length)))
        << length;
  }
}

TEST(Digest, KnownValuesAndJoins) {
  EXPECT_EQ(crc32(std::as_bytes(std::span("123456789", 9))), 0xCBF43926u);
  std::string text(3000001, 'a');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i >> 7);
  const auto all = std::as_bytes(std::span(text));
  for (const size_t cut : {size_t{0}, size_t{1}, size_t{17}, size_t{1500000}, text.size()})
    EXPECT_EQ(crc32_join(crc32(all.first(cut)), crc32(all.subspan(cut)), text.size() - cut),
              crc32(all));
}

}  // namespace
