// simulate.cpp - hands a module to the simulator.
#include <hidet/backends/sim.h>
#include <hidet/ir/passes.h>
#include <hidet/lang/build.h>

namespace hidet::lang {

void simulate_module(const ir::Module& module, const std::string& function,
                     const std::vector<SimArg>& args) {
  ir::verify(module);
  backends::simulate(module, function, args);
}

}  // namespace hidet::lang
