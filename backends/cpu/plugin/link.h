// link.h - the plugin's linker half; see plugin.h.
#pragma once
#include "plugin.h"

namespace hidet_clang {

int link(const char* const* arguments, int count, const hidet_clang_bytes* objects,
         int object_count, hidet_clang_bytes version_script, const char* const* needed,
         int needed_count, hidet_clang_sink sink, void* user);

}  // namespace hidet_clang
