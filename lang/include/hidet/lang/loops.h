// loops.h - recorded loops: range, grid, parallel, unroll, vectorize, task mappings, loop_while.
// A loop object opens its scope at begin() and closes it at ++; where C++ `break` or `return` left the
// body, its destructor notices and the Function throws when the lambda ends.
// Threading: one thread at a time, the one that records.
#pragma once
#include <hidet/ir/mapping.h>
#include <hidet/lang/handle.h>

namespace hidet::lang {
namespace detail {

/// What a loop is made from.
struct LoopSpec {
  enum class Form : uint8_t { counted, mapped, conditional } form = Form::counted;
  ir::LoopKind how = ir::LoopKind::serial;
  std::vector<Value> begin, end, step;  ///< counted: one a dimension
  int64_t grain = 1;
  ir::TaskMapping mapping;
  Value worker;  ///< mapped
  Value cond;    ///< conditional
  SourceLoc loc;
};

/// One recorded loop, or nest of loops.
class Loop {
 public:
  explicit Loop(LoopSpec spec) : spec_(std::move(spec)) {}
  Loop(const Loop&) = delete;
  ~Loop();
  std::vector<Handle> open();
  void close();
  const LoopSpec& spec() const { return spec_; }

 private:
  LoopSpec spec_;
  ir::Recorder* recorder_ = nullptr;  ///< not null: the scope is open
  std::vector<ir::VarRef> vars_;
  int exceptions_ = 0;
};

LoopSpec counted(ir::LoopKind how, std::vector<Located> end, std::vector<Located> begin = {},
                 std::vector<Located> step = {}, int64_t grain = 1);

template <size_t... I>
std::array<Handle, sizeof...(I)> to_array(const std::vector<Handle>& v, std::index_sequence<I...>) {
  return {v[I]...};
}
/// What a loop's body sees: one handle, an array for structured bindings, or a vector (N = -1).
template <int N>
auto element(const std::vector<Handle>& vars) {
  if constexpr (N == 1) return vars.front();
  else if constexpr (N < 0) return vars;
  else return to_array(vars, std::make_index_sequence<N>());
}
}  // namespace detail

/// What `for (auto _ : loop_while(c))` binds; its destructor keeps compilers from calling it unused.
struct LoopMark {
  ~LoopMark() {}
};

/// The range of a recorded loop with N variables.
template <int N>
class Range {
 public:
  explicit Range(detail::LoopSpec spec) : loop_(std::move(spec)) {}
  struct End {};
  class Iterator {
   public:
    Iterator(detail::Loop& loop, std::vector<Handle> vars) : loop_(&loop), vars_(std::move(vars)) {}
    bool operator!=(End) const { return loop_ != nullptr; }
    void operator++() { std::exchange(loop_, nullptr)->close(); }
    auto operator*() const {
      if constexpr (N == 0) return LoopMark();
      else return detail::element<N>(vars_);
    }

   private:
    detail::Loop* loop_;
    std::vector<Handle> vars_;
  };
  Iterator begin() { return Iterator(loop_, loop_.open()); }
  End end() const { return {}; }

 private:
  detail::Loop loop_;
};

/// for (auto i : range(n)), range(begin, end), range(begin, end, step). `i` has the dtype of the end.
Range<1> range(const Located& end);
Range<1> range(const Located& begin, const Located& end);
Range<1> range(const Located& begin, const Located& end, const Located& step);

/// for (auto [i, j] : grid(m, n)): a nest, the last index fastest.
template <class... Rest>
Range<1 + sizeof...(Rest)> grid(const Located& first, const Rest&... rest) {
  return Range<1 + sizeof...(Rest)>(
      detail::counted(ir::LoopKind::serial, {first, Located(rest)...}));
}
/// The same with a number of dimensions known when recording; binds a vector of handles.
Range<-1> grid(const std::vector<Value>& extents, Here at = Here::current());

/// Independent iterations over the CPU's pool, at least `grain` of them a chunk.
Range<1> parallel(const Located& n, int64_t grain = 1);
/// Replaced by copies of the body; constant bounds.
Range<1> unroll(const Located& n);
Range<1> unroll(const Located& begin, const Located& end);
/// Replaced by vector code; constant bounds.
Range<1> vectorize(const Located& n);

/// for (auto _ : loop_while(c)): the condition is evaluated before each iteration.
Range<0> loop_while(const Located& cond);

/// A task mapping of rank N under construction: spatial(8, 4).repeat(2, 1).on(threadIdx.x).
template <int N>
class Mapping {
 public:
  explicit Mapping(ir::TaskMapping m) : mapping_(std::move(m)) {}
  template <std::convertible_to<int64_t>... Extents>
  Mapping spatial(Extents... extents) const {
    return add(true, {static_cast<int64_t>(extents)...});
  }
  template <std::convertible_to<int64_t>... Extents>
  Mapping repeat(Extents... extents) const {
    return add(false, {static_cast<int64_t>(extents)...});
  }
  /// The last factor's dimensions from slowest to fastest.
  Mapping ordered(std::vector<int> order) const {
    Mapping m = *this;
    m.mapping_.items.back().order = std::move(order);
    return m;
  }
  /// The mappings composed: other's tasks inside this one's.
  Mapping compose(const Mapping& other) const {
    Mapping m = *this;
    m.mapping_.items.insert(m.mapping_.items.end(), other.mapping_.items.begin(),
                            other.mapping_.items.end());
    return m;
  }
  int64_t workers() const { return mapping_.num_workers(); }
  const ir::TaskMapping& mapping() const { return mapping_; }
  /// The tasks of one worker, as a loop.
  Range<N> on(const Located& worker) const {
    detail::LoopSpec spec;
    spec.form = detail::LoopSpec::Form::mapped;
    spec.mapping = mapping_;
    spec.worker = worker.value;
    spec.loc = worker.loc;
    return Range<N>(std::move(spec));
  }

 private:
  Mapping add(bool is_spatial, std::vector<int64_t> shape) const {
    Mapping m = *this;
    m.mapping_.items.push_back({is_spatial, std::move(shape), {}});
    return m;
  }
  ir::TaskMapping mapping_;
};

template <std::convertible_to<int64_t>... Extents>
Mapping<sizeof...(Extents)> spatial(Extents... extents) {
  return Mapping<sizeof...(Extents)>(
      ir::TaskMapping{{{true, {static_cast<int64_t>(extents)...}, {}}}});
}
template <std::convertible_to<int64_t>... Extents>
Mapping<sizeof...(Extents)> repeat(Extents... extents) {
  return Mapping<sizeof...(Extents)>(
      ir::TaskMapping{{{false, {static_cast<int64_t>(extents)...}, {}}}});
}

/// Leaves or continues the innermost recorded loop.
void break_loop(Here at = Here::current());
void continue_loop(Here at = Here::current());

}  // namespace hidet::lang
