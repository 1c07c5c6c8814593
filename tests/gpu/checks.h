// checks.h - what the GPU test programs share: a check prints PASS, or FAIL with the reason, and counts.
// Threading: one thread calls check.
#pragma once
#include <cstdio>
#include <exception>
#include <functional>

inline int failures = 0;

inline void check(const char* name, const std::function<void()>& body) {
  try {
    body();
    std::printf("PASS %s\n", name);
  } catch (const std::exception& error) {
    ++failures;
    std::printf("FAIL %s: %s\n", name, error.what());
  }
  std::fflush(stdout);
}
