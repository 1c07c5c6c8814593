// primitives.h - the table of primitives: name, signature rule, C and CUDA text, least architecture.
// Threading: a constant table; thread-safe.
#pragma once
#include <hidet/ir/stmt.h>

#include <optional>

namespace hidet::ir {

/// Where a primitive may be used.
enum class PrimTarget : uint8_t { any, cpu, cuda };

/// Least architecture of instructions that only sm_90a has.
inline constexpr int kHopperOnly = 900;

/// How the result type follows from the arguments.
enum class PrimResult : uint8_t { same, boolean, none, i32, u32, f32, custom };

/// One row. `c` and `cuda` are text with $0 $1 ... for arguments, $t for the C type of the result, $s
/// for a type suffix of the first argument ("f", "" ...), $k0 ... for attrs, $* for all arguments; null: not available
/// there.
/// `elementwise`: applies lane by lane to vectors. `convergent`: all threads of a warp or block must reach it.
/// `signature`: types of the arguments and the result as text, "ptr, u32x4 -> f32x4"; "ptr" is any pointer, "*" any
/// type; null: what the other columns say. `helper`: device functions that `cuda` calls, written once.
struct Primitive {
  const char* name;
  int arity;  ///< -1: any
  PrimTarget target;
  PrimResult result;
  const char* c;
  const char* cuda;
  int min_arch;  ///< e.g. 80, 90; 0: any. kHopperOnly: sm_90a and nothing else
  bool pure;     ///< no side effect: may be duplicated or dropped
  bool elementwise;
  bool convergent;
  const char* doc;
  const char* signature = nullptr;
  const char* helper = nullptr;
  /// The device function that a call with these attrs needs beside `helper`.
  std::string (*generate)(const std::vector<int64_t>& attrs) = nullptr;
  const char* cpu_feature =
      nullptr;  ///< that the C text needs ("amx", as in CpuTarget); null: none
};

/// The type of a tensor map: 128 bytes that the host side makes and a kernel takes as an argument.
inline Type tensor_map_type() { return Type::vector(u64, 16); }
/// Bytes after which the swizzles of bulk copies and matrix descriptors repeat. In a module that uses them, shared
/// tensors of whole tiles begin at multiples of it.
inline constexpr int64_t kSwizzledTile = 1024;
bool uses_swizzled_tiles(const Module& module);

/// The row called `name`, or null.
const Primitive* find_primitive(const std::string& name);
/// What is wrong with the types of a call of a row with a signature; "" where nothing is.
std::string signature_problem(const Primitive& row, const std::vector<Expr>& args,
                              const Type& result);
/// All rows (documentation, tests).
const std::vector<Primitive>& all_primitives();

// Math, all elementwise, any float dtype: exp exp2 log log2 log1p expm1 sqrt rsqrt tanh erf sigmoid sin cos
// tan asin acos atan sinh cosh floor ceil round trunc abs isnan isinf isfinite fma pow fmod sign
// Integers: abs popcount clz
Expr call_math(const std::string& name, std::vector<Expr> args, SourceLoc loc = {});

}  // namespace hidet::ir
