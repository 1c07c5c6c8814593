// error_of.h - the message of an error, for tests.
#pragma once
#include <gtest/gtest.h>
#include <hidet/runtime/error.h>

#include <string>

namespace hidet::test {

/// The message of the error that `f` throws; `code`: which it must have.
template <class F>
std::string error_of(F f, ErrorCode code = ErrorCode::usage) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(static_cast<int>(e.code()), static_cast<int>(code)) << e.what();
    return e.what();
  }
  return "no error";
}

}  // namespace hidet::test
