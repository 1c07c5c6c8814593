// faults.cpp - runs one row of a table of planted faults.
#include "faults.h"

#include <cstdlib>

namespace faults {

/// The verifier would refuse some of these kernels before they run.
[[maybe_unused]] const int unverified = unsetenv("HIDET_VERIFY");

std::string run(const Fault& fault, bool bad, std::string* where) {
  ScriptModule m("fault");
  m.cuda_kernel("fault", [&](Function& f) {
    auto x = f.arg("x", ptr(hidet::f32));
    auto n = f.arg("n", ptr(hidet::i32));
    f.grid_dim(fault.blocks);
    f.block_dim(fault.threads);
    fault.body({x, n}, bad);
  });
  const hidet::backends::SimArg args[] = {hidet::zeros({64}), hidet::zeros({16}, hidet::i32)};
  try {
    hidet::backends::simulate(m.module(), "launch", args, fault.options);
  } catch (const hidet::Error& e) {
    *where = e.where();
    return e.what();
  }
  return "";
}

std::string expected(const Fault& fault, const std::string& file) {
  std::string out = fault.report;
  const auto replace = [&](char sign, int line) {
    for (size_t at; (at = out.find(sign)) != std::string::npos;)
      out.replace(at, 1, file + ":" + std::to_string(line));
  };
  replace('$', lines.other);
  replace('#', lines.fault);
  return out;
}

}  // namespace faults
