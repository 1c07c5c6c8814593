// zip_format.h - the few numbers of the zip format that reader and writer share (APPNOTE 6.3, stored entries only).
// Threading: constants.
#pragma once
#include <cstdint>

namespace hidet::runtime::zip {

inline constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
inline constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
inline constexpr uint32_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kEnd64Bytes = 56,
                          kLocatorBytes = 20;
inline constexpr uint16_t kExtra64 = 0x0001;   ///< sizes and offset of 64 bits
inline constexpr uint16_t kExtraPad = 0xD935;  ///< padding, the id that zipalign uses
inline constexpr uint16_t kUtf8 = 0x0800;      ///< flag: names are UTF-8
inline constexpr uint16_t kDosDate =
    0x0021;  ///< 1 January 1980, so that equal models give equal bytes
inline constexpr uint32_t kFull32 = 0xFFFFFFFFu;
inline constexpr uint16_t kFull16 = 0xFFFFu;
inline constexpr uint64_t kAlign = 64;  ///< of every entry's data

}  // namespace hidet::runtime::zip
