// npy: bytes as numpy writes them, round trips, and every way to be malformed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/runtime/error.h>
#include <hidet/runtime/numpy.h>
#include <unistd.h>

#include <cstdio>
#include <functional>

namespace hidet {
namespace {

using ::testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// A version 1 file with this dictionary, unpadded, as some writers make it.
std::string file_of(const std::string& dictionary, const std::string& data, char major = 1) {
  std::string text = "\x93NUMPY";
  text += major;
  text += '\0';
  text += static_cast<char>(dictionary.size() & 0xff);
  text += static_cast<char>(dictionary.size() >> 8);
  if (major == 2) text += std::string(2, '\0');
  return text + dictionary + data;
}

std::string message_of(const std::string& file, std::optional<DType> as = {}) {
  try {
    npy_to_tensor(bytes_of(file), "x.npy", as);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::bad_file);
    EXPECT_THAT(e.what(), HasSubstr("x.npy"));
    return e.what();
  }
  return "no error";
}

TEST(Npy, HeaderIsNumpys) {
  // numpy.save of numpy.zeros((2, 3), 'float32') begins so.
  const std::string expected = std::string("\x93NUMPY\x01\x00v\x00", 10) +
                               "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  const std::string header = npy_header(f32, {2, 3});
  EXPECT_EQ(header.size(), 128u);
  EXPECT_EQ(header.substr(0, expected.size()), expected);
  EXPECT_EQ(header.back(), '\n');
  EXPECT_THAT(npy_header(i64, {5}), HasSubstr("(5,)"));
  EXPECT_THAT(npy_header(boolean, {}), HasSubstr("'|b1', 'fortran_order': False, 'shape': ()"));
  EXPECT_THROW(npy_header(i4, {2}), Error);
}

TEST(Npy, EveryDtypeRoundTrips) {
  for (int code = 0; code < kNumDTypes; code++) {
    const DType dtype(static_cast<DTypeCode>(code));
    if (dtype.bits() < 8) continue;
    for (const Shape& shape : {Shape{}, Shape{3}, Shape{0, 5}, Shape{2, 1, 7}}) {
      const Tensor t = full(shape, 1, dtype);
      const std::vector<std::byte> file = tensor_to_npy(t);
      const bool raw = dtype.numpy_name()[1] == 'V';
      const Tensor back =
          npy_to_tensor(file, "x", raw || dtype == tf32 ? std::optional(dtype) : std::nullopt);
      EXPECT_EQ(back.describe(), t.describe());
      EXPECT_EQ(back.to_doubles(), t.to_doubles());
      if (raw) {
        EXPECT_THROW(npy_to_tensor(file, "x"), Error);
      }
    }
  }
}

TEST(Npy, Files) {
  const std::string path =
      testing::TempDir() + "hidet_npy_test_" + std::to_string(getpid()) + ".npy";
  const Tensor t = randn({37, 1000}, f64);
  write_npy(path, t);
  EXPECT_EQ(read_npy(path).to_doubles(), t.to_doubles());
  write_npy(path, zeros({0}));
  EXPECT_EQ(read_npy(path, f32).describe(), "f32[0] cpu");
  EXPECT_THROW(read_npy(path, f64), Error);
  for (const auto& f : {std::function<void()>([&] { read_npy(path + ".none"); }),
                        std::function<void()>([&] { write_npy(path + "/no/x.npy", t); })}) {
    try {
      f();
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::io);
      EXPECT_THAT(e.what(), HasSubstr("hidet_npy_test_"));
    }
  }
  std::remove(path.c_str());
}

TEST(Npy, OtherWriters) {
  const std::string data("\0\0\x80?\0\0\0@", 8);
  for (const char* dictionary :
       {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n",
        "{\"shape\": (2,), 'fortran_order':False,'descr':'<f4'}",
        "{'fortran_order': False, 'descr': '<f4', 'shape': (2, 1)}   \n"}) {
    EXPECT_EQ(npy_to_tensor(bytes_of(file_of(dictionary, data)), "x").to_doubles(),
              (std::vector<double>{1, 2}));
    EXPECT_EQ(npy_to_tensor(bytes_of(file_of(dictionary, data, 2)), "x").to_doubles(),
              (std::vector<double>{1, 2}));
  }
}

TEST(Npy, MalformedIsNamed) {
  const auto header = [](const std::string& descr, const std::string& order,
                         const std::string& shape) {
    return "{'descr': '" + descr + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  };
  const std::string data(8, '\0');
  const std::vector<std::pair<std::string, const char*>> wrong = {
      {"", "magic"},
      {"\x93NUMPY", "magic"},
      {"PK\3\4 and more", "magic"},
      {file_of(header("<f4", "False", "(2,)"), data, 3), "version"},
      {file_of(header("<f4", "True", "(2,)"), data), "Fortran"},
      {file_of(header("<f4", "Maybe", "(2,)"), data), "fortran_order"},
      {file_of(header(">f4", "False", "(2,)"), data), "big endian"},
      {file_of(header("<c8", "False", "(1,)"), data), "'<c8'"},
      {file_of(header("|O", "False", "(1,)"), data), "'|O'"},
      {file_of(header("|V2", "False", "(4,)"), data), "raw bytes"},
      {file_of(header("<f4", "False", "(3,)"), data), "does not fit"},
      {file_of(header("<f4", "False", "(1,)"), data), "does not fit"},
      {file_of(header("<f4", "False", "(-2,)"), data), "shape"},
      {file_of(header("<f4", "False", "(2)"), data), "tuple"},
      {file_of(header("<f4", "False", "(9223372036854775807, 4)"), data), "63 bits"},
      {file_of(header("<f4", "False", "(4611686018427387904,)"), data), "does not fit"},
      {file_of(header("<f4", "False", "(99999999999999999999,)"), data), "shape"},
      {file_of(header("<f4", "False", "(2, 'x')"), data), "shape"},
      {file_of("{'descr': '<f4', 'shape': (2,)}", data), "missing"},
      {file_of("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", data),
       "twice"},
      {file_of("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,)}", data), "string"},
      {file_of("{'extra': 1}", data), "unknown key"},
      {file_of(header("<f4", "False", "(2,)") + "x", data), "after"},
      {file_of("{'descr", data), "no end"},
      {file_of(header("<f4", "False", "(2,)"), "").substr(0, 30), "ends within"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff....", 16), "its header says"},
  };
  for (const auto& [file, why] : wrong) EXPECT_THAT(message_of(file), HasSubstr(why));
  EXPECT_THAT(message_of(file_of(header("<f4", "False", "(2,)"), data), f64),
              HasSubstr("f64 was expected"));
}

TEST(Npy, EveryTruncationAndFlipIsSafe) {
  const std::vector<std::byte> file = tensor_to_npy(arange(6, i32).reshape({2, 3}));
  for (size_t n = 0; n < file.size(); n++)
    EXPECT_THROW(npy_to_tensor(std::span(file).first(n), "x"), Error) << n;
  for (size_t at = 0; at < file.size(); at++) {
    for (int bit = 0; bit < 8; bit++) {
      std::vector<std::byte> damaged = file;
      damaged[at] ^= std::byte{1} << bit;
      try {
        EXPECT_LE(npy_to_tensor(damaged, "x").bytes(), 24);
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), ErrorCode::bad_file);
      }
    }
  }
}

}  // namespace
}  // namespace hidet
