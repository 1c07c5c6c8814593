/* c.h - load and run .hidet files from C. Needs the runtime library alone.
 * Every call that can fail returns a status, HIDET_OK or a code of hidet::ErrorCode, and keeps a sentence per thread.
 * Threading: a model may be used by any number of threads; a tensor by one at a time; hidet_last_error is the thread's. */
#ifndef HIDET_C_H
#define HIDET_C_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HIDET_MAX_RANK 16

typedef enum hidet_status {
  HIDET_OK = 0,
  HIDET_USAGE = 2,
  HIDET_BAD_FILE = 3,
  HIDET_UNSUPPORTED = 4,
  HIDET_DEVICE = 5,
  HIDET_MEMORY = 6,
  HIDET_IO = 7,
  HIDET_INTERNAL = 70,
  HIDET_CANCELLED = 130
} hidet_status;

typedef struct hidet_model hidet_model;
typedef struct hidet_tensor hidet_tensor;

typedef struct hidet_device {
  int32_t kind; /* 0 CPU, 1 CUDA */
  int32_t index;
} hidet_device;

/* dtype: the numbers of hidet::DTypeCode: 0 bool, 1..4 i8..i64, 5..8 u8..u64, 9 f16, 10 bf16, 11 f32, 12 f64 ... */
typedef struct hidet_tensor_info {
  const char* name; /* of an input or output; "" for a tensor; lives as long as the model */
  int32_t dtype;
  int32_t rank;
  hidet_device device;
  int64_t shape[HIDET_MAX_RANK]; /* -1: symbolic */
  void* data;                    /* of a tensor, in its device's memory; else NULL */
  int64_t bytes;                 /* of a tensor */
} hidet_tensor_info;

typedef struct hidet_load_options {
  size_t size;        /* sizeof(hidet_load_options) */
  const char* device; /* "cpu", "cuda:0"; NULL: the file's first that runs */
  const char* target; /* NULL: the best */
  int32_t no_jit;     /* not 0: PTX is not compiled */
  int32_t verify_all; /* not 0: weights are compared with the manifest too */
} hidet_load_options;

/* The sentence of this thread's last failure; valid until its next call. */
const char* hidet_last_error(void);

/* options may be NULL. */
int hidet_load_model(const char* path, const hidet_load_options* options, hidet_model** model);
/* `bytes` must stay until the model is released. */
int hidet_load_model_memory(const void* bytes, size_t count, const hidet_load_options* options,
                            hidet_model** model);
void hidet_model_release(hidet_model* model);
size_t hidet_model_num_inputs(const hidet_model* model);
size_t hidet_model_num_outputs(const hidet_model* model);
int hidet_model_input_info(const hidet_model* model, size_t index, hidet_tensor_info* info);
int hidet_model_output_info(const hidet_model* model, size_t index, hidet_tensor_info* info);
/* out gets n_out new tensors; release each. */
int hidet_run(const hidet_model* model, hidet_tensor* const* in, size_t n_in, hidet_tensor** out,
              size_t n_out);

int hidet_tensor_zeros(const int64_t* shape, int rank, int dtype, hidet_device device,
                       hidet_tensor** tensor);
/* The caller's memory, without a copy: it must stay until the tensor is released. */
int hidet_tensor_from_blob(void* data, const int64_t* shape, int rank, int dtype,
                           hidet_device device, hidet_tensor** tensor);
int hidet_tensor_get_info(const hidet_tensor* tensor, hidet_tensor_info* info);
/* Copies all elements to or from the host; `bytes` must be the tensor's. */
int hidet_tensor_copy_out(const hidet_tensor* tensor, void* to, int64_t bytes);
int hidet_tensor_copy_in(hidet_tensor* tensor, const void* from, int64_t bytes);
void hidet_tensor_release(hidet_tensor* tensor);

#ifdef __cplusplus
}
#endif
#endif
