/* plugin.h - the C interface of libhidet_clang.so: Clang's compiler proper and LLD, from memory to memory.
 * The plugin decides nothing: arguments are those of `clang -cc1` and `ld.lld`, made by its caller.
 * Threading: compile may run on any number of threads at once, on a stack of at least 64 MiB; link
 * takes its own lock. After a call that returned HIDET_CLANG_CRASHED the caller uses the plugin no more. */
#ifndef HIDET_BACKENDS_CPU_PLUGIN_H
#define HIDET_BACKENDS_CPU_PLUGIN_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HIDET_CLANG_OK = 0, HIDET_CLANG_REFUSED = 1, HIDET_CLANG_CRASHED = 2 };

typedef struct hidet_clang_bytes {
  const void* data;
  size_t size;
} hidet_clang_bytes;

/* Receives the output (is_message 0) or the compiler's words (is_message 1); called before the call returns. */
typedef void (*hidet_clang_sink)(void* user, int is_message, const void* data, size_t size);

typedef struct hidet_clang_api {
  uint64_t size;       /* bytes of this table: append only */
  const char* version; /* "Debian clang version 19.1.7 ..." */
  /* One text to an object, or to assembly text with -S among the arguments. */
  int (*compile)(const char* const* arguments, int count, hidet_clang_bytes text,
                 hidet_clang_sink sink, void* user);
  /* Objects to a shared object. `version_script` is the text that says what is exported; each library in
   * `needed` (a soname) becomes a DT_NEEDED entry. */
  int (*link)(const char* const* arguments, int count, const hidet_clang_bytes* objects,
              int object_count, hidet_clang_bytes version_script, const char* const* needed,
              int needed_count, hidet_clang_sink sink, void* user);
} hidet_clang_api;

/* The plugin's only exported function. */
__attribute__((visibility("default"))) const hidet_clang_api* hidet_clang_entry(void);

#ifdef __cplusplus
}
#endif
#endif
