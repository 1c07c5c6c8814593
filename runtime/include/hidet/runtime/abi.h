/* abi.h - where compiler and runtime meet. C17.
 *
 * The runtime gives generated code one table of functions; the table only ever grows at its end, and
 * its first field is its size. Generated code (C, printed by codegen) repeats these declarations, has
 * one global (the table's address, written by hidet_module_init at load) and no other undefined
 * symbols but libc's and libm's. Every function that can fail takes the context and returns a status:
 * 0, or an ErrorCode after `raise` recorded the message in the context.
 *
 * A generated code object exports:
 *   uint64_t hidet_abi_size(void)                  least table size that it needs
 *   void     hidet_module_init(const hidet_abi*)   called once after dlopen
 *   int32_t  hidet_call_<f>(hidet_ctx*, const hidet_value* args)   thunk of public function f; a result,
 *                                                  where f returns one, is written to args[n] (n = arity)
 *   R        hidet_<f>(args...)                    plain entry of f in the thread's default context
 * and, where it is a graph's program (symbols in the order of meta.json, one pointer a tensor):
 *   int32_t hidet_graph_init(hidet_ctx*, void* const* source_weights, void* const* stored_weights, void* workspace)
 *   int32_t hidet_graph_launch(hidet_ctx*, const int64_t* symbols, void* const* inputs, void* const* outputs,
 *                              void* const* stored_weights, void* workspace)
 *   int32_t hidet_graph_launch_chosen(the same, const int32_t* candidates)  where kernels have several candidates: one number
 *                              for each kernel; hidet_graph_launch takes the first of each
 *   int64_t hidet_graph_workspace(const int64_t* symbols, int32_t init)  bytes of workspace; init: of hidet_graph_init
 *   void    hidet_graph_output_shapes(const int64_t* symbols, int64_t* dims)  all outputs' dims in a row
 * Threading: the table and the module are read-only after load; a context belongs to one call at a time. */
#ifndef HIDET_RUNTIME_ABI_H
#define HIDET_RUNTIME_ABI_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIDET_ABI_VERSION 1

typedef struct hidet_ctx hidet_ctx;
typedef struct hidet_abi hidet_abi;

/* One unpacked argument: integers and booleans in i (sign or zero extended), f32 in f, f64 in d, f16
 * and bf16 bits in i, pointers in p. */
typedef union hidet_value {
  int64_t i;
  double d;
  float f;
  void* p;
} hidet_value;

/* Body of a parallel region: iterations [begin, end); returns a status. */
typedef int32_t (*hidet_parallel_body)(hidet_ctx*, void* closure, int64_t begin, int64_t end);

/* A CUDA kernel launch. `kernel` is the kernel's name in the program's code, `index` its place in the
 * module's list of kernels (the runtime keeps its handle there); args as cuLaunchKernel takes them; a
 * grid with a 0 is a no-op; cluster 0 0 0 means none. */
typedef struct hidet_cuda_launch {
  uint64_t size; /* sizeof(hidet_cuda_launch) when compiled: append only */
  const char* kernel;
  int64_t grid[3], block[3], cluster[3];
  int64_t shared_bytes; /* dynamic shared memory */
  void** args;
  int32_t index;
} hidet_cuda_launch;

struct hidet_abi {
  uint64_t size; /* bytes of this table as the runtime has it */
  void* module;  /* the loaded module this table was made for; opaque */
  /* Record an error (copied) in the context; returns `code`, never 0. */
  int32_t (*raise)(hidet_ctx*, int32_t code, const char* message);
  /* Split [0, count) into chunks of at least `grain` over the pool; the first failing status, or 0.
   * Which iterations share a chunk never changes a result. */
  int32_t (*parallel_for)(hidet_ctx*, int64_t count, int64_t grain, hidet_parallel_body,
                          void* closure);
  /* 64-byte aligned scratch memory of this thread, valid until the innermost body or call that asked
   * returns; slots 0..3 are separate blocks; NULL after raise(memory). */
  void* (*scratch)(hidet_ctx*, int32_t slot, int64_t bytes);
  int32_t (*cuda_launch)(hidet_ctx*, const hidet_cuda_launch*);
  /* Formatted output, C's printf rules; returns 0. */
  int32_t (*print)(hidet_ctx*, const char* format, ...);
  /* Address of the module's extern function number `index`. */
  void* (*extern_function)(hidet_ctx*, int32_t index);
  /* The calling thread's default context for table->module. */
  hidet_ctx* (*default_context)(const hidet_abi* table);
  /* Device memory of the module's global variable or constant called `name` (CUDA). */
  void* (*cuda_global)(hidet_ctx*, const char* name);
  /* Fill or copy n bytes in the context's stream order; device 0 = CPU, 1 = CUDA. */
  int32_t (*copy)(hidet_ctx*, int32_t device, void* to, const void* from, int64_t bytes);
  int32_t (*fill_zero)(hidet_ctx*, int32_t device, void* to, int64_t bytes);
  /* Encode a CUtensorMap (128 bytes at `map`) for a tiled tensor: arguments as cuTensorMapEncodeTiled. */
  int32_t (*tensor_map)(hidet_ctx*, void* map, int32_t data_type, int32_t rank, void* address,
                        const uint64_t* dims, const uint64_t* strides, const uint32_t* box,
                        const uint32_t* element_strides, int32_t interleave, int32_t swizzle,
                        int32_t l2_promotion, int32_t oob_fill);
  /* Threads that parallel_for may use, its caller included: at least 1. */
  int64_t (*threads)(void);
};

#ifdef __cplusplus
}
#endif
#endif
