// extern.cpp - calls of functions of the host program, by the calling convention alone: integers and pointers in one row of
// registers, floats in another, each filled from the left (x86-64 of System V, AArch64). More arguments than registers, vectors and
// results that are pointers are refused.
#include <algorithm>
#include <cstring>

#include "sim/compiler.h"
#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kKnown = true;
#else
constexpr bool kKnown = false;
#endif
constexpr size_t kIntegers = 6, kFloats = 8;

/// bf16 travels as the integer that holds it.
bool is_float(const ir::Type& t) {
  return t.is_scalar() && t.dtype().is_float() && t.dtype() != bf16;
}
bool is_memory(const ir::Type& t) { return t.is_pointer() || t.is_tensor(); }

struct Registers {
  int64_t i[kIntegers] = {};
  double d[kFloats] = {};
};
template <class R>
R call(void* address, const Registers& r) {
  using F = R (*)(int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, double, double, double,
                  double, double, double, double, double);
  return reinterpret_cast<F>(address)(r.i[0], r.i[1], r.i[2], r.i[3], r.i[4], r.i[5], r.d[0],
                                      r.d[1], r.d[2], r.d[3], r.d[4], r.d[5], r.d[6], r.d[7]);
}

/// Why no call of `f` can be made; "" where it can.
std::string problem(const ir::ExternFunc& f) {
  size_t integers = 0, floats = 0;
  for (const ir::Type& t : f.params) {
    if (!t.is_scalar() && !is_memory(t)) return "takes a " + t.text();
    (is_float(t) ? floats : integers)++;
  }
  if (integers > kIntegers || floats > kFloats)
    return hidet::detail::concat("takes more than ", kIntegers,
                                 " integers and pointers or more than ", kFloats, " floats");
  if (!f.returns.is_void() && !f.returns.is_scalar()) return "returns a " + f.returns.text();
  if (!f.address) return "has no address in this module";
  return kKnown ? "" : "follows a calling convention that is not known";
}

}  // namespace

void Compiler::call_extern(const Call& c, int32_t dst) {
  const std::vector<ir::ExternFunc>& all = env_.module.externs;
  const auto f = std::find_if(all.begin(), all.end(),
                              [&](const ir::ExternFunc& e) { return e.name == c.callee; });
  HIDET_CHECK(f != all.end(), "there is no function '", c.callee, "'");
  if (const std::string why = problem(*f); !why.empty())
    refuse("the extern function '" + c.callee + "', since it " + why);
  ExternCall made{&*f, {}};
  for (const Expr& e : c.args) {
    made.args.push_back(alloc());
    into(e, made.args.back());
  }
  out_.extern_calls.push_back(std::move(made));
  emit({Op::call_extern,
        0,
        {},
        {},
        1,
        dst,
        0,
        0,
        static_cast<int32_t>(out_.extern_calls.size() - 1)});
}

void Worker::call_extern(const Block& block, const Warp& w, const Inst& in, int32_t at) {
  const ExternCall& c = block.program->extern_calls[static_cast<size_t>(in.c)];
  Registers r;
  size_t integers = 0, floats = 0;
  for (size_t k = 0; k < c.args.size(); k++) {
    const ir::Type& t = c.function->params[k];
    const Cell v = *w.row(c.args[k]);
    if (is_memory(t)) {
      uint8_t* p = nullptr;
      if (v.i) {
        const Place place = resolve(block, w, 0, v.i, 0, 1, at, "a pointer");
        p = place.data;
        // What it writes is not seen: all of it counts as written.
        if (place.space.written)
          std::memset(place.space.written, 1, static_cast<size_t>(place.space.size));
      }
      std::memcpy(&r.i[integers++], &p, sizeof p);
    } else if (is_float(t)) {
      write_cell(reinterpret_cast<uint8_t*>(&r.d[floats++]), t.dtype().code(), v);
    } else if (t.dtype() == bf16) {
      write_cell(reinterpret_cast<uint8_t*>(&r.i[integers++]), t.dtype().code(), v);
    } else {
      r.i[integers++] = v.i;
    }
  }
  const ir::Type& returns = c.function->returns;
  uint8_t bytes[8] = {};
  if (is_float(returns)) {
    const double d = call<double>(c.function->address, r);
    std::memcpy(bytes, &d, sizeof d);
  } else {
    const int64_t i = call<int64_t>(c.function->address, r);
    std::memcpy(bytes, &i, sizeof i);
  }
  if (!returns.is_void()) *w.row(in.dst) = read_cell(bytes, returns.dtype().code());
}

}  // namespace hidet::backends::sim
