// mapped_file.h - a file as Bytes, without reading it.
// Threading: pure functions; thread-safe.
#pragma once
#include <string>

#include "hidet/runtime/bytes.h"

namespace hidet::runtime {

/// Maps a file for reading; the mapping lives as long as the Bytes. Throws Error(bad_file) where there is no
/// such file, Error(io) where it cannot be read. A file must not be cut while it is mapped; files that `save`
/// replaces are safe, as the old one stays until its mapping goes.
Bytes map_file(const std::string& path);

}  // namespace hidet::runtime
