// rules.h - the whole message of a rule, its place left out.
#pragma once
#include "refusal.h"

namespace hidet::lang {

/// "file:line: error: " left out; the place must be in a script of a file rules*.
inline std::string without_place(std::string message) {
  const std::string error = ": error: ";
  if (message.empty()) return "";
  if (message.rfind("rules", 0) != 0) return "no place: " + message;
  return message.substr(message.find(error) + error.size());
}
/// What is refused in a public function of x: ptr(f32), n: i32.
template <class Body>
std::string in_function(Body body) {
  return without_place(body_refusal(body));
}
/// The same in a kernel.
template <class Body>
std::string in_kernel(Body body) {
  return without_place(refusal([&](ScriptModule& m) {
    m.cuda_kernel("k", [&](Function& f) {
      auto x = f.arg("x", ptr(f32));
      auto n = f.arg("n", i32);
      f.grid_dim(1);
      f.block_dim(32);
      body(f, x, n);
    });
  }));
}
/// What building refuses.
template <class Define>
std::string in_build(Define define) {
  try {
    ScriptModule m("bad");
    define(m);
    (void)m.build();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::usage) << e.what();
    return e.what();
  }
  return "";
}

}  // namespace hidet::lang
