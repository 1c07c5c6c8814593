// numpy.cpp - the .npy format: a magic word, a version, a Python dictionary, and the elements.
#include "hidet/runtime/numpy.h"

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "hidet/runtime/error.h"
#include "hidet/runtime/file.h"

namespace hidet {
namespace {

using detail::concat;

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMostHeader = 64 * 1024;
constexpr size_t kMostRank = 64;

// The dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::string descr;
  Shape shape;

  void parse() {
    need('{');
    while (!take('}')) {
      const std::string key = quoted();
      need(':');
      if (key == "descr") once(has_descr_, key), descr = quoted();
      else if (key == "fortran_order") once(has_order_, key), order();
      else if (key == "shape") once(has_shape_, key), sizes();
      else fail("unknown key '" + key + "'");
      if (!take(',')) {
        need('}');
        break;
      }
    }
    skip_blanks();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!has_descr_ || !has_order_ || !has_shape_) fail("descr, fortran_order or shape is missing");
  }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorCode::bad_file, "this is no npy that can be read: " + why, name_);
  }

 private:
  void once(bool& seen, const std::string& key) const {
    if (seen) fail("the key '" + key + "' is there twice");
    seen = true;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) at_++;
  }
  bool take(char c) {
    skip_blanks();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_++;
    return true;
  }
  void need(char c) {
    if (!take(c)) fail(concat("'", c, "' was expected in its header"));
  }
  bool take_word(std::string_view word) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  std::string quoted() {
    skip_blanks();
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '\'' && quote != '"')
      fail("a string was expected in its header (no structured types)");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == text_.npos) fail("a string of its header has no end");
    const std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  void order() {
    if (take_word("True"))
      fail("its elements are in Fortran order: save numpy.ascontiguousarray(x)");
    if (!take_word("False")) fail("fortran_order is neither True nor False");
  }
  void sizes() {
    need('(');
    while (!take(')')) {
      skip_blanks();
      int64_t size = 0;
      const char* const end = text_.data() + text_.size();
      const auto [stop, problem] = std::from_chars(text_.data() + at_, end, size);
      if (problem != std::errc() || size < 0)
        fail("a size of its shape is no number from 0 to 2^63 - 1");
      at_ = static_cast<size_t>(stop - text_.data());
      shape.push_back(size);
      if (shape.size() > kMostRank) fail(concat("its shape has more than ", kMostRank, " sizes"));
      if (take(',')) continue;
      need(')');
      if (shape.size() == 1) fail("its shape is no tuple");  // (3) is a number in Python
      break;
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

DType dtype_of_descr(const HeaderParser& header, std::optional<DType> as) {
  const std::string& descr = header.descr;
  if (!descr.empty() && descr[0] == '>')
    header.fail("its elements are big endian ('" + descr + "')");
  if (as) {
    if (as->bits() < 8 || descr != as->numpy_name())
      header.fail(concat("its elements are '", descr, "', and ", *as, " was expected"));
    return *as;
  }
  if (descr == "|V1" || descr == "|V2")
    header.fail("its elements are raw bytes ('" + descr + "'): say which dtype they are");
  for (const DType dtype : {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, f32, f64})
    if (descr == dtype.numpy_name()) return dtype;
  header.fail("its elements are '" + descr + "', which has no dtype here");
}

uint32_t little_endian(const std::byte* at, size_t bytes) {
  uint32_t value = 0;
  for (size_t i = 0; i < bytes; i++) value |= std::to_integer<uint32_t>(at[i]) << (8 * i);
  return value;
}

struct CloseFile {
  void operator()(std::FILE* f) const { std::fclose(f); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void io_error(const std::string& path, const char* what) {
  throw Error(ErrorCode::io, concat("cannot ", what, ": ", std::strerror(errno)), path);
}

}  // namespace

NpyInfo parse_npy(std::span<const std::byte> bytes, const std::string& name,
                  std::optional<DType> as) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const HeaderParser outside({}, name);
  if (!text.starts_with(kMagic) || text.size() < 10)
    outside.fail("it does not begin with numpy's magic word");
  const int major = std::to_integer<int>(bytes[6]), minor = std::to_integer<int>(bytes[7]);
  if ((major != 1 && major != 2) || minor != 0)
    outside.fail(concat("its version is ", major, ".", minor, ", not 1.0 or 2.0"));
  const size_t prefix = major == 1 ? 10 : 12;
  if (text.size() < prefix) outside.fail("it ends within its header");
  const size_t length = little_endian(bytes.data() + 8, major == 1 ? 2 : 4);
  if (length > kMostHeader) outside.fail(concat("its header says that it has ", length, " bytes"));
  if (text.size() - prefix < length) outside.fail("it ends within its header");

  HeaderParser header(text.substr(prefix, length), name);
  header.parse();
  NpyInfo info;
  info.dtype = dtype_of_descr(header, as);
  info.shape = header.shape;
  info.data_offset = prefix + length;
  info.data_bytes = bytes.size() - info.data_offset;
  int64_t count = 0, expected = 0;
  try {
    count = product(info.shape);
  } catch (const Error& e) {
    header.fail(e.what());
  }
  if (__builtin_mul_overflow(count, static_cast<int64_t>(info.dtype.bytes()), &expected) ||
      static_cast<uint64_t>(expected) != info.data_bytes)
    header.fail(concat(info.dtype, shape_text(info.shape), " does not fit the ", info.data_bytes,
                       " bytes after its header"));
  return info;
}

Tensor npy_to_tensor(std::span<const std::byte> bytes, const std::string& name,
                     std::optional<DType> as) {
  const NpyInfo info = parse_npy(bytes, name, as);
  Tensor t = empty(info.shape, info.dtype);
  if (info.data_bytes) std::memcpy(t.data(), bytes.data() + info.data_offset, info.data_bytes);
  return t;
}

std::string npy_header(DType dtype, const Shape& shape) {
  HIDET_REQUIRE(dtype.bits() >= 8, ErrorCode::unsupported, "", "an npy holds no packed elements (",
                dtype, ")");
  std::string dictionary =
      concat("{'descr': '", dtype.numpy_name(), "', 'fortran_order': False, 'shape': (");
  for (size_t i = 0; i < shape.size(); i++) dictionary += concat(i ? ", " : "", shape[i]);
  dictionary += shape.size() == 1 ? ",), }" : "), }";
  const size_t prefix = dictionary.size() + 1 + 10 <= 0xffff ? 10 : 12;
  const size_t whole = (prefix + dictionary.size() + 1 + 63) / 64 * 64;
  dictionary.append(whole - prefix - dictionary.size() - 1, ' ');
  dictionary += '\n';
  std::string header(kMagic);
  header += prefix == 10 ? '\1' : '\2';
  header += '\0';
  for (size_t i = 0; i < prefix - 8; i++)
    header += static_cast<char>(dictionary.size() >> (8 * i) & 0xff);
  return header + dictionary;
}

std::vector<std::byte> tensor_to_npy(const Tensor& tensor) {
  const Tensor here = tensor.cpu();
  const std::string header = npy_header(here.dtype(), here.shape());
  std::vector<std::byte> bytes(header.size() + static_cast<size_t>(here.bytes()));
  std::memcpy(bytes.data(), header.data(), header.size());
  if (here.bytes())
    std::memcpy(bytes.data() + header.size(), here.data(), static_cast<size_t>(here.bytes()));
  return bytes;
}

Tensor read_npy(const std::string& path, std::optional<DType> as) {
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) io_error(path, "open this file");
  std::vector<std::byte> bytes;
  size_t filled = 0;
  do {  // grows with what is there: a pipe has no size
    bytes.resize(std::max<size_t>(bytes.size() * 2, 64 * 1024));
    filled += std::fread(bytes.data() + filled, 1, bytes.size() - filled, file.get());
  } while (filled == bytes.size());
  if (std::ferror(file.get())) io_error(path, "read this file");
  return npy_to_tensor(std::span(bytes).first(filled), path, as);
}

void write_npy(const std::string& path, const Tensor& tensor) {
  const Tensor here = tensor.cpu();
  const std::string header = npy_header(here.dtype(), here.shape());
  const std::span<const std::byte> parts[] = {
      std::as_bytes(std::span(header)),
      {static_cast<const std::byte*>(here.data()), static_cast<size_t>(here.bytes())}};
  runtime::write_file(path, parts);
}

}  // namespace hidet
