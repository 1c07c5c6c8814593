/* fake_libcuda.c - a libcuda that is old, finds no GPU, or is broken: FAKE_CUDA says which.
 * Needs: FAKE_CUDA=old|nodevice|broken. For the tests of what the runtime says then. */
#include <stdlib.h>
#include <string.h>

static int is(const char* what) {
  const char* fake = getenv("FAKE_CUDA");
  return fake && strcmp(fake, what) == 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  if (is("nodevice")) return 100;
  return is("broken") ? 999 : 0;
}

int cuDriverGetVersion(int* version) {
  *version = is("old") ? 11040 : 13000;
  return 0;
}

int cuGetErrorName(int result, const char** name) {
  *name = result == 999 ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_OTHER";
  return 0;
}
