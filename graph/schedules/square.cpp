// square.cpp - a square of values in vectors becomes its columns, vectors are interleaved: by shuffles of two vectors.
#include "schedules/square.h"

#include <functional>

namespace hidet::graph {
using namespace ir;

namespace {
/// Lanes from(i) of a, or of b where i counts on: declared as a variable.
Expr shuffled(std::vector<Stmt>& body, const Expr& a, const Expr& b,
              const std::function<int(int)>& from) {
  const int n = a->type.lanes();
  std::vector<Expr> lanes;
  for (int i = 0; i < n; i++) {
    const int k = from(i);
    lanes.push_back(make_lane(k < n ? a : b, make_int(k % n, Type(i32))));
  }
  const VarRef v = make_var("s", a->type);
  body.push_back(make_stmt<DeclVar>({}, v, make_vector(std::move(lanes))));
  return v;
}

/// Vectors of a square, row by row; `run` takes it to its columns in place.
class Square {
 public:
  Square(std::vector<Expr> rows, std::vector<Stmt>& body) : v_(std::move(rows)), body_(body) {}

  /// In groups of 4 lanes first, then the groups themselves: shuffles that vector units have, log2(rows) a vector.
  std::vector<Expr> run() {
    const int n = static_cast<int>(v_.size());
    for (const int pair : {1, 2}) pairs(pair);
    for (int c = 0; c < 4; c++) {
      std::vector<Expr> column;
      for (int a = 0; a < n; a += 4) column.push_back(v_[index_of(a + c)]);
      column = groups(std::move(column));
      for (int a = 0; a < n; a += 4) v_[index_of(a + c)] = column[index_of(a / 4)];
    }
    return v_;
  }

 private:
  static size_t index_of(int i) { return static_cast<size_t>(i); }

  Expr shuffle(const Expr& a, const Expr& b, const std::function<int(int)>& from) {
    return shuffled(body_, a, b, from);
  }

  /// Of rows i and i + pair, in each group of 4: their first halves in turns of `pair` lanes, then their second halves. After
  /// pairs(1) and pairs(2), group g of vector 4 a + c is column 4 g + c of rows 4 a to 4 a + 3.
  void pairs(int pair) {
    const int n = static_cast<int>(v_.size());
    for (int i = 0; i < n; i += 2 * pair)
      for (int k = 0; k < pair; k++) {
        const Expr a = v_[index_of(i + k)], b = v_[index_of(i + k + pair)];
        const auto half = [&](int from) {
          return shuffle(a, b, [&](int lane) {
            const int in_group = lane % 4, turn = in_group / pair % 2,
                      at = in_group / (2 * pair) * pair + in_group % pair;
            return turn * n + lane / 4 * 4 + from + at;
          });
        };
        low_.push_back(half(0));
        high_.push_back(half(2));
      }
    for (int i = 0, at = 0; i < n; i += 2 * pair)
      for (int k = 0; k < pair; k++, at++) {
        v_[index_of(i + 2 * k)] = low_[index_of(at)];
        v_[index_of(i + 2 * k + 1)] = high_[index_of(at)];
      }
    low_.clear();
    high_.clear();
  }

  /// v[a] has groups g; the result's vector g has group g of every v[a].
  std::vector<Expr> groups(std::vector<Expr> v) {
    const int count = static_cast<int>(v.size());
    if (count == 1) return v;
    // Even groups of two vectors, then odd ones: each half is a square of its own.
    std::vector<Expr> even, odd;
    for (int a = 0; a < count; a += 2)
      for (const int first : {0, 1})
        (first ? odd : even).push_back(shuffle(v[index_of(a)], v[index_of(a + 1)], [&](int lane) {
          const int half = count / 2, group = lane / 4;
          return group / half * 4 * count + (2 * (group % half) + first) * 4 + lane % 4;
        }));
    if (count == 4) {
      const auto join = [&](const std::vector<Expr>& two, int first) {
        return shuffle(two[0], two[1], [&](int lane) {
          const int group = lane / 4;
          return group / 2 * 16 + (2 * (group % 2) + first) * 4 + lane % 4;
        });
      };
      return {join(even, 0), join(odd, 0), join(even, 1), join(odd, 1)};
    }
    return {even[0], odd[0]};
  }

  std::vector<Expr> v_, low_, high_;
  std::vector<Stmt>& body_;
};
}  // namespace

std::vector<Expr> turned_square(std::vector<Expr> rows, std::vector<Stmt>& body) {
  return Square(std::move(rows), body).run();
}

Expr interleaved(const std::vector<Expr>& v, int k, std::vector<Stmt>& body) {
  const int n = static_cast<int>(v.size()), lanes = v[0]->type.lanes();
  Expr out = v[0];
  for (int i = 1; i < n; i++)
    out = shuffled(body, out, v[static_cast<size_t>(i)], [&](int lane) {
      const int at = k * lanes + lane, source = at % n, from = at / n;
      // The first shuffle brings the lanes of v[0] to their places, too.
      if (source == i) return lanes + from;
      return i == 1 && source == 0 ? from : lane;
    });
  return out;
}

}  // namespace hidet::graph
