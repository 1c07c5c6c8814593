// machine.h - a Machine has the module, the memory and the programs of a simulation.
// Threading: during a launch it is read only, but for memory that blocks do not share.
#pragma once
#include <hidet/backends/sim.h>

#include <deque>

#include "sim/state.h"
#include "sim/values.h"

namespace hidet::backends::sim {

class Worker;

class Machine {
 public:
  Machine(const ir::Module& module, const SimOptions& options);
  ~Machine();
  void call(const ir::Function& f, std::span<const SimArg> args);

 private:
  friend class Worker;
  void add_globals();
  Cell argument(const ir::Function& f, size_t i, const SimArg& arg);
  int64_t add_object(const std::string& name, DType dtype, void* data, int64_t bytes);
  void add_shadows();
  const Program& program(const ir::Function& f, int64_t* first_local);
  void launch(const Warp& host, const LaunchTable& table);
  void run_together(Launch& launch);
  void check_launch(const ir::Launch& l, const Program& p, const Launch& launch) const;

  ir::Module module_;
  SimOptions options_;
  int finest_ = 2;  ///< granules have at most 2^finest_ bytes
  bool has_kernel_ = false;
  std::deque<Object> objects_;
  std::unordered_map<const ir::Node*, int64_t> globals_;
  std::deque<std::vector<double>> global_storage_;
  std::unordered_map<const ir::Function*, std::pair<std::unique_ptr<Program>, int64_t>> programs_;
  std::unordered_map<int64_t, std::vector<double>> scratch_;
  std::unordered_map<int64_t, int64_t> scratch_objects_;
  TileRegisters tiles_;                                ///< of the thread that interprets CPU code
  std::vector<std::pair<uint8_t*, int64_t>> extents_;  ///< of the memory behind objects
  int64_t granules_ = 0;
  std::unique_ptr<Owners[]> owners_;
  std::deque<std::unique_ptr<Worker>> workers_;
  uint32_t run_ = 0;  ///< numbers of runs given away
};

/// "(1, 0, 0)"
std::string triple(const int64_t* v);
}  // namespace hidet::backends::sim
