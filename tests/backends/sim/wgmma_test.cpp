// wgmma_test.cpp - products of a warp group in the simulator against loops, with PTX's layouts written apart (wgmma_cases.h).
#include <gmock/gmock.h>

#include "../../gpu/wgmma_cases.h"

namespace {

class WgmmaProduct : public testing::TestWithParam<WgmmaCase> {};

TEST_P(WgmmaProduct, EqualsTheLoops) {
  const WgmmaCase& c = GetParam();
  const WgmmaData data(c);
  const hidet::Tensor a = data.bytes_a(c), b = data.bytes_b(c), sums = data.registers(c);
  wgmma_module(c).simulate("launch", a, b, sums);
  EXPECT_EQ(WgmmaData::sums_of(c, sums), data.product(c)) << c.name();
}

INSTANTIATE_TEST_SUITE_P(All, WgmmaProduct, testing::ValuesIn(wgmma_cases()),
                         [](const auto& info) { return std::to_string(info.index); });

}  // namespace
