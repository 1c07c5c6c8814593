// winograd.cpp - convolution 3 x 3, stride 1, in NHWC with a packed weight, by F(m x m, 3 x 3) (docs/cpu_kernels.md, 5a). An image is cut
// into tiles of m x m outputs. Their (m + 2)^2 inputs are transformed, and so are the weights; for each of the (m + 2)^2 products the
// tiles are the rows of a small matrix, which the micro kernel multiplies; the inverse transform makes m x m outputs of the
// sums. The weights are transformed in each run: that costs less than reading transformed ones from memory would, and the file
// stays as small as that of the direct kernel. A tile with an infinity or a NaN is computed again directly, so that these appear where
// they do in a direct convolution.
#include "schedules/winograd.h"

#include <hidet/ir/primitives.h>

#include "schedules/winograd_tile.h"

namespace hidet::graph {
using namespace ir;

namespace {

/// Images whose inputs are transformed at once, where tasks are column blocks.
constexpr int64_t kImages = 8;
/// Scratch memory: transformed inputs, sums, transformed weights.
constexpr int kInputs = 0, kSums = 1, kWeights = 2;

class Winograd {
 public:
  Winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m)
      : plan_(fused, target, m), at_(plan_.sizes()) {
    int64_t ow = 0;
    if (is_const_int(at_.ow.expr(), &ow)) across_ = number((ow + m - 1) / m);
  }

  Module run() {
    Module m;
    m.name = plan_.fused.name;
    const Stmt body = !plan_.fixed       ? tasks_of_any_size(m)
                      : plan_.by_columns ? column_tasks()
                                         : strip_tasks();  // first: it notes the tiles
    for (Function& f : winograd_functions(plan_, heights_)) m.functions.push_back(std::move(f));
    m.functions.push_back(plan_.fused.launch(body));
    return m;
  }

 private:
  /// One tile's input transform; `image` is a pointer.
  Stmt transform(const Value& image, const Value& tile, const Value& to, const Value& step) const {
    std::vector<Stmt> body;
    const int64_t e = plan_.map.extent();
    const Value row = declare(body, "row",
                              tile / across_ * number(plan_.map.m) - number(plan_.window.top)),
                column = declare(body, "column",
                                 tile % across_ * number(plan_.map.m) - number(plan_.window.left));
    const std::vector<Value> args = with_sizes(plan_, {image, to, step, row, column}, at_);
    const Stmt inner = call(input_name(false), args);
    if (!plan_.edges) {
      body.push_back(inner);
    } else {
      const Value inside = number(0) <= row && row <= at_.height - number(e) &&
                           number(0) <= column && column <= at_.width - number(e);
      body.push_back(make_stmt<If>({}, inside.expr(), inner, call(input_name(true), args)));
    }
    return make_seq(std::move(body));
  }

  /// All products of `count` tiles with one column block; row parts of known heights. Meanwhile the weights at `next`, of one panel
  /// after the other, come to the cache.
  Stmt products(const Value& inputs, const Value& weights, const Value& sums, int64_t count,
                const Value& block, const Value& next = Value()) {
    return loop("product", index(plan_.map.products()), LoopKind::serial, [&](const Value& k) {
      std::vector<Stmt> body;
      const Value a = declare(body, "a", inputs + k * number(count * plan_.distance)),
                  b = declare(body, "b", weights + k * number(plan_.product_size)),
                  to = declare(body, "to", sums + k * number(count * plan_.shape.columns()));
      int64_t at = 0;
      for (int64_t rows : split_evenly(count, plan_.shape.rows)) {
        heights_.insert(rows);
        const std::vector<Value> args{a + number(at * plan_.distance), b,
                                      to + number(at * plan_.shape.columns())};
        if (next.expr()) body.push_back(fetched(next, k, at, at + rows, count));
        body.push_back(choose_columns(plan_.window.n, plan_.shape, block, [&](int64_t columns) {
          return call(products_name(rows, columns), args);
        }));
        at += rows;
      }
      return make_seq(std::move(body));
    });
  }
  /// The share of product k, rows [from, to) of `count`, of the weights at `next`: plan_.depth lines for each tap of each panel.
  Stmt fetched(const Value& next, const Value& k, int64_t from, int64_t to, int64_t count) const {
    const int64_t share = (9 * plan_.depth + plan_.map.products() - 1) / plan_.map.products(),
                  begin = share * from / count, end = share * to / count;
    return loop_from("line", index(begin), index(end), 1, [&](const Value& i) {
      std::vector<Stmt> body;
      const Value line = declare(body, "at", k * number(share) + i);
      const Value at = declare(body, "ahead",
                               next + (line / number(plan_.depth) * number(plan_.window.c) +
                                       line % number(plan_.depth)) *
                                          number(kPanelColumns));
      for (int64_t p = 0; p < plan_.shape.panels; p++)
        body.push_back(make_stmt<Evaluate>(
            {}, make_prim("prefetch",
                          {(at + number(p * 9 * plan_.window.c * kPanelColumns)).expr()}, Type())));
      return make_seq(std::move(body));
    });
  }
  /// The outputs of `count` tiles from `first` on.
  Stmt outputs(const Value& sums, const Value& results, const Value& image, const Value& first,
               const Value& count, const Value& block) const {
    return loop("t", count.expr(), LoopKind::serial, [&](const Value& t) {
      std::vector<Stmt> body;
      const Value tile = declare(body, "tile", first + t);
      std::vector<Value> args = parameter_values(plan_.fused);
      const std::vector<Value> more{sums + t * number(plan_.shape.columns()),
                                    count * number(plan_.shape.columns()),
                                    results,
                                    image,
                                    tile / across_ * number(plan_.map.m),
                                    tile % across_ * number(plan_.map.m),
                                    Value(make_cast(block.expr(), Type(u32)))};
      args.insert(args.end(), more.begin(), more.end());
      args = with_sizes(plan_, args, at_);
      body.push_back(choose_columns(plan_.window.n, plan_.shape, block, [&](int64_t columns) {
        return call(output_name(columns), args);
      }));
      return make_seq(std::move(body));
    });
  }
  int64_t result_size() const { return plan_.map.m * plan_.map.m * plan_.shape.columns(); }

  Value image_count() const {
    return Value(make_cast(shape_of(plan_.fused.anchor.inputs[0])[0], Type(i64)));
  }

  /// Many tiles: all weights are transformed, then each task takes a strip of tiles through all steps, which stays in the L2 cache.
  Stmt strip_tasks() {
    int64_t strips = (plan_.tiles + plan_.strip - 1) / plan_.strip;
    strips += strips % 2 && strips > 1;  // for two threads
    const int64_t size = plan_.tiles / strips, more = plan_.tiles % strips,
                  most = size + (more > 0);
    return strips_of(number(strips), most, number(size), number(more), [&](const Strip& t) {
      const auto steps = [&](int64_t count) {
        return strip_steps(t, number(count), [&](const Value& panels, const Value& block) {
          return products(t.inputs, panels, t.sums, count, block);
        });
      };
      if (!more) return steps(size);
      return Stmt(make_stmt<If>({}, (t.strip < number(more)).expr(), steps(most),
                                size ? steps(size) : Stmt()));
    });
  }
  /// The same with strips counted at run time, where that is predicted to win; the direct kernel elsewhere, whose functions go to `m`.
  Stmt tasks_of_any_size(Module& m) {
    Module direct = conv_of_any_size(plan_.fused, plan_.target);
    const Stmt otherwise = direct.functions.back().body;
    m.functions.assign(direct.functions.begin(), direct.functions.end() - 1);
    std::vector<Stmt> body, strips;
    for (auto [value, name] : {std::pair{&at_.height, "height"},
                               {&at_.width, "width"},
                               {&at_.oh, "oh"},
                               {&at_.ow, "ow"}})
      *value = declare(body, name, *value);
    const auto tiles_along = [&](const Value& n) {
      return (n + number(plan_.map.m - 1)) / number(plan_.map.m);
    };
    across_ = declare(body, "across", tiles_along(at_.ow));
    const Value tiles = declare(body, "tiles", tiles_along(at_.oh) * across_);
    const WinogradCosts costs(plan_.window.c, plan_.window.n);
    const Value wins = number(costs.weights(plan_.map)) + tiles * number(costs.tile(plan_.map)) <
                       at_.oh * at_.ow * number(costs.pixel(false));
    const Value fewest =
        declare(strips, "fewest", (tiles + number(plan_.strip - 1)) / number(plan_.strip));
    const Value count = declare(strips, "strips",
                                fewest + select(fewest > number(1), fewest % number(2), number(0)));
    const Value size = declare(strips, "size", tiles / count),
                more = declare(strips, "more", tiles % count);
    for (int64_t rows = 1; rows <= plan_.strip; rows++) heights_.insert(rows);
    strips.push_back(strips_of(count, plan_.strip, size, more, [&](const Strip& t) {
      std::vector<Stmt> in;
      const Value here = declare(in, "count", size + select(t.strip < more, number(1), number(0)));
      in.push_back(strip_steps(t, here, [&](const Value& panels, const Value& block) {
        return products_of_any_count(t.inputs, panels, t.sums, here, block);
      }));
      return make_seq(std::move(in));
    }));
    body.push_back(make_stmt<If>({}, wins.expr(), make_seq(std::move(strips)), otherwise));
    return make_seq(std::move(body));
  }
  Stmt products_of_any_count(const Value& inputs, const Value& weights, const Value& sums,
                             const Value& count, const Value& block) const {
    return loop("product", index(plan_.map.products()), LoopKind::serial, [&](const Value& k) {
      std::vector<Stmt> body;
      const Value a = declare(body, "a", inputs + k * (count * number(plan_.distance))),
                  b = declare(body, "b", weights + k * number(plan_.product_size)),
                  to = declare(body, "to", sums + k * (count * number(plan_.shape.columns())));
      body.push_back(choose_columns(plan_.window.n, plan_.shape, block, [&](int64_t columns) {
        return choose_rows({heights_.rbegin(), heights_.rend()}, count, [&](int64_t rows) {
          return call(products_name(rows, columns), {a, b, to});
        });
      }));
      return make_seq(std::move(body));
    });
  }

  /// One strip of tiles: its image (number and pointer), its number, its first tile, and scratch memory.
  struct Strip {
    Value image, source, strip, first, weights, inputs, sums;
  };
  /// All weights transformed, then `one` for each strip; the first `more` of them have size + 1 tiles, `most` at most.
  Stmt strips_of(const Value& strips, int64_t most, const Value& size, const Value& more,
                 const std::function<Stmt(const Strip&)>& one) const {
    std::vector<Stmt> body;
    const Value x = declare(body, "x", pointer_to(plan_.fused.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(plan_.fused.anchor.inputs[1]));
    Strip t;
    t.weights = declare(
        body, "weights",
        scratch_floats(kWeights, number(plan_.blocks * plan_.shape.panels * plan_.panel_size)));
    const Value images = declare(body, "images", image_count());
    body.push_back(loop("panel", index(plan_.panels), LoopKind::parallel, [&](const Value& p) {
      return call("weight", {b + p * number(9 * plan_.window.c * kPanelColumns),
                             t.weights + p * number(plan_.panel_size)});
    }));
    body.push_back(
        loop("task", (images * strips).expr(), LoopKind::parallel, [&](const Value& task) {
          std::vector<Stmt> in;
          t.image = declare(in, "image", task / strips);
          t.strip = declare(in, "strip", task % strips);
          t.first = declare(in, "first", t.strip * size + least(t.strip, more));
          t.source = declare(in, "source", x + t.image * image_size());
          t.inputs = declare(
              in, "inputs",
              scratch_floats(kInputs, number(plan_.map.products() * most * plan_.distance)));
          t.sums = declare(
              in, "sums",
              scratch_floats(kSums, number(plan_.map.products() * most * plan_.shape.columns() +
                                           result_size())));
          in.push_back(one(t));
          return make_seq(std::move(in));
        }));
    return make_seq(std::move(body));
  }
  Value image_size() const { return at_.height * at_.width * number(plan_.window.c); }

  using Multiply = std::function<Stmt(const Value& panels, const Value& block)>;
  Stmt strip_steps(const Strip& t, const Value& count, const Multiply& multiply) const {
    const Value results = t.sums + count * number(plan_.map.products() * plan_.shape.columns());
    return make_seq(
        {loop("t", count.expr(), LoopKind::serial,
              [&](const Value& i) {
                return transform(t.source, t.first + i, t.inputs + i * number(plan_.distance),
                                 count * number(plan_.distance));
              }),
         loop("block", index(plan_.blocks), LoopKind::serial, [&](const Value& block) {
           const Value panels = t.weights + block * number(plan_.shape.panels * plan_.panel_size);
           return make_seq(
               {multiply(panels, block), outputs(t.sums, results, t.image, t.first, count, block)});
         })});
  }

  /// Few tiles, many channels: the inputs of some images are transformed, then each task takes a column block, whose weights it
  /// transforms in its L2 cache.
  Stmt column_tasks() {
    std::vector<Stmt> body;
    const Value x = declare(body, "x", pointer_to(plan_.fused.anchor.inputs[0])),
                b = declare(body, "b", pointer_to(plan_.fused.anchor.inputs[1])),
                images = declare(body, "images", image_count());
    const int64_t image_inputs = plan_.map.products() * plan_.tiles * plan_.distance;
    const Value inputs =
        declare(body, "inputs",
                scratch_floats(kInputs, least(images, number(kImages)) * number(image_inputs)));
    body.push_back(loop_from("first", index(0), images.expr(), kImages, [&](const Value& first) {
      std::vector<Stmt> in;
      const Value count = declare(in, "count", least(images - first, number(kImages)));
      in.push_back(
          loop("t", (count * number(plan_.tiles)).expr(), LoopKind::parallel, [&](const Value& t) {
            const Value image = t / number(plan_.tiles), tile = t % number(plan_.tiles);
            return transform(
                x + (first + image) * (at_.height * at_.width * number(plan_.window.c)), tile,
                inputs + (image * number(image_inputs) + tile * number(plan_.distance)),
                number(plan_.tiles * plan_.distance));
          }));
      in.push_back(loop("block", index(plan_.blocks), LoopKind::parallel, [&](const Value& block) {
        return column_block(b, inputs, first, count, block);
      }));
      return make_seq(std::move(in));
    }));
    return make_seq(std::move(body));
  }
  Stmt column_block(const Value& b, const Value& inputs, const Value& first, const Value& count,
                    const Value& block) {
    std::vector<Stmt> in;
    const int64_t image_inputs = plan_.map.products() * plan_.tiles * plan_.distance,
                  image_sums = plan_.map.products() * plan_.tiles * plan_.shape.columns();
    const Value weights = declare(
                    in, "weights",
                    scratch_floats(kWeights, number(plan_.shape.panels * plan_.panel_size))),
                sums = declare(
                    in, "sums",
                    scratch_floats(kSums, count * number(image_sums) + number(result_size())));
    if (plan_.depth < plan_.window.c)
      in.push_back(loop_from("zero", index(0), (count * number(image_sums)).expr(),
                             plan_.shape.columns(), [&](const Value& i) {
                               return zero_values(sums + i, plan_.shape.columns(),
                                                  plan_.shape.lanes);
                             }));
    const auto each_image = [&](const std::function<Stmt(const Value&)>& one) {
      return loop("image", count.expr(), LoopKind::serial, one);
    };
    in.push_back(
        loop_from("depth", index(0), index(plan_.window.c), plan_.depth, [&](const Value& depth) {
          std::vector<Stmt> part;
          const Value panel = declare(part, "panel", block * number(plan_.shape.panels));
          part.push_back(
              loop("p", least(number(plan_.shape.panels), number(plan_.panels) - panel).expr(),
                   LoopKind::serial, [&](const Value& p) {
                     return call("weight", {b + ((panel + p) * number(9 * plan_.window.c) + depth) *
                                                    number(kPanelColumns),
                                            weights + p * number(plan_.panel_size)});
                   }));
          // The next channels of this block, or the first of the next block.
          const Value more = depth + number(plan_.depth) < number(plan_.window.c);
          const Value next =
              declare(part, "next",
                      b + ((panel + select(more, number(0), number(plan_.shape.panels))) *
                               number(9 * plan_.window.c) +
                           select(more, depth + number(plan_.depth), number(0))) *
                              number(kPanelColumns));
          part.push_back(each_image([&](const Value& image) {
            return products(inputs + (image * number(image_inputs) + depth), weights,
                            sums + image * number(image_sums), plan_.tiles, block, next);
          }));
          return make_seq(std::move(part));
        }));
    in.push_back(each_image([&](const Value& image) {
      return outputs(sums + image * number(image_sums), sums + count * number(image_sums),
                     first + image, number(0), number(plan_.tiles), block);
    }));
    return make_seq(std::move(in));
  }

  const WinogradPlan plan_;
  WinogradSizes at_;  ///< as the launch function sees them
  Value across_;      ///< tiles of a row
  std::set<int64_t> heights_;
};

}  // namespace

Module winograd(const FusedTask& fused, const CpuTargetInfo& target, int64_t m) {
  return Winograd(fused, target, m).run();
}

}  // namespace hidet::graph
