// bulk.cpp - tensor maps and bulk copies. A copy happens when it is issued; who may see it is told by the clock of its mbarrier's
// phase or its thread's group, so that what comes too early is found whatever the order.
#include <algorithm>

#include "sim/hopper.h"
#include "sim/worker.h"

namespace hidet::backends::sim {

int64_t TensorMap::box_bytes() const {
  auto bytes = static_cast<int64_t>(dtype.bytes());
  for (int d = 0; d < rank; d++) bytes *= box[d];
  return bytes;
}

void TensorMap::write(Cell* row) const {
  const auto put = [&](int i, int64_t v) { std::fill_n(row + int64_t{i} * kWarp, kWarp, Cell{v}); };
  put(0, pointer);
  put(1, static_cast<int64_t>(dtype.code()) | rank << 8 | swizzle << 16);
  for (int d = 0; d < 5; d++) put(2 + d, extent[d]), put(11 + d, box[d]);
  for (int d = 1; d < 5; d++) put(6 + d, stride[d]);
}

TensorMap TensorMap::read(const Cell* row) {
  const auto get = [&](int i) { return row[int64_t{i} * kWarp].i; };
  TensorMap m;
  m.pointer = get(0);
  m.dtype = DType(static_cast<DTypeCode>(get(1) & 255));
  m.rank = static_cast<int>(get(1) >> 8 & 255), m.swizzle = static_cast<int>(get(1) >> 16);
  for (int d = 0; d < 5; d++) m.extent[d] = get(2 + d), m.box[d] = get(11 + d);
  m.stride[0] = static_cast<int64_t>(m.dtype.bytes());
  for (int d = 1; d < 5; d++) m.stride[d] = get(6 + d);
  return m;
}

/// As the driver does, and that the tensor is all there.
TensorMap Worker::make_map(const Block& block, const Warp& w, const HopperCall& call,
                           int32_t at) const {
  TensorMap m;
  m.dtype = DType(static_cast<DTypeCode>(call.attrs.at(0)));
  m.rank = static_cast<int>(call.attrs.at(1)), m.swizzle = static_cast<int>(call.attrs.at(2));
  m.pointer = w.row(call.args[0])->i;
  int64_t last = static_cast<int64_t>(m.dtype.bytes());
  m.stride[0] = last;
  for (int d = 0; d < m.rank; d++) {
    const auto n = static_cast<size_t>(d);
    m.extent[d] = w.row(call.args[1 + n])->i;
    if (d) m.stride[d] = w.row(call.args[static_cast<size_t>(m.rank) + n])->i;
    m.box[d] = call.attrs.at(3 + n);
    if (m.extent[d] < 1 || m.extent[d] > int64_t{1} << 32)
      fail(block, w, 0, at,
           detail::concat("an extent of the tensor map is ", m.extent[d], "; from 1 to 2^32"));
    if (d && (m.stride[d] < 0 || m.stride[d] % 16 || m.stride[d] >= int64_t{1} << 40))
      fail(block, w, 0, at,
           detail::concat("a stride of the tensor map is ", m.stride[d],
                          " bytes; a multiple of 16 below 2^40"));
    last += (m.extent[d] - 1) * m.stride[d];
  }
  const Place whole = resolve(block, w, 0, m.pointer, last, 16, at, "tensor map");
  if (whole.space.shared || whole.space.stride)
    fail(block, w, 0, at,
         "a tensor map of '" + *whole.space.name + "', which is not global memory");
  return m;
}

/// For each row of the box, and each 16 bytes of it: f(offset in the box, bytes that are inside the tensor, their offset from
/// the tensor's begin).
template <class F>
void Worker::each_chunk(const TensorMap& map, const int64_t* at, F&& f) const {
  const auto element = static_cast<int64_t>(map.dtype.bytes());
  int64_t rows = 1;
  for (int d = 1; d < map.rank; d++) rows *= map.box[d];
  const int64_t row_bytes = map.box[0] * element;
  for (int64_t r = 0; r < rows; r++) {
    bool inside = true;
    int64_t rest = r, from = 0;
    for (int d = 1; d < map.rank; d++) {
      const int64_t i = at[d] + rest % map.box[d];
      rest /= map.box[d];
      inside = inside && i >= 0 && i < map.extent[d];
      from += i * map.stride[d];
    }
    for (int64_t c = 0; c < row_bytes; c += 16) {
      // The part [first, end) of the 16 bytes is in the tensor.
      const int64_t begin = at[0] * element + c, limit = map.extent[0] * element;
      const int64_t first = std::clamp<int64_t>(-begin, 0, 16),
                    end = inside ? std::clamp<int64_t>(limit - begin, first, 16) : first;
      f(r * row_bytes + c, first, end - first, from + begin + first);
    }
  }
}

/// Bytes of a block's shared memory by address, inside one tensor.
Place Worker::shared_bytes(Block& block, const Warp& w, int lane, int64_t address, int64_t bytes,
                           int32_t at, const char* what) const {
  for (size_t n = 0; n < block.program->locals.size(); n++) {
    const Local& l = block.program->locals[n];
    if (l.scope == ir::Scope::registers) continue;
    const int64_t start = l.offset + (l.scope == ir::Scope::dynamic_shared ? block.dynamic_at : 0);
    if (address < start || address >= start + l.bytes) continue;
    return resolve(block, w, lane,
                   pointer::make(block.first_local + static_cast<int64_t>(n), address - start),
                   bytes, 1, at, what);
  }
  fail(block, w, lane, at,
       detail::concat(what, " of byte ", address, " of shared memory, which is no tensor's"));
}

/// What the hardware answers with an illegal instruction: boxes that begin within 16 bytes, and stores in front of the tensor.
void Worker::check_start(const Block& block, const Warp& w, int lane, const TensorMap& map,
                         const int64_t* start, bool store, int32_t at, const char* what) const {
  if (start[0] * map.stride[0] % 16)
    fail(block, w, lane, at,
         detail::concat(what, " at the innermost coordinate ", start[0], ", which is ",
                        start[0] * map.stride[0], " bytes; a multiple of 16 is needed"));
  for (int d = 0; store && d < map.rank; d++)
    if (start[d] < 0)
      fail(block, w, lane, at,
           detail::concat(what, " at the coordinate ", start[d],
                          "; a store begins at 0 or behind, a load may begin in front"));
}

/// The tensor map in operand `a` of a call, and the coordinates from operand `c` on.
TensorMap Worker::box_of(const Block& block, const Warp& w, int lane, const HopperCall& call,
                         size_t a, size_t c, int64_t* start, bool store, int32_t at) const {
  const TensorMap map = TensorMap::read(w.row(call.args[a]) + lane);
  if (map.rank != call.attrs.at(0))
    fail(block, w, lane, at,
         detail::concat(call.name, " with ", call.attrs[0], " coordinates of a tensor map of rank ",
                        map.rank));
  for (int d = 0; d < map.rank; d++)
    start[d] = w.row(call.args[c + static_cast<size_t>(d)])[lane].i;
  check_start(block, w, lane, map, start, store, at, call.name);
  return map;
}

/// The policy of L2 that is a call's last operand.
void Worker::check_policy(const Block& block, const Warp& w, int lane, const HopperCall& call,
                          bool hinted, int32_t at) const {
  if (hinted && (w.row(call.args.back())[lane].i & ~0xff) != kPolicy)
    fail(block, w, lane, at,
         std::string(call.name) + " with a cache policy that cache_policy() did not make");
}

/// A number of bytes that bulk copies can move.
int64_t Worker::bulk_bytes(const Block& block, const Warp& w, int lane, const HopperCall& call,
                           size_t a, int32_t at) const {
  const int64_t bytes = w.row(call.args[a])[lane].i;
  if (bytes <= 0 || bytes % 16)
    fail(block, w, lane, at, detail::concat(call.name, " of ", bytes, " bytes; multiples of 16"));
  return bytes;
}

/// The mbarrier where a copy ends.
Mbarrier& Worker::copy_barrier(Block& block, const Warp& w, int lane, int64_t pointer, int32_t at,
                               const char* what) const {
  Block* owner_of;
  Mbarrier& b = mbarrier(block, w, lane, pointer, at, what, &owner_of);
  if (options_.checks && !b.fenced)
    fail(block, w, lane, at,
         std::string(what) + " at '" + b.name +
             "' without fence_mbarrier_init after its mbarrier_init");
  return b;
}

/// For each block that a load goes to: f(block, its mbarrier, the pointer to the target there).
template <class F>
void Worker::each_target(Block& block, const Warp& w, int lane, const HopperCall& call,
                         int64_t targets, int64_t to, int64_t barrier, int32_t at, F&& f) {
  if (!targets || targets >> block.launch->cluster_size())
    fail(block, w, lane, at,
         detail::concat(call.name, " to the blocks of the mask ", targets, " of a cluster of ",
                        block.launch->cluster_size()));
  for (int64_t r = 0; r < block.launch->cluster_size(); r++) {
    if (!(targets >> r & 1)) continue;
    Block& there = *block.cluster->blocks[static_cast<size_t>(r)];
    const auto in_block = [&](int64_t p) {
      return &there == &block ? p
                              : pointer::make(pointer::object(p) + (r + 1) * kLocalsPerBlock,
                                              pointer::offset(p));
    };
    f(there, copy_barrier(block, w, lane, in_block(barrier), at, call.name), in_block(to));
  }
}

/// Copies from global memory: the read lasts until the barrier's phase ends.
void Worker::read_global(Block& block, const Warp& w, int lane, const Place& from,
                         const Stamp& stamp, int32_t at) {
  if (from.space.tracked()) note_async(block, w, lane, from, stamp, Use::read);
  if (from.space.written) check_written(block, w, lane, from.space, from.offset, from.bytes, at);
}

void Worker::tma_load(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const bool several = call.attrs.at(1) != 0;
  int64_t from[5] = {};
  const TensorMap map = box_of(block, w, lane, call, 1, several ? 4 : 3, from, false, at);
  check_policy(block, w, lane, call, call.attrs.at(2) != 0, at);
  const int64_t to = w.row(call.args[0])[lane].i, barrier = w.row(call.args[2])[lane].i,
                targets = several ? w.row(call.args[3])[lane].i : int64_t{1} << block.rank,
                bytes = map.box_bytes();
  const int64_t address =
      shared_place(block, w, lane, to, bytes, 128, at, "tma_load").data - block.shared.get();
  const Place source = resolve(block, w, lane, map.pointer, 0, 1, at, "tma_load");
  each_target(block, w, lane, call, targets, to, barrier, at,
              [&](Block& there, Mbarrier& b, int64_t to_there) {
                const Stamp stamp{there.run, b.phase + 1, at, b.slot, 0};
                Place target = resolve(block, w, lane, to_there, bytes, 1, at, "tma_load");
                const int64_t base = target.offset;
                each_chunk(
                    map, from, [&](int64_t offset, int64_t skip, int64_t inside, int64_t global) {
                      target.offset = base + swizzled(address + offset, map.swizzle) - address,
                      target.bytes = 16;
                      target.data = target.space.data + target.offset;
                      if (target.space.tracked())
                        note_async(block, w, lane, target, stamp, Use::write);
                      std::fill_n(target.data, 16, uint8_t{0});
                      if (!inside) return;
                      Place part = source;
                      part.offset += global, part.bytes = inside, part.data += global;
                      read_global(block, w, lane, part, stamp, at);
                      std::copy_n(part.data, inside, target.data + skip);
                    });
                count_bytes(there, b, bytes);
              });
}

/// Bytes of a copy arrive: as they are, or combined with what is there.
void Worker::deliver(Block& block, const Warp& w, int lane, const Place& to, const uint8_t* from,
                     const Stamp& stamp, const Reduction* r, int32_t at) {
  const Use use = !r ? Use::write : r->of_thread ? Use::update : Use::atomic;
  if (to.space.tracked()) note_async(block, w, lane, to, stamp, use);
  if (to.space.written && r) check_written(block, w, lane, to.space, to.offset, to.bytes, at);
  if (to.space.written) std::fill_n(to.space.written + to.offset, to.bytes, uint8_t{1});
  if (!r) return (void)std::copy_n(from, to.bytes, to.data);
  const auto size = static_cast<int64_t>(r->dtype.bytes());
  for (int64_t i = 0; i < to.bytes; i += size) {
    const Cell old = read_cell(to.data + i, r->dtype.code()),
               v = read_cell(from + i, r->dtype.code());
    write_cell(to.data + i, r->dtype.code(), combined(r->op, old, v, r->dtype));
  }
}

/// The stamps of a thread's store that is under way: of its reads, of its writes.
Stamp Worker::store_stamp(const Block& block, const Warp& w, int lane, uint16_t slot,
                          int32_t at) const {
  const Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  return {block.run, t.stores + 1, at, static_cast<uint16_t>(slot + t.number), 0};
}

void Worker::tma_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                       int32_t at) {
  int64_t to[5] = {};
  const TensorMap map = box_of(block, w, lane, call, 0, 2, to, true, at);
  check_policy(block, w, lane, call, call.attrs.at(reduces ? 2 : 1) != 0, at);
  Reduction reduction{ir::Combine::add, map.dtype};
  if (reduces) {
    reduction.op = static_cast<ir::Combine>(call.attrs.at(1));
    // The hardware takes a map of i64 for an illegal instruction, but for min and max; one of u64 gives the same bits.
    const bool refused =
        map.dtype == i64 && reduction.op != ir::Combine::min && reduction.op != ir::Combine::max;
    if (refused || !ir::can_reduce(reduction.op, map.dtype, false))
      fail(block, w, lane, at,
           detail::concat("there is no bulk reduction '", ir::name_of(reduction.op), "' of ",
                          map.dtype.name(), refused ? " maps; of u64 there is" : ""));
  }
  Place from = shared_place(block, w, lane, w.row(call.args[1])[lane].i, map.box_bytes(), 128, at,
                            call.name);
  const int64_t address = from.data - block.shared.get(), base = from.offset;
  const Place target = resolve(block, w, lane, map.pointer, 0, 1, at, call.name);
  const Stamp read = store_stamp(block, w, lane, kStoreReads, at),
              write = store_stamp(block, w, lane, kStoreWrites, at);
  each_chunk(map, to, [&](int64_t offset, int64_t skip, int64_t inside, int64_t global) {
    if (!inside) return;
    from.offset = base + swizzled(address + offset, map.swizzle) - address + skip;
    from.bytes = inside, from.data = from.space.data + from.offset;
    if (from.space.tracked()) note_async(block, w, lane, from, read, Use::read);
    Place part = target;
    part.offset += global, part.bytes = inside, part.data += global;
    deliver(block, w, lane, part, from.data, write, reduces ? &reduction : nullptr, at);
  });
}

void Worker::tma_prefetch(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  int64_t start[5] = {};
  (void)box_of(block, w, lane, call, 0, 1, start, false, at);
  check_policy(block, w, lane, call, call.attrs.at(1) != 0, at);
}

void Worker::require_global(const Block& block, const Warp& w, int lane, const Place& p, int32_t at,
                            const char* what) const {
  if (p.space.shared || p.space.stride)
    fail(block, w, lane, at,
         std::string(what) + " '" + *p.space.name + "', which is not global memory");
}

void Worker::bulk_load(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const int64_t bytes = bulk_bytes(block, w, lane, call, 2, at),
                targets = call.attrs.at(0) ? arg(4) : int64_t{1} << block.rank;
  check_policy(block, w, lane, call, call.attrs.at(1) != 0, at);
  (void)shared_place(block, w, lane, arg(0), bytes, 16, at, "bulk_load");
  const Place from = resolve(block, w, lane, arg(1), bytes, 16, at, "bulk_load");
  require_global(block, w, lane, from, at, "bulk_load from");
  each_target(block, w, lane, call, targets, arg(0), arg(3), at,
              [&](Block& there, Mbarrier& b, int64_t to_there) {
                const Stamp stamp{there.run, b.phase + 1, at, b.slot, 0};
                read_global(block, w, lane, from, stamp, at);
                deliver(block, w, lane,
                        resolve(block, w, lane, to_there, bytes, 1, at, "bulk_load"), from.data,
                        stamp, nullptr, at);
                count_bytes(there, b, bytes);
              });
}

void Worker::bulk_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                        int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const int64_t bytes = bulk_bytes(block, w, lane, call, 2, at);
  check_policy(block, w, lane, call, call.attrs.back() != 0, at);
  const Place from = shared_place(block, w, lane, arg(1), bytes, 16, at, call.name),
              to = resolve(block, w, lane, arg(0), bytes, 16, at, call.name);
  require_global(block, w, lane, to, at, reduces ? "bulk_reduce to" : "bulk_store to");
  if (from.space.tracked())
    note_async(block, w, lane, from, store_stamp(block, w, lane, kStoreReads, at), Use::read);
  const Reduction r = reduces ? Reduction::of(call) : Reduction{};
  deliver(block, w, lane, to, from.data, store_stamp(block, w, lane, kStoreWrites, at),
          reduces ? &r : nullptr, at);
}

void Worker::bulk_prefetch(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const int64_t bytes = bulk_bytes(block, w, lane, call, 1, at);
  check_policy(block, w, lane, call, call.attrs.at(0) != 0, at);
  require_global(block, w, lane,
                 resolve(block, w, lane, w.row(call.args[0])[lane].i, bytes, 16, at, call.name), at,
                 "bulk_prefetch of");
}

/// From this block's shared memory to that of another, whose mbarrier counts the bytes.
void Worker::bulk_send(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                       int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const int64_t bytes = bulk_bytes(block, w, lane, call, 2, at);
  const Place from = shared_place(block, w, lane, arg(1), bytes, 16, at, call.name),
              to = shared_place(block, w, lane, arg(0), bytes, 16, at, call.name);
  if (&owner(block, arg(1)) != &block)
    fail(block, w, lane, at,
         std::string(call.name) + " from '" + *from.space.name + "' of another block");
  const Reduction r = reduces ? Reduction::of(call) : Reduction{};
  send(block, w, lane, call, to, arg(0), arg(3), from, reduces ? &r : nullptr, at);
}

/// Bytes go to shared memory of the cluster at `pointer`, whose block's mbarrier counts them; `from` may be none's memory.
void Worker::send(Block& block, const Warp& w, int lane, const HopperCall& call, const Place& to,
                  int64_t pointer, int64_t barrier, const Place& from, const Reduction* r,
                  int32_t at) {
  Block& there = owner(block, pointer);
  if (&owner(block, barrier) != &there)
    fail(block, w, lane, at,
         std::string(call.name) + " to one block, and its mbarrier is in another");
  Mbarrier& b = copy_barrier(block, w, lane, barrier, at, call.name);
  const Stamp stamp{there.run, b.phase + 1, at, b.slot, 0};
  if (from.space.tracked()) note_async(block, w, lane, from, stamp, Use::read);
  deliver(block, w, lane, to, from.data, stamp, r, at);
  count_bytes(there, b, to.bytes);
}

/// A thread's value to shared memory of the cluster.
void Worker::async_store(Block& block, Warp& w, int lane, const HopperCall& call, bool reduces,
                         int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const DType t(static_cast<DTypeCode>(call.attrs.at(reduces ? 1 : 0)));
  const auto each = static_cast<int64_t>(t.bytes());
  const int lanes = reduces ? 1 : static_cast<int>(call.attrs.at(1));
  uint8_t value[16];
  for (int k = 0; k < lanes; k++)
    write_cell(value + k * each, t.code(), w.row(call.args[1] + k)[lane]);
  const Place to = shared_place(block, w, lane, arg(0), each * lanes, each * lanes, at, call.name);
  Place from;
  from.data = value;
  const Reduction r = reduces ? Reduction::of(call, true) : Reduction{};
  send(block, w, lane, call, to, arg(0), arg(2), from, reduces ? &r : nullptr, at);
}

/// What cache_policy() gives: a mark, and what it was told.
int64_t Worker::make_policy(const Block& block, const Warp& w, int lane, const HopperCall& call,
                            int32_t at) const {
  const float part = w.row(call.args[0])[lane].f;
  if (!(part > 0 && part <= 1))
    fail(block, w, lane, at,
         detail::concat("a cache policy for a part of ", part, "; above 0, up to 1"));
  return kPolicy | call.attrs.at(0) << 4 | call.attrs.at(1);
}

}  // namespace hidet::backends::sim
