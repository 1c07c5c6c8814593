// Task mappings and layouts: every composition, against an enumeration that knows only the definitions.
#include <hidet/ir/passes.h>

#include <algorithm>

#include "both.h"
#include "refusal.h"

namespace hidet::lang {
namespace {
using testing::HasSubstr;

// --- task mappings

/// The tasks of `worker`, outermost factor first, in the order of the loops.
void enumerate(const std::vector<ir::TaskMapping::Item>& items, size_t at, int64_t worker,
               std::vector<int64_t> task, std::vector<std::vector<int64_t>>* out) {
  if (at == items.size()) {
    out->push_back(task);
    return;
  }
  const ir::TaskMapping::Item& item = items[at];
  int64_t size = 1, inner_workers = 1;
  for (const int64_t n : item.shape) size *= n;
  for (size_t i = at + 1; i < items.size(); i++)
    if (items[i].is_spatial)
      for (const int64_t n : items[i].shape) inner_workers *= n;
  std::vector<int> order = item.order;
  if (order.empty())
    for (size_t d = 0; d < item.shape.size(); d++) order.push_back(static_cast<int>(d));
  const int64_t mine = worker / inner_workers % size;
  for (int64_t k = item.is_spatial ? mine : 0; k < (item.is_spatial ? mine + 1 : size); k++) {
    std::vector<int64_t> next = task;
    int64_t rest = k;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      const auto dim = static_cast<size_t>(*d);
      next[dim] = task[dim] * item.shape[dim] + rest % item.shape[dim];
      rest /= item.shape[dim];
    }
    enumerate(items, at + 1, worker, std::move(next), out);
  }
}

void check_mapping(const Mapping<2>& m) {
  SCOPED_TRACE(m.mapping().text());
  std::vector<std::vector<int64_t>> all;
  std::vector<double> expected;
  for (int64_t w = 0; w < m.workers(); w++) {
    std::vector<std::vector<int64_t>> tasks;
    enumerate(m.mapping().items, 0, w, {0, 0}, &tasks);
    for (const auto& t : tasks) expected.push_back(static_cast<double>(t[0] * 1000 + t[1]));
    all.insert(all.end(), tasks.begin(), tasks.end());
  }
  // Each task is done once.
  const std::vector<int64_t> shape = m.mapping().task_shape();
  std::sort(all.begin(), all.end());
  ASSERT_EQ(static_cast<int64_t>(all.size()), shape[0] * shape[1]);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  const int64_t each = static_cast<int64_t>(all.size()) / m.workers();
  const Tensor out = zeros({static_cast<int64_t>(all.size())}, i32);
  const auto worker = [&](const Value& w, const Handle& to) {
    auto k = var("k", i32, cast(w * each, i32));
    for (auto [i, j] : m.on(w)) {
      to[k] = cast(i * 1000 + j, i32);
      k += 1;
    }
  };
  expect_cpu({}, out, expected, [&](Function&, const std::vector<Handle>&, const Handle& to) {
    for (auto w : range(static_cast<int>(m.workers()))) worker(w, to);
  });
  expect_simulated(
      {}, out, expected,
      [&](Function&, const std::vector<Handle>&, const Handle& to) { worker(threadIdx.x, to); }, 0,
      static_cast<int>(m.workers()));
}

TEST(Mappings, EveryComposition) {
  check_mapping(spatial(4, 8));
  check_mapping(repeat(3, 5));
  check_mapping(spatial(4, 2).repeat(2, 3));
  check_mapping(repeat(2, 3).spatial(4, 2));
  check_mapping(repeat(2, 1).spatial(2, 4).repeat(1, 3));
  check_mapping(spatial(2, 2).spatial(3, 1).spatial(1, 4));
  check_mapping(repeat(2, 2).repeat(1, 3).repeat(3, 1));
  check_mapping(spatial(2, 1).repeat(3, 2).spatial(1, 4).repeat(2, 1));
  check_mapping(spatial(4, 8).ordered({1, 0}));
  check_mapping(repeat(3, 5).ordered({1, 0}).spatial(2, 2));
  check_mapping(spatial(2, 3).repeat(2, 4).ordered({1, 0}).spatial(2, 2).ordered({1, 0}));
  check_mapping(spatial(2, 2).repeat(2, 2).compose(repeat(1, 3).spatial(3, 1)));
}

TEST(Mappings, OneAndThreeDimensions) {
  std::vector<double> expected;
  for (int i = 0; i < 12; i++) expected.push_back(i + 1);
  expect_both({}, zeros({12}), expected,
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                for (auto w : range(4))
                  for (auto i : repeat(3).spatial(4).on(w)) out[i] = cast(i, f32) + 1.f;
              });
  expected.clear();
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 4; k++) expected.push_back(i * 100 + j * 10 + k);
  expect_both({}, zeros({24}, i32), expected,
              [](Function&, const std::vector<Handle>&, const Handle& out) {
                for (auto w : range(6))
                  for (auto [i, j, k] : spatial(2, 3, 1).repeat(1, 1, 4).on(w))
                    out[(i * 3 + j) * 4 + k] = cast(i * 100 + j * 10 + k, i32);
              });
}

// --- layouts

using Offset = std::function<int(const std::vector<int>&)>;

/// t(i...) = a number of the indices; memory is where `offset` says, the rest stays -1.
void check_layout(const std::string& name, const std::vector<int>& shape, const Layout& layout,
                  int span, const Offset& offset) {
  SCOPED_TRACE(name);
  std::vector<double> expected(static_cast<size_t>(span), -1);
  std::vector<int> index(shape.size(), 0);
  int count = 1;
  for (const int n : shape) count *= n;
  for (int k = 0; k < count; k++) {
    int rest = k, number = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    for (const int i : index) number = number * 10 + i;
    ASSERT_LT(offset(index), span);
    ASSERT_EQ(expected[static_cast<size_t>(offset(index))], -1) << "two elements at one place";
    expected[static_cast<size_t>(offset(index))] = number;
  }
  const std::vector<Value> extents(shape.begin(), shape.end());
  const auto fill = [&](const Handle& t) {
    for (const auto& i : grid(extents)) {
      Value number = i[0];
      for (size_t d = 1; d < i.size(); d++) number = number * 10 + i[d];
      if (i.size() == 2) t(i[0], i[1]) = cast(number, i32);
      else t(i[0], i[1], i[2]) = cast(number, i32);
    }
  };
  const Tensor out = full({span}, -1, i32);
  expect_both({}, out, expected, [&](Function&, const std::vector<Handle>&, const Handle& p) {
    fill(global("t", p, extents, layout));
  });
  // The same in shared and in register memory: element by element through the layout, and back.
  std::vector<double> values;
  for (int k = 0; k < count; k++) {
    int rest = k, number = 0;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) index[d] = rest % shape[d];
    for (const int i : index) number = number * 10 + i;
    values.push_back(number);
  }
  for (const bool is_shared : {true, false})
    expect_simulated({}, zeros({count}, i32), values,
                     [&](Function&, const std::vector<Handle>&, const Handle& p) {
                       auto t = is_shared ? shared("t", i32, extents, layout)
                                          : registers("t", i32, extents, layout);
                       fill(t);
                       auto k = var("k", i32, 0);
                       for (const auto& i : grid(extents)) {
                         if (i.size() == 2) p[k] = t(i[0], i[1]);
                         else p[k] = t(i[0], i[1], i[2]);
                         k += 1;
                       }
                     });
}

TEST(Layouts, EveryKind) {
  using I = const std::vector<int>&;
  check_layout("row major", {3, 5}, row_major(), 15, [](I i) { return i[0] * 5 + i[1]; });
  check_layout("column major", {3, 5}, col_major(), 15, [](I i) { return i[1] * 3 + i[0]; });
  check_layout("strided", {3, 4}, strided({7, 2}), 21, [](I i) { return i[0] * 7 + i[1] * 2; });
  check_layout("swizzled", {8, 8}, swizzle(3, 0, 3), 64,
               [](I i) { return i[0] * 8 + (i[1] ^ i[0]); });
  check_layout("swizzled pairs", {4, 8}, swizzle(2, 1, 2), 32, [](I i) {
    const int o = i[0] * 8 + i[1];
    return o ^ (o >> 3 & 3) << 1;
  });
  check_layout("composed", {4, 6}, composition(row_major(), col_major(), {2, 3}), 24,
               [](I i) { return (i[0] / 2 * 2 + i[1] / 3) * 6 + i[1] % 3 * 2 + i[0] % 2; });
  check_layout("composed, column major outside", {4, 6},
               composition(col_major(), row_major(), {2, 2}), 24,
               [](I i) { return (i[1] / 2 * 2 + i[0] / 2) * 4 + i[0] % 2 * 2 + i[1] % 2; });
  check_layout("three dimensions", {2, 3, 4}, col_major(), 24,
               [](I i) { return i[0] + 2 * (i[1] + 3 * i[2]); });
}

TEST(Layouts, PermuteReshapeConcat) {
  using I = const std::vector<int>&;
  check_layout("permuted", {2, 3, 4}, permute({2, 0, 1}), 24,
               [](I i) { return (i[2] * 2 + i[0]) * 3 + i[1]; });
  check_layout("permuted column major", {2, 3, 4}, permute({1, 0, 2}, col_major()), 24,
               [](I i) { return i[1] + 3 * (i[0] + 2 * i[2]); });
  check_layout("reshaped", {4, 6}, reshape({8, 3}, col_major()), 24, [](I i) {
    const int k = i[0] * 6 + i[1];
    return k % 3 * 8 + k / 3;
  });
  check_layout("concatenated", {3, 4, 2}, concat(col_major(), 2, row_major()), 24,
               [](I i) { return (i[1] * 3 + i[0]) * 2 + i[2]; });
  check_layout("concatenated, inner column major", {2, 3, 4}, concat(row_major(), 1, col_major()),
               24, [](I i) { return i[0] * 12 + i[2] * 3 + i[1]; });
  check_layout("nested", {8, 8},
               swizzle(2, 1, 2, composition(permute({1, 0}), row_major(), {4, 4})), 64, [](I i) {
                 const int o = (i[1] / 4 * 2 + i[0] / 4) * 16 + i[0] % 4 * 4 + i[1] % 4;
                 return o ^ (o >> 3 & 3) << 1;
               });
}

TEST(Layouts, Refusals) {
  const auto with = [](auto layout) {
    return body_refusal([&](Function&, Handle x, Handle) {
      auto t = global("t", x, {2, 3}, layout());
      t(0, 0) = 1.f;
      auto copy = registers("copy", f32, {2, 3}, layout());
      copy(0, 0) = t(0, 0);
      (void)layout().offset({t.shape()[0].expr(), t.shape()[1].expr()},
                            {Value(0).expr(), Value(0).expr()});
    });
  };
  EXPECT_THAT(with([] { return permute({0, 0}); }),
              HasSubstr("permute() takes each dimension once"));
  EXPECT_THAT(with([] { return permute({0, 1, 2}); }), HasSubstr("permute() of 3 dimensions"));
  EXPECT_THAT(with([] { return reshape({4, 2}); }), HasSubstr("reshape() to 8 elements"));
  EXPECT_THAT(with([] { return reshape({0, 6}); }), HasSubstr("reshape() takes extents above 0"));
  EXPECT_THAT(with([] { return concat(row_major(), 2, row_major()); }),
              HasSubstr("concat() after 2 dimensions"));
  EXPECT_THAT(with([] { return concat(row_major(), 0, row_major()); }),
              HasSubstr("concat() takes a number of dimensions above 0"));
}

TEST(Layouts, TextAndBack) {
  for (const Layout& layout : {permute({1, 0}, strided({1, 9})), reshape({3, 2}, col_major()),
                               concat(col_major(), 1, swizzle(1, 0, 1)),
                               composition(permute({1, 0}), row_major(), {2, 3})}) {
    ScriptModule m("layouts");
    m.public_func("launch", [&](Function& f) {
      auto t = f.arg("t", tensor(f32, {2, 3}, layout));
      t(1, 2) = 1.f;
    });
    const ir::Module module = m.module();
    EXPECT_TRUE(ir::equal(ir::parse(ir::print(module)), module)) << ir::print(module);
  }
}

}  // namespace
}  // namespace hidet::lang
