// refusal.h - the message with which a definition is refused; "" where it is not.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <hidet/lang.h>
#include <hidet/runtime/error.h>

#include <string>

namespace hidet::lang {

/// The message of the Error that `define` (a function of ScriptModule&) or the assembly raises.
template <class Define>
std::string refusal(Define define) {
  try {
    ScriptModule m("bad");
    define(m);
    (void)m.module();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    return e.what();
  }
  return "";
}

/// The refusal of the body of one public function with arguments x: ptr(f32), n: i32.
template <class Body>
std::string body_refusal(Body body) {
  return refusal([&](ScriptModule& m) {
    m.public_func("f", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto n = f.arg("n", i32);
      body(f, x, n);
    });
  });
}

/// "refusals_test.cpp:41: error: message", with the line given.
inline std::string at(const char* file, int line, const std::string& message) {
  return std::string(file) + ":" + std::to_string(line) + ": error: " + message;
}

}  // namespace hidet::lang
