// limits.h - what every CUDA device allows a launch: constants that the script language and the verifier share.
// Threading: constants.
#pragma once
#include <cstdint>

namespace hidet::ir {

inline constexpr int64_t kMostGrid[3] = {2147483647, 65535, 65535};
inline constexpr int64_t kMostBlock[3] = {1024, 1024, 64};
inline constexpr int64_t kMostThreads = 1024;      ///< of a block
inline constexpr int64_t kMostClusterBlocks = 16;  ///< more than 8 need an attribute of the kernel
inline constexpr int64_t kMostStaticShared = 48 * 1024;
inline constexpr int64_t kMostDynamicShared = 227 * 1024;
inline constexpr int64_t kMostParameterBytes = 4096;  ///< of a kernel; newer drivers take more
inline constexpr int64_t kMostMinBlocks = 32;         ///< blocks that a multiprocessor holds

}  // namespace hidet::ir
