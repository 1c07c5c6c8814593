// search.h - where the CUDA toolkit's pieces may be: NVRTC, nvcc, headers.
// Threading: pure functions of the environment and the file system.
#pragma once
#include <string>
#include <vector>

namespace hidet::backends::cuda {

/// Folders that may hold a toolkit, best first: HIDET_CUDA_ROOT (also as a Python prefix or site-packages),
/// CUDA_HOME, CUDA_PATH, /usr/local/cuda.
std::vector<std::string> toolkit_roots();
/// What to hand to dlopen for NVRTC, best first: HIDET_NVRTC alone where it is set, else the roots' files that
/// exist, with the loader's own search before /usr/local/cuda.
std::vector<std::string> nvrtc_candidates();
/// The path of nvcc, or empty: HIDET_NVCC alone where it is set, else the roots' bin folders and PATH.
std::string find_nvcc();
/// The folder that has cuda_fp16.h, best one near `library` (may be empty), or empty.
std::string find_headers(const std::string& library);

}  // namespace hidet::backends::cuda
