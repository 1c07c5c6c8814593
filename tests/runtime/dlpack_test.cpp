// DLPack: what goes out comes back on the same memory; strides, alignment, versions, who deletes what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/runtime/dlpack.h>
#include <hidet/runtime/error.h>

namespace hidet {
namespace {

using ::testing::HasSubstr;

// A producer as another library is one: it counts how often it is released.
struct Producer {
  std::vector<int64_t> shape, strides;
  int released = 0;
  dlpack::ManagedTensor managed{};

  Producer(void* data, std::vector<int64_t> sizes, std::vector<int64_t> steps,
           dlpack::DataType type = {dlpack::kFloat, 32, 1})
      : shape(std::move(sizes)), strides(std::move(steps)) {
    managed.dl_tensor = {data, {dlpack::kCPU, 0}, static_cast<int32_t>(shape.size()),
                         type, shape.data(),      strides.empty() ? nullptr : strides.data(),
                         0};
    managed.manager_ctx = this;
    managed.deleter = [](dlpack::ManagedTensor* m) {
      static_cast<Producer*>(m->manager_ctx)->released++;
    };
  }
  std::string refused() {
    try {
      from_dlpack(&managed);
    } catch (const Error& e) {
      EXPECT_EQ(released, 1);
      return e.what();
    }
    return "no error";
  }
};

TEST(DLPack, OutAndBack) {
  for (const DType dtype :
       {boolean, i8, i16, i32, i64, u8, u16, u32, u64, f16, bf16, f32, f64, f8e4m3, f8e5m2}) {
    Tensor t = full({2, 3}, 1, dtype);
    const void* data = t.data();
    dlpack::ManagedTensor* legacy = to_dlpack(t);
    dlpack::ManagedTensorVersioned* versioned = to_dlpack_versioned(t);
    EXPECT_EQ(versioned->version.major, 1u);
    EXPECT_EQ(legacy->dl_tensor.strides[0], 3);
    t = Tensor();
    const Tensor a = from_dlpack(legacy), b = from_dlpack(versioned);
    EXPECT_EQ(a.data(), data);
    EXPECT_EQ(b.data(), data);
    EXPECT_EQ(a.dtype(), dtype);
    EXPECT_EQ(b.shape(), (Shape{2, 3}));
    EXPECT_EQ(a.to_doubles(), std::vector<double>(6, 1));
  }
  EXPECT_THROW(to_dlpack(zeros({2}, i4)), Error);
  EXPECT_EQ(from_dlpack(to_dlpack(zeros({0, 3}))).describe(), "f32[0, 3] cpu");
  EXPECT_EQ(from_dlpack(to_dlpack(full({}, 2))).item<float>(), 2);
}

TEST(DLPack, ReleasedOnceWhenTheLastTensorGoes) {
  float values[7] = {0, 1, 2, 3, 4, 5, 6};
  Producer p(values, {2, 3}, {3, 1});
  p.managed.dl_tensor.byte_offset = 4;  // 4-byte aligned is enough for f32
  {
    const Tensor t = from_dlpack(&p.managed);
    const Tensor view = t.reshape({6});
    EXPECT_EQ(view.to_vector<float>(), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    EXPECT_EQ(p.released, 0);
  }
  EXPECT_EQ(p.released, 1);
}

TEST(DLPack, StridesThatDoNotMatter) {
  float values[6] = {};
  Producer plain(values, {2, 3}, {});
  EXPECT_EQ(from_dlpack(&plain.managed).shape(), (Shape{2, 3}));
  Producer one(values, {1, 6}, {999, 1});
  EXPECT_EQ(from_dlpack(&one.managed).num_elements(), 6);
  Producer none(nullptr, {0, 6}, {7, 7});
  EXPECT_EQ(from_dlpack(&none.managed).num_elements(), 0);
}

TEST(DLPack, WhatIsRefused) {
  alignas(8) float values[6] = {};
  Producer strided(values, {2, 3}, {1, 2});
  EXPECT_THAT(strided.refused(),
              ::testing::AllOf(HasSubstr("[3, 1]"), HasSubstr("[1, 2]"), HasSubstr("strided")));
  EXPECT_THAT(Producer(values, {2}, {}, {dlpack::kFloat, 32, 4}).refused(), HasSubstr("4 lanes"));
  EXPECT_THAT(Producer(values, {2}, {}, {5, 64, 1}).refused(), HasSubstr("code 5"));
  EXPECT_THAT(Producer(reinterpret_cast<char*>(values) + 2, {2}, {}).refused(),
              HasSubstr("multiple of 4"));
  EXPECT_THAT(Producer(nullptr, {2}, {}).refused(), HasSubstr("null"));
  EXPECT_THAT(Producer(values, {-2}, {}).refused(), HasSubstr("negative"));
  Producer elsewhere(values, {2}, {});
  elsewhere.managed.dl_tensor.device.device_type = 8;
  EXPECT_THAT(elsewhere.refused(), HasSubstr("type 8"));
  EXPECT_THROW(from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)), Error);

  dlpack::ManagedTensorVersioned* read_only = to_dlpack_versioned(zeros({2}));
  read_only->flags = dlpack::kReadOnly;
  EXPECT_THROW(from_dlpack(read_only), Error);
  dlpack::ManagedTensorVersioned* future = to_dlpack_versioned(zeros({2}));
  future->version.major = 2;
  EXPECT_THROW(from_dlpack(future), Error);
}

}  // namespace
}  // namespace hidet
