// external_data_test.cpp - tensor values: raw, in lists, and in other files, which must lie in the
// model's folder (bug report 69).
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "onnx/tensor_values.h"
#include "onnx_builder.h"

using namespace hidet::graph::onnx;
using namespace onnx_test;
using hidet::Error;
using hidet::ErrorCode;
using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

namespace {

/// A fresh folder with a model folder and a secret beside it.
class ExternalData : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hidet_onnx_XXXXXX").string();
    root_ = ::mkdtemp(pattern.data());
    fs::create_directories(root_ / "model" / "sub");
    write_file((root_ / "secret.bin").string(), "top secret bytes");
    write_file((root_ / "model" / "w.bin").string(), std::string(64, '\0') + floats({1, 2, 3, 4}));
    write_file((root_ / "model" / "sub" / "v.bin").string(), floats({5, 6, 7, 8}));
  }
  void TearDown() override { fs::remove_all(root_); }

  static std::string floats(const std::vector<float>& values) {
    std::string out(values.size() * 4, '\0');
    std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
  TensorValues load(const std::string& tensor_bytes) {
    const std::string path = (root_ / "model" / "m.onnx").string();
    Model m;
    m.initializer(tensor_bytes);
    write_file(path, m.serialize());
    ModelFile file(path);
    const ModelProto model = decode_model(file.bytes(), file.name());
    return load_values(model.graph.initializers.at(0), file, "initializer 'w'");
  }
  std::string refusal(const std::string& location, int64_t offset = 0, int64_t length = 16) {
    try {
      (void)load(external_tensor("w", {2, 2}, location, offset, length));
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file) << e.what();
      EXPECT_THAT(e.what(), HasSubstr("m.onnx"));
      EXPECT_THAT(e.what(), HasSubstr("'w'"));
      EXPECT_THAT(e.what(), Not(HasSubstr(root_.string())));
      EXPECT_THAT(e.what(), Not(HasSubstr("top secret")));
      return e.what();
    }
    ADD_FAILURE() << "accepted: " << location;
    return "";
  }
  fs::path root_;
};

}  // namespace

TEST_F(ExternalData, InsideTheFolderIsUsedInPlace) {
  const TensorValues w = load(external_tensor("w", {2, 2}, "w.bin", 64, 16));
  const auto* data = static_cast<const float*>(w.data);
  EXPECT_EQ(std::vector<float>(data, data + 4), (std::vector<float>{1, 2, 3, 4}));
  const TensorValues v = load(external_tensor("w", {4}, "./sub//v.bin", 0, 16));
  EXPECT_EQ(static_cast<const float*>(v.data)[3], 8);
  // an offset that is not a multiple of the value's size
  write_file((root_ / "model" / "w.bin").string(), "abc" + floats({9, 10}));
  const TensorValues odd = load(external_tensor("w", {2}, "w.bin", 3, 8));
  EXPECT_EQ(static_cast<const float*>(odd.data)[1], 10);
}

TEST_F(ExternalData, LocationsThatLeaveTheFolderAreRefused) {
  EXPECT_THAT(refusal("../secret.bin"), HasSubstr("'..'"));
  EXPECT_THAT(refusal((root_ / "secret.bin").string()), HasSubstr("absolute"));
  EXPECT_THAT(refusal("/etc/hostname"), HasSubstr("absolute"));
  EXPECT_THAT(refusal("a/../../secret.bin"), HasSubstr("'..'"));
  EXPECT_THAT(refusal("sub/../w.bin"), HasSubstr("'..'"));
  EXPECT_THAT(refusal(""), HasSubstr("empty"));
  EXPECT_THAT(refusal("sub\\v.bin"), HasSubstr("backslash"));
  EXPECT_THAT(refusal("..\\secret.bin"), HasSubstr("backslash"));
  EXPECT_THAT(refusal(std::string("w.bin\0x", 7)), HasSubstr("zero byte"));
  refusal(".");
  refusal("sub");
  refusal("sub/");
  refusal("w.bin/x");
  EXPECT_THAT(refusal("no.bin"), HasSubstr("missing"));
}

TEST_F(ExternalData, LinksAndFifosAreRefused) {
  const fs::path folder = root_ / "model";
  fs::create_symlink(root_ / "secret.bin", folder / "link.bin");
  fs::create_symlink("w.bin", folder / "inner.bin");
  fs::create_hard_link(root_ / "secret.bin", folder / "hard.bin");
  fs::create_directory_symlink(root_, folder / "up");
  ASSERT_EQ(::mkfifo((folder / "fifo").c_str(), 0600), 0);
  EXPECT_THAT(refusal("link.bin"), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal("inner.bin"), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal("up/secret.bin"), HasSubstr("symbolic link"));
  EXPECT_THAT(refusal("hard.bin"), HasSubstr("hard link"));
  EXPECT_THAT(refusal("fifo"), HasSubstr("plain file"));
}

TEST_F(ExternalData, OffsetAndLengthStayInsideTheFile) {
  EXPECT_THAT(refusal("w.bin", 65, 16), HasSubstr("80"));
  EXPECT_THAT(refusal("w.bin", INT64_MAX, 16), HasSubstr("80"));
  EXPECT_THAT(refusal("w.bin", -1, 16), HasSubstr("no number"));
  EXPECT_THAT(refusal("w.bin", 0, 8), HasSubstr("need 16"));
}

TEST_F(ExternalData, MissingModelsAndFifosAreNamed) {
  const auto open = [&](const std::string& path) {
    try {
      ModelFile file(path);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ErrorCode::bad_file);
      return std::string(e.what());
    }
    return std::string("opened");
  };
  EXPECT_THAT(open("no_such_file.onnx"), HasSubstr("no_such_file.onnx"));
  ASSERT_EQ(::mkfifo((root_ / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(open((root_ / "pipe").string()), HasSubstr("plain file"));
  EXPECT_THAT(open(root_.string()), HasSubstr("plain file"));
  write_file((root_ / "empty.onnx").string(), "");
  EXPECT_THAT(open((root_ / "empty.onnx").string()), HasSubstr("empty"));
}

TEST_F(ExternalData, ValuesInListsAndOfOtherTypes) {
  // f16 and bool live in int32_data
  const TensorValues half =
      load(number(1, 2) + number(2, 10) + bytes(8, "w") + number(5, 0x3c00) + number(5, 0xc000));
  EXPECT_EQ(half.dtype, hidet::f16);
  EXPECT_EQ(static_cast<const uint16_t*>(half.data)[1], 0xc000);
  const TensorValues yes = load(number(1, 2) + number(2, 9) + number(5, 7) + number(5, 0));
  EXPECT_EQ(to_int64s(yes), (std::vector<int64_t>{1, 0}));
  const TensorValues raw_bool =
      load(number(1, 2) + number(2, 9) + bytes(9, std::string("\x02\x00", 2)));
  EXPECT_EQ(to_int64s(raw_bool), (std::vector<int64_t>{1, 0}));
  const TensorValues scalar = load(number(2, 6) + number(5, -3));
  EXPECT_EQ(to_int64s(scalar), (std::vector<int64_t>{-3}));
  EXPECT_TRUE(scalar.dims.empty());
  EXPECT_EQ(load(number(1, 0) + number(2, 1)).count, 0);
}

TEST_F(ExternalData, WrongCountsAndTypesAreErrors) {
  const auto fails = [&](const std::string& bytes, ErrorCode code) {
    try {
      (void)load(bytes);
      ADD_FAILURE() << "accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), code) << e.what();
    }
  };
  fails(number(1, 3) + number(2, 1) + bytes(9, std::string(8, 'x')), ErrorCode::bad_file);
  fails(number(1, 3) + number(2, 1) + bytes(4, std::string(8, 'x')), ErrorCode::bad_file);
  fails(number(1, -3) + number(2, 1), ErrorCode::bad_file);
  fails(number(1, INT64_MAX) + number(1, INT64_MAX) + number(2, 1), ErrorCode::bad_file);
  fails(number(1, 1) + number(2, 0) + bytes(9, "x"), ErrorCode::bad_file);
  fails(number(1, 1) + number(2, 99) + bytes(9, "x"), ErrorCode::bad_file);
  fails(number(1, 1) + number(2, 8) + bytes(6, "x"), ErrorCode::unsupported);
}
