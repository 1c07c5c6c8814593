// prelude_memory.cpp - helpers of the emitted C that touch memory: atomics, vectors under a mask.
#include "prelude.h"

#include <hidet/runtime/error.h>

namespace hidet::codegen {
using namespace ir;

namespace {
/// What an atomic stores, from `old` and `v`.
std::string updated(const std::string& op, DType t) {
  const std::string nan = t.is_float() ? "old != old ? old : v != v ? v : " : "";
  if (op == "add") return "old + v";
  if (op == "max") return nan + "old > v ? old : v";
  if (op == "min") return nan + "old < v ? old : v";
  if (op == "inc") return "old >= v ? 0 : old + 1";
  if (op == "dec") return "old == 0 || old > v ? v : old - 1";
  HIDET_CHECK(op == "exch", "no atomic '", op, "'");
  return "v";
}
}  // namespace

std::string Prelude::atomic(const std::string& primitive, DType t) {
  const std::string op = primitive.substr(sizeof "atomic_" - 1);
  const std::string name = "hidet_" + primitive + "_" + t.name(), T = t.c_name();
  if (!once(name)) return name;
  const std::string word = t.bits() == 64 ? "uint64_t" : "uint32_t";
  const std::string head = "static inline " + T + " " + name + "(" + T + "* p, ";
  const std::string words = "typedef " + word + " W __attribute__((may_alias)); W* w = (W*)p; ";
  const bool counts = t.is_integer() && (op == "add" || op == "and" || op == "or" || op == "xor");
  if (counts) {
    add(head + T + " v) { return __atomic_fetch_" + op + "(p, v, 5); }\n");
  } else if (op == "cas") {
    add(head + T + " expected, " + T + " v) { " + words +
        "W seen, next; __builtin_memcpy(&seen, &expected, sizeof seen); __builtin_memcpy(&next, "
        "&v, "
        "sizeof next); __atomic_compare_exchange_n(w, &seen, next, 0, 5, 5); " +
        T + " old; __builtin_memcpy(&old, &seen, sizeof old); return old; }\n");
  } else {
    add(head + T + " v) { " + words + "W seen = __atomic_load_n(w, 5), next; " + T +
        " old, r; do { __builtin_memcpy(&old, &seen, sizeof old); r = " + updated(op, t) +
        "; __builtin_memcpy(&next, &r, sizeof next); } while (!__atomic_compare_exchange_n(w, "
        "&seen, next, 0, 5, 5)); return old; }\n");
  }
  return name;
}

std::string Prelude::store_cs(const Type& t) {
  const std::string V = type(t), name = "hidet_store_cs_" + V;
  const std::string anywhere = t.is_vector() ? unaligned(t) : V;
  if (!once(name)) return name;
  add("static inline void " + name + "(" + t.dtype().c_name() + "* p, " + V + " x) {\n" +
      "#if defined(__clang__)\n  if (((uint64_t)p & (sizeof x - 1)) == 0) { " +
      "__builtin_nontemporal_store(x, (" + V + "*)p); return; }\n#endif\n  *(" + anywhere +
      "*)p = x;\n}\n");
  return name;
}

std::string Prelude::store_fence() {
  if (once("hidet_store_fence"))
    add("static inline void hidet_store_fence(const char* unused) {\n"
        "#if defined(__x86_64__)\n  __builtin_ia32_sfence();\n#else\n"
        "  __atomic_thread_fence(5);\n#endif\n}\n");
  return "hidet_store_fence";
}

std::string Prelude::masked(const std::string& primitive, const Type& t) {
  const std::string V = type(t), M = mask(t), T = t.dtype().c_name();
  const std::string name = "hidet_" + primitive + "_" + V;
  if (!once(name)) return name;
  const std::string n = std::to_string(t.lanes());
  const bool load = primitive == "masked_load";
  // One instruction where the CPU has it and the compiler says it so.
  const bool whole = t.lanes() == 16 && t.dtype().bits() == 32;
  const std::string fast =
      "#if defined(__clang__) && defined(__AVX512BW__) && defined(__AVX512VL__)\n"
      "  typedef float F __attribute__((vector_size(64))); typedef char B "
      "__attribute__((vector_size(16)));\n";
  const std::string bits = "__builtin_ia32_cvtb2mask128((B)m)";
  if (load)
    add("static inline " + V + " " + name + "(const " + T + "* p, " + M + " m) {\n" +
        (whole ? fast + "  return (" + V + ")__builtin_ia32_loadups512_mask((const F*)p, (F){0}, " +
                     bits + ");\n#else\n"
               : "") +
        "  " + V + " r; for (int i = 0; i < " + n + "; ++i) r[i] = m[i] ? p[i] : 0; return r;\n" +
        (whole ? "#endif\n" : "") + "}\n");
  else
    add("static inline void " + name + "(" + T + "* p, " + V + " x, " + M + " m) {\n" +
        (whole ? fast + "  __builtin_ia32_storeups512_mask((F*)p, (F)x, " + bits + ");\n#else\n"
               : "") +
        "  for (int i = 0; i < " + n + "; ++i) if (m[i]) p[i] = x[i];\n" +
        (whole ? "#endif\n" : "") + "}\n");
  return name;
}

}  // namespace hidet::codegen
