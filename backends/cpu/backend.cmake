# libhidet_clang.so: Clang and LLD 19 as libraries. Without their packages it is not built, and kernels are
# compiled by the C compiler in PATH.
set(HIDET_LLVM_ROOT /usr/lib/llvm-19 CACHE PATH "where LLVM, Clang and LLD 19 are installed")
find_path(HIDET_CLANG_INCLUDE clang/Frontend/CompilerInstance.h PATHS ${HIDET_LLVM_ROOT}/include NO_DEFAULT_PATH)
foreach(library lldELF lldCommon clang-cpp LLVM)
  find_library(HIDET_${library}_LIBRARY ${library} PATHS ${HIDET_LLVM_ROOT}/lib NO_DEFAULT_PATH)
  list(APPEND HIDET_CLANG_LIBRARIES ${HIDET_${library}_LIBRARY})
endforeach()
if(HIDET_CLANG_INCLUDE AND HIDET_lldELF_LIBRARY AND HIDET_clang-cpp_LIBRARY)
  hidet_plugin(clang
    SOURCES cpu/plugin/compile.cpp cpu/plugin/guard.cpp cpu/plugin/link.cpp
    INCLUDE ${HIDET_CLANG_INCLUDE}
    LINK ${HIDET_CLANG_LIBRARIES} z zstd)
  target_link_options(hidet_clang PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections)
  # LLVM's headers are checked by its own project.
  target_compile_options(hidet_clang PRIVATE -Wno-unused-parameter -Wno-redundant-move)
else()
  message(STATUS "Clang 19's libraries are not there: libhidet_clang.so is not built, CPU code goes through cc")
endif()
