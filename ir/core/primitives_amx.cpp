// primitives_amx.cpp - rows of x86's tile registers (AMX): eight registers of 16 rows of 64 bytes, and products of bf16 into f32.
#include "primitive_tables.h"

namespace hidet::ir {
namespace {
using T = PrimTarget;
using R = PrimResult;

/// Palette 1; bytes of a row (16 bits a register) from byte 16 on, rows from byte 48 on.
constexpr const char kConfig[] =
    "({ static const uint8_t hidet_tiles[64] __attribute__((aligned(64))) = {1, [16] = 64, [18] = "
    "64, "
    "[20] = 64, [22] = 64, [24] = 64, [26] = 64, [28] = 64, [30] = 64, [48 ... 55] = 16}; "
    "__builtin_ia32_tile_loadconfig(hidet_tiles); })";

Primitive row(const char* name, int arity, const char* c, const char* doc, const char* signature) {
  return {name,  arity, T::cpu, R::none,   c,       nullptr, 0,    false,
          false, false, doc,    signature, nullptr, nullptr, "amx"};
}

const std::vector<Primitive> kTable = {
    row("amx_config", 0, kConfig, "makes the tile registers usable: eight of 16 rows of 64 bytes",
        "-> void"),
    row("amx_release", 0, "__builtin_ia32_tilerelease()",
        "gives the tile registers back; their values are lost", "-> void"),
    row("amx_zero", 0, "__builtin_ia32_tilezero($k0)", "register $k0 = 0", "-> void"),
    row("amx_load", 2, "__builtin_ia32_tileloadd64($k0, $0, $1)",
        "register $k0 = 16 rows of 64 bytes, $1 bytes apart", "ptr, i64 -> void"),
    row("amx_store", 2, "__builtin_ia32_tilestored64($k0, $0, $1)",
        "stores register $k0 as 16 rows of 64 bytes, $1 bytes apart", "ptr, i64 -> void"),
    row("amx_dot_bf16", 0, "__builtin_ia32_tdpbf16ps($k0, $k1, $k2)",
        "register $k0 (f32) += $k1 (rows of 32 bf16) * $k2 (rows of pairs: word [k][j] holds "
        "elements 2k and 2k + 1 of column j); subnormal numbers count as 0",
        "-> void"),
};
}  // namespace

const std::vector<Primitive>& amx_primitives() { return kTable; }

}  // namespace hidet::ir
