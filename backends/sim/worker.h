// worker.h - a Worker runs blocks, the lanes of a warp in lockstep, until they must wait; warps and blocks take turns.
// Threading: a Worker an OS thread.
#pragma once
#include "sim/machine.h"

namespace hidet::backends::sim {

enum class Turn : uint8_t { done, spent, stuck };

class Worker {
 public:
  explicit Worker(Machine& m) : m_(m), options_(m.options_) {}

  /// All blocks, one after the other; blocks that wait for later ones, side by side with them.
  void run_in_order(Launch& launch);
  /// Blocks by the numbers that `next` gives, until there is none.
  void run_from(Launch& launch, std::atomic<int64_t>& next);
  void run_host(Launch& call);
  /// A block with its memory, to start; and starting it as number b of the launch.
  std::unique_ptr<Block> make_block(Launch& launch) const;
  std::unique_ptr<Cluster> make_cluster(Launch& launch) const;
  void start(Block& block, int64_t cluster);
  void start(Cluster& cluster, int64_t number);
  Turn turn(Block& block);
  Turn turn(Cluster& cluster);

 private:
  // block.cpp, warp.cpp
  void run_alone(Cluster& cluster);
  void run_warp(Block& block, Warp& w);
  void release(Block& block);
  bool complete(const Warp& w) const;
  void warp_operation(Block& block, Warp& w);
  void exchange(Block& block, Warp& w, const Inst& in, int32_t at, uint32_t present);
  void vote(Warp& w, const Inst& in, uint32_t present);
  void reduce_warp(Warp& w, const Inst& in, uint32_t present);
  void named_barrier(Block& block, Warp& w, uint32_t mask, const Inst& in, int32_t at);
  void matrix_load(Block& block, Warp& w, const Inst& in, int32_t at);
  void matrix_store(Block& block, Warp& w, const Inst& in, int32_t at);
  void mma(const Warp& w, const Inst& in) const;
  void transpose_matrix(const Warp& w, const Inst& in) const;
  Place matrix_row(const Block& block, const Warp& w, int lane, const Inst& in, int32_t at);
  [[noreturn]] void report_waiting(const Block& block) const;
  [[noreturn]] void report_waiting(const Cluster& cluster) const;

  // hopper.cpp
  bool hopper(Block& block, Warp& w, uint32_t mask, const Inst& in, int32_t at);
  Block& owner(Block& block, int64_t pointer) const;
  Place shared_place(Block& block, const Warp& w, int lane, int64_t pointer, int64_t bytes,
                     int64_t align, int32_t at, const char* what) const;
  Mbarrier& mbarrier(Block& block, const Warp& w, int lane, int64_t pointer, int32_t at,
                     const char* what, Block** in) const;
  void init(Block& block, Warp& w, int lane, int64_t pointer, int64_t count, int32_t at);
  void arrive(Block& block, Warp& w, int lane, int64_t pointer, int64_t bytes, int32_t at);
  void count_bytes(Block& there, Mbarrier& b, int64_t bytes);
  void count_arrivals(const Block& block, const Warp& w, int lane, Block& there, Mbarrier& b,
                      int64_t count, int32_t at);
  int64_t arrive_counted(Block& block, Warp& w, int lane, int64_t pointer, int64_t count,
                         bool may_end, int32_t at);
  void arrive_drop(Block& block, Warp& w, int lane, int64_t pointer, int32_t at);
  void arrive_copies(Block& block, Warp& w, int lane, int64_t pointer, bool counted, int32_t at);
  void test_mbarrier(Block& block, Warp& w, uint32_t mask, const HopperCall& call, Hopper op,
                     Cell* out, int32_t at);
  int64_t in_rank(const Block& block, const Warp& w, int lane, int64_t pointer, int64_t rank,
                  int32_t at) const;
  void end_phase(Block& there, Mbarrier& b);
  bool wait_mbarrier(Block& block, Warp& w, uint32_t mask, const HopperCall& call, int32_t at);
  void fence_proxy(Block& block, Warp& w, uint32_t mask, uint32_t memory);
  void learn(Block& block, Warp& w, uint32_t mask, uint16_t slot, uint32_t clock);
  void arrive_cluster(Block& block, Warp& w, uint32_t mask, int32_t at);
  bool wait_cluster(Block& block, Warp& w, uint32_t mask, int32_t at);
  bool end_cluster_phase(Cluster& cluster) const;
  // bulk.cpp
  TensorMap make_map(const Block& block, const Warp& w, const HopperCall& call, int32_t at) const;
  template <class F>
  void each_chunk(const TensorMap& map, const int64_t* at, F&& f) const;
  void check_start(const Block& block, const Warp& w, int lane, const TensorMap& map,
                   const int64_t* start, bool store, int32_t at, const char* what) const;
  TensorMap box_of(const Block& block, const Warp& w, int lane, const HopperCall& call, size_t a,
                   size_t c, int64_t* start, bool store, int32_t at) const;
  void check_policy(const Block& block, const Warp& w, int lane, const HopperCall& call,
                    bool hinted, int32_t at) const;
  int64_t bulk_bytes(const Block& block, const Warp& w, int lane, const HopperCall& call, size_t a,
                     int32_t at) const;
  Mbarrier& copy_barrier(Block& block, const Warp& w, int lane, int64_t pointer, int32_t at,
                         const char* what) const;
  template <class F>
  void each_target(Block& block, const Warp& w, int lane, const HopperCall& call, int64_t targets,
                   int64_t to, int64_t barrier, int32_t at, F&& f);
  void read_global(Block& block, const Warp& w, int lane, const Place& from, const Stamp& stamp,
                   int32_t at);
  void deliver(Block& block, const Warp& w, int lane, const Place& to, const uint8_t* from,
               const Stamp& stamp, const Reduction* r, int32_t at);
  Stamp store_stamp(const Block& block, const Warp& w, int lane, uint16_t slot, int32_t at) const;
  void require_global(const Block& block, const Warp& w, int lane, const Place& p, int32_t at,
                      const char* what) const;
  void tma_load(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at);
  void tma_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces, int32_t at);
  void tma_prefetch(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at);
  void bulk_load(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at);
  void bulk_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                  int32_t at);
  void bulk_prefetch(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at);
  void bulk_send(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces, int32_t at);
  void async_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                   int32_t at);
  void send(Block& block, const Warp& w, int lane, const HopperCall& call, const Place& to,
            int64_t pointer, int64_t barrier, const Place& from, const Reduction* r, int32_t at);
  int64_t make_policy(const Block& block, const Warp& w, int lane, const HopperCall& call,
                      int32_t at) const;
  Place shared_bytes(Block& block, const Warp& w, int lane, int64_t address, int64_t bytes,
                     int32_t at, const char* what) const;
  // async.cpp
  void note_async(Block& block, const Warp& w, int lane, const Place& place, const Stamp& stamp,
                  Use use, bool record = true);
  void record_read(const Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                   const Stamp& stamp);
  void check_fenced(const Block& block, const Warp& w, int lane, const Space& s, const Stamp& x,
                    int32_t at) const;
  [[noreturn]] void race_async(const Block& block, const Warp& w, int lane, const Space& s,
                               const Stamp& mine, bool write, const Stamp& other,
                               bool other_write) const;
  std::string describe(const Block& block, const Stamp& s, bool write) const;
  // wgmma.cpp
  bool group_is_there(Block& block, Warp& w, uint32_t mask, int32_t at, const char* what) const;
  bool set_registers(Block& block, Warp& w, uint32_t mask, const HopperCall& call, bool more,
                     int32_t at);
  bool product(Block& block, Warp& w, uint32_t mask, const HopperCall& call, int32_t at);
  void multiply(Block& block, size_t first_warp, const HopperCall& call, int32_t at);
  void read_matrix(Block& block, size_t first_warp, uint64_t descriptor, DType type, int rows,
                   bool mn_major, double* out, int32_t at);
  void fence_products(Block& block, Warp& w, uint32_t mask) const;
  void wait_products(Block& block, Warp& w, uint32_t mask, int64_t pending);
  void touch_sums(const Block& block, const Warp& w, int lane, int64_t offset, int64_t bytes,
                  int32_t at) const;

  // amx.cpp
  void amx(Block& block, Warp& w, const Inst& in, int32_t at);
  // interpret.cpp
  void execute(Block& block, Warp& w, uint32_t mask, int32_t pc, int32_t stop);
  uint32_t check_index(const Block& block, const Warp& w, Lanes lanes, const Inst& in,
                       int32_t at) const;
  [[noreturn]] void outside(const Block& block, const Warp& w, int lane, const Inst& in,
                            int32_t at) const;
  void print(const Warp& w, int lane, const Program& p, const Inst& in) const;
  void scratch(const Warp& w, const Inst& in);
  // extern.cpp
  void call_extern(const Block& block, const Warp& w, const Inst& in, int32_t at);
  void sane(const Block& block, const Warp& w, uint32_t mask, const Inst& in, int32_t at) const;

  // memory.cpp
  Space space(const Block& block, const Warp& w, int64_t object, int lane, int32_t at,
              const char* what) const;
  Place resolve(const Block& block, const Warp& w, int lane, int64_t pointer, int64_t bytes,
                int64_t align, int32_t at, const char* what, int32_t access = -1) const;
  [[noreturn]] void bad_access(const Block& block, const Warp& w, int lane, const Space& s,
                               int64_t offset, int64_t bytes, int64_t align, int32_t at,
                               const char* what, int32_t access) const;
  void aligned(const Block& block, const Warp& w, uint32_t mask, const Inst& in, int32_t at) const;
  void memory(Block& block, Warp& w, Lanes lanes, const Inst& in, int32_t at);
  void atomic(Block& block, Warp& w, int lane, const Inst& in, int32_t at);
  void copy(Block& block, Warp& w, int lane, const Inst& in, int32_t at);
  void wait(Block& block, Warp& w, int lane, int32_t pending);
  void end_copy(Block& block, const Warp& w, int lane, const Copy& c, const Stamp& written);
  void end_copies(Block& block, Warp& w, int lane, const Stamp& written);
  void check_written(const Block& block, const Warp& w, int lane, const Space& s, int64_t offset,
                     int64_t bytes, int32_t at) const;

  // shadow.cpp
  Stamp now(const Block& block, const Warp& w, int lane, int32_t at, uint8_t flags = 0) const;
  ShadowCell& cell(const Space& s, int64_t granule);
  void note_read(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                 uint8_t flags = 0);
  void note_write(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                  uint8_t flags = 0);
  void read_cell_of(Block& block, const Warp& w, int lane, const Space& s, ShadowCell& cell,
                    const Stamp& mine);
  void write_cell_of(Block& block, const Warp& w, int lane, const Space& s, ShadowCell& cell,
                     const Stamp& mine);
  /// Atomics meet plain accesses, and not each other. `fresh`: does not use what was there.
  void note_atomic(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                   bool fresh);
  void add_atomic(const Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                  Stamp mine);
  void check_atomics(const Block& block, const Warp& w, int lane, const Space& s,
                     const ShadowCell& cell, const Stamp& mine, bool write) const;
  void check_reads(const Block& block, const Warp& w, int lane, const Space& s,
                   const ShadowCell& cell, const Stamp& mine) const;
  void never_written(Block& block, const Warp& w, int lane, const Space& s, int32_t at) const;
  void own(const Block& block, const Space& s, int64_t granule, bool write);
  bool ordered(const Block& block, const Warp& w, int lane, const Stamp& s) const {
    if (s.run <= block.launch->first_run) return true;
    if (s.run == block.run && s.thread < kCopies &&
        (s.thread == w.index * kWarp + lane || s.clock <= w.known[s.thread / kWarp]))
      return true;
    return block.program->partial && ordered_elsewhere(block, w, lane, s);
  }
  bool ordered_elsewhere(const Block& block, const Warp& w, int lane, const Stamp& s) const;
  [[noreturn]] void race(const Block& block, const Warp& w, int lane, const Space& s,
                         const Stamp& mine, bool write, const Stamp& other, bool other_write) const;

  // order.cpp: who knows what
  /// Adds to `to` what the lanes did and know.
  void publish(const Block& block, const Warp& w, uint32_t mask, Clock& to) const;
  /// The lanes know what `from` knows.
  void absorb(Block& block, Warp& w, uint32_t mask, const Clock& from);
  void order_warp(Block& block, Warp& w);
  void order_block(Block& block);
  void fence(Block& block, Warp& w, int lane, uint8_t scope);
  void exchange_clocks(Block& block, Warp& w, int lane, const uint8_t* address,
                       std::unordered_map<const uint8_t*, Published>& published);

  [[noreturn]] void fail(const Block& block, const Warp& w, int lane, int32_t at,
                         const std::string& what) const;
  [[noreturn]] void fail(const Block& block, int32_t thread, int32_t at,
                         const std::string& what) const;

  Machine& m_;
  const SimOptions& options_;
  std::vector<Zeroed<ShadowCell>> pages_;  ///< of global shadow memory
  std::unordered_map<const uint8_t*, Published> published_;
  /// Further unordered reads, of programs where two do not tell all.
  std::unordered_map<const ShadowCell*, std::vector<Stamp>> more_reads_;
  /// The last atomics, where there are some.
  std::unordered_map<const ShadowCell*, std::vector<Stamp>> atomics_;
};

}  // namespace hidet::backends::sim
