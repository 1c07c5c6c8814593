// simulate.cpp - hands a module to the simulator.
#include <hidet/ir/passes.h>
#include <hidet/lang/build.h>
#include <hidet/runtime/error.h>
#if __has_include(<hidet/backends/sim.h>)
#include <hidet/backends/sim.h>
#define HIDET_HAS_SIMULATOR 1
#endif

namespace hidet::lang {

void simulate_module(const ir::Module& module, const std::string& function,
                     const std::vector<SimArg>& args) {
  ir::verify(module);
#ifdef HIDET_HAS_SIMULATOR
  const std::vector<backends::SimArg> list(args.begin(), args.end());
  backends::simulate(module, function, list);
#else
  throw Error(ErrorCode::unsupported, "this build has no simulator: '" + function +
                                          "' cannot be simulated with " +
                                          std::to_string(args.size()) + " arguments");
#endif
}

}  // namespace hidet::lang
