// abi_table.cpp - the functions that generated code calls. None throws.
// Threading: thread-safe; scratch memory is the thread's own.
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>

#include "hidet/runtime/error.h"
#include "hidet/runtime/thread_pool.h"
#include "src/compiled/code.h"
#include "src/compiled/launch_times.h"

namespace hidet::runtime {
namespace {

constexpr int kSlots = 4;

struct ScratchBlock {
  void* memory = nullptr;
  int64_t bytes = 0;
  ~ScratchBlock() { std::free(memory); }
};
struct ScratchLevel {
  ScratchBlock slots[kSlots];
};
struct Scratch {
  int depth = 0;
  std::deque<ScratchLevel> levels;  // a deque: blocks of outer levels stay where they are
};
thread_local Scratch t_scratch;

/// Runs `work`; an exception becomes the context's error.
template <class Work>
int32_t guarded(hidet_ctx* ctx, Work&& work) noexcept {
  try {
    work();
    return 0;
  } catch (const Error& e) {
    return ctx->raise(static_cast<int32_t>(e.code()), e.what());
  } catch (const std::bad_alloc&) {
    return ctx->raise(static_cast<int32_t>(ErrorCode::memory), "out of memory");
  } catch (const std::exception& e) {
    return ctx->raise(static_cast<int32_t>(ErrorCode::internal), e.what());
  }
}

int32_t abi_raise(hidet_ctx* ctx, int32_t code, const char* message) {
  return ctx->raise(code, message);
}

struct Region {
  hidet_ctx* ctx;
  hidet_parallel_body body;
  void* closure;
};

int32_t abi_parallel_for(hidet_ctx* ctx, int64_t count, int64_t grain, hidet_parallel_body body,
                         void* closure) {
  Region region{ctx, body, closure};
  return parallel_for(
      count, grain,
      [](void* self, int64_t begin, int64_t end) -> int32_t {
        const Region& r = *static_cast<Region*>(self);
        const ScratchScope scope;
        return r.body(r.ctx, r.closure, begin, end);
      },
      static_cast<void*>(&region));
}

void* abi_scratch(hidet_ctx* ctx, int32_t slot, int64_t bytes) {
  if (slot < 0 || slot >= kSlots || bytes < 0) {
    ctx->raise(static_cast<int32_t>(ErrorCode::internal),
               "scratch memory: slot or size out of range");
    return nullptr;
  }
  ScratchBlock* block = nullptr;
  const int32_t status = guarded(ctx, [&] {
    while (static_cast<int>(t_scratch.levels.size()) <= t_scratch.depth)
      t_scratch.levels.emplace_back();
    block = &t_scratch.levels[t_scratch.depth].slots[slot];
    if (block->bytes >= bytes && block->memory) return;
    std::free(block->memory);
    block->bytes = 0;
    const size_t size = (static_cast<size_t>(bytes) + 63) / 64 * 64 + (bytes == 0 ? 64 : 0);
    block->memory = std::aligned_alloc(64, size);
    if (!block->memory)
      throw Error(ErrorCode::memory,
                  ::hidet::detail::concat("no memory for ", bytes, " bytes of scratch space"));
    block->bytes = static_cast<int64_t>(size);
  });
  return status == 0 ? block->memory : nullptr;
}

int32_t abi_cuda_launch(hidet_ctx* ctx, const hidet_cuda_launch* launch) {
  return guarded(ctx, [&] {
    const auto queue = [&] { ctx->code.cuda().launch(ctx->stream, *launch); };
    if (ctx->times) [[unlikely]]
      ctx->times->launch(ctx->stream, *launch, queue);
    else queue();
  });
}

int32_t abi_print(hidet_ctx*, const char* format, ...) {
  va_list args;
  va_start(args, format);
  std::vfprintf(stdout, format, args);
  va_end(args);
  return 0;
}

void* abi_extern_function(hidet_ctx* ctx, int32_t index) {
  const auto& list = ctx->code.data.extern_functions;
  return index >= 0 && static_cast<size_t>(index) < list.size() ? list[index] : nullptr;
}

hidet_ctx* abi_default_context(const hidet_abi* table) {
  return static_cast<const LoadedCode*>(table->module)->default_context();
}

void* abi_cuda_global(hidet_ctx* ctx, const char* name) {
  void* address = nullptr;
  guarded(ctx, [&] { address = ctx->code.cuda().global(name); });
  return address;
}

int32_t abi_copy(hidet_ctx* ctx, int32_t device, void* to, const void* from, int64_t bytes) {
  if (bytes <= 0) return 0;
  if (device == 0) {
    std::memmove(to, from, static_cast<size_t>(bytes));
    return 0;
  }
  return guarded(ctx, [&] {
    cuda_copy_async(ctx->code.data.device.index(), ctx->stream, to, from,
                    static_cast<size_t>(bytes));
  });
}

int32_t abi_fill_zero(hidet_ctx* ctx, int32_t device, void* to, int64_t bytes) {
  if (bytes <= 0) return 0;
  if (device == 0) {
    std::memset(to, 0, static_cast<size_t>(bytes));
    return 0;
  }
  return guarded(ctx, [&] {
    cuda_clear_async(ctx->code.data.device.index(), ctx->stream, to, static_cast<size_t>(bytes));
  });
}

int32_t abi_tensor_map(hidet_ctx* ctx, void* map, int32_t data_type, int32_t rank, void* address,
                       const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                       const uint32_t* element_strides, int32_t interleave, int32_t swizzle,
                       int32_t l2_promotion, int32_t oob_fill) {
  return guarded(ctx, [&] {
    cuda_tensor_map(ctx->code.data.device.index(), map, data_type, rank, address, dims, strides,
                    box, element_strides, interleave, swizzle, l2_promotion, oob_fill);
  });
}

}  // namespace

ScratchScope::ScratchScope() noexcept { ++t_scratch.depth; }
ScratchScope::~ScratchScope() { --t_scratch.depth; }

hidet_abi make_abi_table(const LoadedCode& code) {
  hidet_abi table{};
  table.size = sizeof table;
  table.module = const_cast<LoadedCode*>(&code);
  table.raise = abi_raise;
  table.parallel_for = abi_parallel_for;
  table.scratch = abi_scratch;
  table.cuda_launch = abi_cuda_launch;
  table.print = abi_print;
  table.extern_function = abi_extern_function;
  table.default_context = abi_default_context;
  table.cuda_global = abi_cuda_global;
  table.copy = abi_copy;
  table.fill_zero = abi_fill_zero;
  table.tensor_map = abi_tensor_map;
  table.threads = [] { return int64_t{num_threads()}; };
  return table;
}

}  // namespace hidet::runtime
