// primitives_bulk.cpp - rows of the table of primitives for bulk copies and reductions of sm_90, with and without tensor maps,
// and for the policies of L2 that they take. Their device functions are made from the attributes of the call.
// The columns are those of primitives.cpp.
#include <hidet/ir/bulk.h>

#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;
using Attrs = std::vector<int64_t>;

/// What an operand of an instruction is, and so how the device function takes it and hands it on.
enum class Kind { shared, global, map, number, mask, policy };
struct KindRow {
  const char *type, *constraint, *open, *close;
};
constexpr KindRow kKinds[] = {
    {"const void*", "r", "hidet_shared(", ")"}, {"const void*", "l", "", ""},
    {"const hidet_tensor_map&", "l", "&", ""},  {"int", "r", "", ""},
    {"int", "h", "(unsigned short)", ""},       {"uint64_t", "l", "", ""}};
struct Operand {
  Kind kind;
  std::string name;
};

/// hidet_<row>_<attrs>: a device function around one instruction, in whose text $name is an operand.
std::string around(const char* row, const Attrs& attrs, const std::vector<Operand>& operands,
                   std::string ptx) {
  std::string name = std::string("hidet_") + row, params, values;
  for (int64_t a : attrs) name += "_" + std::to_string(a);
  for (size_t i = 0; i < operands.size(); i++) {
    const Operand& o = operands[i];
    const KindRow& k = kKinds[static_cast<size_t>(o.kind)];
    params += (i ? ", " : "") + (std::string(k.type) + " " + o.name);
    values +=
        std::string(i ? ", " : "") + "\"" + k.constraint + "\"(" + k.open + o.name + k.close + ")";
    const std::string mark = "$" + o.name;
    for (size_t at; (at = ptx.find(mark)) != std::string::npos;)
      ptx.replace(at, mark.size(), "%" + std::to_string(i));
  }
  return "__device__ __forceinline__ void " + name + "(" + params + ") {\n  asm volatile(\"" + ptx +
         ";\" ::" + values + " : \"memory\");\n}\n";
}

/// Operands c0, c1 ... behind the others; returns "{$c0, $c1}".
std::string add_coordinates(int64_t rank, std::vector<Operand>& operands) {
  std::string places;
  for (int64_t i = 0; i < rank; i++) {
    operands.push_back({Kind::number, "c" + std::to_string(i)});
    places += (i ? ", $" : "$") + operands.back().name;
  }
  return "{" + places + "}";
}
/// The last operand of those that have a policy; returns its text.
std::string add_policy(bool hinted, std::vector<Operand>& operands) {
  if (!hinted) return "";
  operands.push_back({Kind::policy, "policy"});
  return ", $policy";
}
const char* hint(bool hinted) { return hinted ? ".L2::cache_hint" : ""; }
std::string dims(int64_t rank) { return std::to_string(rank) + "d"; }
constexpr const char* kCounted = ".mbarrier::complete_tx::bytes";

/// Rank, multicast, hinted.
std::string tma_load(const Attrs& attrs) {
  const bool multicast = attrs.at(1) != 0, hinted = attrs.at(2) != 0;
  std::vector<Operand> operands{
      {Kind::shared, "to"}, {Kind::map, "map"}, {Kind::shared, "barrier"}};
  if (multicast) operands.push_back({Kind::mask, "blocks"});
  const std::string places = add_coordinates(attrs.at(0), operands),
                    policy = add_policy(hinted, operands);
  return around("tma_load", attrs, operands,
                "cp.async.bulk.tensor." + dims(attrs[0]) + ".shared::cluster.global" + kCounted +
                    (multicast ? ".multicast::cluster" : "") + hint(hinted) + " [$to], [$map, " +
                    places + "], [$barrier]" + (multicast ? ", $blocks" : "") + policy);
}
/// From shared memory to a box; `operation` is "" or that of a reduction.
std::string to_box(const char* row, const Attrs& attrs, const std::string& instruction,
                   const std::string& operation, bool hinted) {
  std::vector<Operand> operands{{Kind::map, "map"}, {Kind::shared, "from"}};
  const std::string places = add_coordinates(attrs.at(0), operands),
                    policy = add_policy(hinted, operands);
  return around(row, attrs, operands,
                instruction + ".async.bulk.tensor." + dims(attrs[0]) + ".global.shared::cta" +
                    operation + ".bulk_group" + hint(hinted) + " [$map, " + places + "], [$from]" +
                    policy);
}
std::string tma_store(const Attrs& attrs) {
  return to_box("tma_store", attrs, "cp", "", attrs.at(1) != 0);
}
std::string tma_reduce(const Attrs& attrs) {
  return to_box("tma_reduce", attrs, "cp.reduce",
                std::string(".") + name_of(static_cast<Combine>(attrs.at(1))), attrs.at(2) != 0);
}
std::string tma_prefetch_box(const Attrs& attrs) {
  const bool hinted = attrs.at(1) != 0;
  std::vector<Operand> operands{{Kind::map, "map"}};
  const std::string places = add_coordinates(attrs.at(0), operands),
                    policy = add_policy(hinted, operands);
  return around("tma_prefetch_box", attrs, operands,
                "cp.async.bulk.prefetch.tensor." + dims(attrs[0]) + ".L2.global" + hint(hinted) +
                    " [$map, " + places + "]" + policy);
}
/// Multicast, hinted.
std::string bulk_load(const Attrs& attrs) {
  const bool multicast = attrs.at(0) != 0, hinted = attrs.at(1) != 0;
  std::vector<Operand> operands{{Kind::shared, "to"},
                                {Kind::global, "from"},
                                {Kind::number, "bytes"},
                                {Kind::shared, "barrier"}};
  if (multicast) operands.push_back({Kind::mask, "blocks"});
  const std::string policy = add_policy(hinted, operands);
  return around("bulk_load", attrs, operands,
                std::string("cp.async.bulk.shared::cluster.global") + kCounted +
                    (multicast ? ".multicast::cluster" : "") + hint(hinted) +
                    " [$to], [$from], $bytes, [$barrier]" + (multicast ? ", $blocks" : "") +
                    policy);
}
std::string to_global(const char* row, const Attrs& attrs, const std::string& instruction,
                      const std::string& operation, bool hinted) {
  std::vector<Operand> operands{
      {Kind::global, "to"}, {Kind::shared, "from"}, {Kind::number, "bytes"}};
  const std::string policy = add_policy(hinted, operands);
  return around(row, attrs, operands,
                instruction + ".async.bulk.global.shared::cta.bulk_group" + hint(hinted) +
                    operation + " [$to], [$from], $bytes" + policy);
}
std::string operation(int64_t op, int64_t dtype) {
  return "." + ptx_of(static_cast<Combine>(op), DType(static_cast<DTypeCode>(dtype)));
}
std::string bulk_store(const Attrs& attrs) {
  return to_global("bulk_store", attrs, "cp", "", attrs.at(0) != 0);
}
std::string bulk_reduce(const Attrs& attrs) {
  return to_global("bulk_reduce", attrs, "cp.reduce", operation(attrs.at(0), attrs.at(1)),
                   attrs.at(2) != 0);
}
std::string bulk_prefetch(const Attrs& attrs) {
  std::vector<Operand> operands{{Kind::global, "from"}, {Kind::number, "bytes"}};
  const std::string policy = add_policy(attrs.at(0) != 0, operands);
  return around("bulk_prefetch", attrs, operands,
                std::string("cp.async.bulk.prefetch.L2.global") + hint(attrs[0] != 0) +
                    " [$from], $bytes" + policy);
}
/// To shared memory of the cluster.
std::string to_cluster(const char* row, const Attrs& attrs, const std::string& instruction,
                       const std::string& op) {
  return around(row, attrs,
                {{Kind::shared, "to"},
                 {Kind::shared, "from"},
                 {Kind::number, "bytes"},
                 {Kind::shared, "barrier"}},
                instruction + ".async.bulk.shared::cluster.shared::cta" + kCounted + op +
                    " [$to], [$from], $bytes, [$barrier]");
}
std::string bulk_send(const Attrs& attrs) { return to_cluster("bulk_send", attrs, "cp", ""); }
std::string bulk_send_reduce(const Attrs& attrs) {
  return to_cluster("bulk_send_reduce", attrs, "cp.reduce", operation(attrs.at(0), attrs.at(1)));
}

/// A thread's value to shared memory of the cluster: 4, 8 or 16 bytes.
constexpr const char kAsyncStore[] =
    R"(template <class T> __device__ __forceinline__ void hidet_async_store(void* to, T v, const void* b) {
  if constexpr (sizeof(T) == 4)
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(hidet_shared(to)), "r"(hidet_bits<uint32_t>(v)), "r"(hidet_shared(b)) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(hidet_shared(to)), "l"(hidet_bits<uint64_t>(v)), "r"(hidet_shared(b)) : "memory");
  else {
    const hidet_vec<uint64_t, 2> w = hidet_bits<hidet_vec<uint64_t, 2>>(v);
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(hidet_shared(to)), "l"(w.v[0]), "l"(w.v[1]), "r"(hidet_shared(b)) : "memory");
  }
}
)";
std::string async_store(const Attrs&) { return kAsyncStore; }
std::string async_reduce(const Attrs& attrs) {
  const bool wide = DType(static_cast<DTypeCode>(attrs.at(1))).bits() == 64;
  return "__device__ __forceinline__ void hidet_async_reduce_" + std::to_string(attrs.at(0)) + "_" +
         std::to_string(attrs[1]) + "(void* to, " + (wide ? "uint64_t" : "uint32_t") +
         " v, const void* b) {\n  asm volatile(\"red.async.relaxed.cluster.shared::cluster" +
         kCounted + operation(attrs[0], attrs[1]) +
         " [%0], %1, [%2];\" ::\"r\"(hidet_shared(to)), \"" + (wide ? "l" : "r") +
         "\"(v), \"r\"(hidet_shared(b)) : \"memory\");\n}\n";
}

std::string cache_policy(const Attrs& attrs) {
  constexpr const char* kOrders[] = {"last", "normal", "first", "unchanged"};
  const auto order = [&](size_t i) {
    return std::string(".L2::evict_") + kOrders[static_cast<size_t>(attrs.at(i))];
  };
  return "__device__ __forceinline__ uint64_t hidet_cache_policy_" + std::to_string(attrs.at(0)) +
         "_" + std::to_string(attrs.at(1)) +
         "(float part) {\n  uint64_t r;\n  asm(\"createpolicy.fractional" + order(0) + order(1) +
         ".b64 %0, %1;\" : \"=l\"(r) : \"f\"(part));\n  return r;\n}\n";
}

#define HIDET_ASM(text) "asm volatile(\"" text "\" ::: \"memory\")"
/// A row whose device function is made from its attributes.
#define HIDET_MADE(name, suffix, doc)                                                           \
  {#name, -1,  T::cuda, R::none,       nullptr, "hidet_" #name suffix "($*)", 90, false, false, \
   false, doc, nullptr, kHopperHelper, name}

const std::vector<Primitive> kTable = {
    // --- loads end at an mbarrier, as do copies to other blocks; stores in groups of the thread
    HIDET_MADE(tma_load, "_$k0_$k1_$k2",
               "a box of a tensor of rank $k0 to shared memory; $k1: in several blocks of the "
               "cluster; $k2: with a policy of L2, the last operand"),
    HIDET_MADE(tma_store, "_$k0_$k1",
               "a box from shared memory to a tensor of rank $k0; $k1: with a policy"),
    HIDET_MADE(tma_reduce, "_$k0_$k1_$k2",
               "the same, each element combined with what is there by operation $k1; $k2: with a "
               "policy"),
    {"tma_prefetch", 1, T::cuda, R::none, nullptr,
     "asm volatile(\"prefetch.tensormap [%0];\" ::\"l\"(&$0) : \"memory\")", 90, false, false,
     false, "loads a tensor map before its first use", "u64x16 -> void", kHopperHelper},
    HIDET_MADE(tma_prefetch_box, "_$k0_$k1",
               "loads a box of a tensor of rank $k0 into L2; $k1: with a policy"),
    HIDET_MADE(bulk_load, "_$k0_$k1",
               "$2 bytes, a multiple of 16, to shared memory; $k0: to the same place in the blocks "
               "of the mask $4; $k1: with a policy"),
    HIDET_MADE(bulk_store, "_$k0",
               "$2 bytes, a multiple of 16, from shared to global memory; $k0: with a policy"),
    HIDET_MADE(bulk_reduce, "_$k0_$k1_$k2",
               "the same, each element of dtype $k1 combined by operation $k0; $k2: with a policy"),
    HIDET_MADE(bulk_prefetch, "_$k0", "$1 bytes, a multiple of 16, into L2; $k0: with a policy"),
    {"bulk_send", 4, T::cuda, R::none, nullptr, "hidet_bulk_send($*)", 90, false, false, false,
     "$2 bytes from shared memory to that of a block of the cluster, counted there",
     "ptr, ptr, i32, ptr(u64) -> void", kHopperHelper, bulk_send},
    {"bulk_send_reduce", 4, T::cuda, R::none, nullptr, "hidet_bulk_send_reduce_$k0_$k1($*)", 90,
     false, false, false, "the same, each element of dtype $k1 combined by operation $k0",
     "ptr, ptr, i32, ptr(u64) -> void", kHopperHelper, bulk_send_reduce},
    {"async_store", 3, T::cuda, R::none, nullptr, "hidet_async_store($0, $1, $2)", 90, false, false,
     false,
     "a value of 4, 8 or 16 bytes to shared memory of a block of the cluster, counted there; $k0: "
     "dtype",
     "ptr, *, ptr(u64) -> void", kHopperHelper, async_store},
    {"async_reduce", 3, T::cuda, R::none, nullptr, "hidet_async_reduce_$k0_$k1($0, $1, $2)", 90,
     false, false, false, "the same, a number of dtype $k1 combined by operation $k0",
     "ptr, *, ptr(u64) -> void", kHopperHelper, async_reduce},
    {"bulk_commit", 0, T::cuda, R::none, nullptr, HIDET_ASM("cp.async.bulk.commit_group;"), 90,
     false, false, false, "closes a group of stores"},
    {"bulk_wait", 0, T::cuda, R::none, nullptr, HIDET_ASM("cp.async.bulk.wait_group $k0;"), 90,
     false, false, false, "waits until $k0 groups of stores are pending"},
    {"bulk_wait_read", 0, T::cuda, R::none, nullptr,
     HIDET_ASM("cp.async.bulk.wait_group.read $k0;"), 90, false, false, false,
     "waits until all but $k0 groups of stores have read their shared memory"},
    {"cache_policy", 1, T::cuda, R::custom, nullptr, "hidet_cache_policy_$k0_$k1($0)", 80, true,
     false, false, "how L2 keeps a part $0 of what is touched ($k0), and the rest ($k1)",
     "f32 -> u64", nullptr, cache_policy},
};
}  // namespace

const std::vector<Primitive>& bulk_primitives() { return kTable; }

std::string ptx_type(DType t) {
  if (t == f8e4m3) return "e4m3";
  if (t == f8e5m2) return "e5m2";
  return t.is_integer() ? (t.is_signed() ? "s" : "u") + std::to_string(t.bits()) : t.name();
}

const char* name_of(Combine op) {
  constexpr const char* kNames[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};
  return kNames[static_cast<size_t>(op)];
}

bool can_reduce(Combine op, DType t, bool shared) {
  const bool words = t == i32 || t == u32, longs = t == i64 || t == u64;
  switch (op) {
    case Combine::add:
      return words || longs || (!shared && t.is_float() && t.bits() >= 16 && t != tf32);
    case Combine::min:
    case Combine::max: return words || (!shared && (longs || t == f16 || t == bf16));
    case Combine::inc:
    case Combine::dec: return t == u32;
    default: return words || (!shared && longs);
  }
}

std::string ptx_of(Combine op, DType t) {
  const std::string bits = std::to_string(t.bits());
  const bool halves = t == f16 || t == bf16, add = op == Combine::add;
  std::string type = ptx_type(t == i64 && add ? u64 : t);  // of 64 bits, there is one sum
  if (op >= Combine::bit_and) type = "b" + bits;
  return std::string(name_of(op)) + (halves && add ? ".noftz." : ".") + type;
}

}  // namespace hidet::ir
