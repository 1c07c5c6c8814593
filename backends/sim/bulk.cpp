// bulk.cpp - tensor maps and bulk copies. A copy happens when it is issued; who may see it is told by the clock of its mbarrier's
// phase or its thread's group, so that what comes too early is found whatever the order.
#include <algorithm>

#include "sim/hopper.h"
#include "sim/machine.h"

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
                         const int64_t* start, bool store, int32_t at) const {
  const char* what = store ? "tma_store" : "tma_load";
  if (start[0] * map.stride[0] % 16)
    fail(block, w, lane, at,
         detail::concat(what, " at the innermost coordinate ", start[0], ", which is ",
                        start[0] * map.stride[0], " bytes; a multiple of 16 is needed"));
  for (int d = 0; store && d < map.rank; d++)
    if (start[d] < 0)
      fail(block, w, lane, at,
           detail::concat("tma_store at the coordinate ", start[d],
                          "; a store begins at 0 or behind, a load may begin in front"));
}

void Worker::tma_load(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const TensorMap map = TensorMap::read(w.row(call.args[1]) + lane);
  const bool several = call.attrs.at(1) != 0;
  int64_t from[5] = {};
  for (int d = 0; d < map.rank; d++)
    from[d] = w.row(call.args[(several ? 4u : 3u) + static_cast<size_t>(d)])[lane].i;
  if (map.rank != call.attrs[0])
    fail(block, w, lane, at,
         detail::concat("tma_load with ", call.attrs[0], " coordinates of a tensor map of rank ",
                        map.rank));
  check_start(block, w, lane, map, from, false, at);
  const int64_t to = w.row(call.args[0])[lane].i, barrier = w.row(call.args[2])[lane].i;
  const int64_t targets = several ? w.row(call.args[3])[lane].i : int64_t{1} << block.rank;
  const int64_t bytes = map.box_bytes();
  const Place first = shared_place(block, w, lane, to, bytes, 128, at, "tma_load");
  const int64_t address = first.data - block.shared.get();
  if (!targets || targets >> block.launch->cluster_size())
    fail(block, w, lane, at,
         detail::concat("tma_load to the blocks of the mask ", targets, " of a cluster of ",
                        block.launch->cluster_size()));
  const Place source = resolve(block, w, lane, map.pointer, 0, 1, at, "tma_load");
  for (int64_t r = 0; r < block.launch->cluster_size(); r++) {
    if (!(targets >> r & 1)) continue;
    Block& there = *block.cluster->blocks[static_cast<size_t>(r)];
    const auto in_block = [&](int64_t p) {
      return &there == &block ? p
                              : pointer::make(pointer::object(p) + (r + 1) * kLocalsPerBlock,
                                              pointer::offset(p));
    };
    Block* owner_of;
    Mbarrier& b = mbarrier(block, w, lane, in_block(barrier), at, "tma_load", &owner_of);
    if (options_.checks && !b.fenced)
      fail(block, w, lane, at,
           "tma_load at '" + b.name + "' without fence_mbarrier_init after its mbarrier_init");
    const Stamp stamp{there.run, b.phase + 1, at, b.slot, 0};
    Place target = resolve(block, w, lane, in_block(to), bytes, 1, at, "tma_load");
    const int64_t base = target.offset;
    each_chunk(map, from, [&](int64_t offset, int64_t skip, int64_t inside, int64_t global) {
      target.offset = base + swizzled(address + offset, map.swizzle) - address, target.bytes = 16;
      target.data = target.space.data + target.offset;
      if (target.space.tracked()) note_async(block, w, lane, target, stamp, true);
      std::fill_n(target.data, 16, uint8_t{0});
      if (!inside) return;
      Place part = source;
      part.offset += global, part.bytes = inside, part.data += global;
      if (part.space.tracked()) note_read(block, w, lane, part, at);
      if (part.space.written) check_written(block, w, lane, part.space, part.offset, inside, at);
      std::copy_n(part.data, inside, target.data + skip);
    });
    count_bytes(there, b, bytes);
  }
}

void Worker::tma_store(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const TensorMap map = TensorMap::read(w.row(call.args[0]) + lane);
  if (map.rank != call.attrs.at(0))
    fail(block, w, lane, at,
         detail::concat("tma_store with ", call.attrs[0], " coordinates of a tensor map of rank ",
                        map.rank));
  int64_t to[5] = {};
  for (int d = 0; d < map.rank; d++) to[d] = w.row(call.args[2 + static_cast<size_t>(d)])[lane].i;
  check_start(block, w, lane, map, to, true, at);
  Place from = shared_place(block, w, lane, w.row(call.args[1])[lane].i, map.box_bytes(), 128, at,
                            "tma_store");
  const int64_t address = from.data - block.shared.get(), base = from.offset;
  const Place target = resolve(block, w, lane, map.pointer, 0, 1, at, "tma_store");
  const Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  const auto number = static_cast<uint16_t>(t.number);
  const Stamp read{block.run, t.stores + 1, at, static_cast<uint16_t>(kStoreReads + number), 0},
      write{block.run, t.stores + 1, at, static_cast<uint16_t>(kStoreWrites + number), 0};
  each_chunk(map, to, [&](int64_t offset, int64_t skip, int64_t inside, int64_t global) {
    if (!inside) return;
    from.offset = base + swizzled(address + offset, map.swizzle) - address + skip;
    from.bytes = inside, from.data = from.space.data + from.offset;
    if (from.space.tracked()) note_async(block, w, lane, from, read, false);
    Place part = target;
    part.offset += global, part.bytes = inside, part.data += global;
    if (part.space.tracked()) note_async(block, w, lane, part, write, true);
    if (part.space.written) std::fill_n(part.space.written + part.offset, inside, uint8_t{1});
    std::copy_n(from.data, inside, part.data);
  });
}

void Worker::bulk_load(Block& block, Warp& w, int lane, const HopperCall& call, bool several,
                       int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const int64_t bytes = arg(2), targets = several ? arg(4) : int64_t{1} << block.rank;
  if (bytes <= 0 || bytes % 16)
    fail(block, w, lane, at, detail::concat("bulk_load of ", bytes, " bytes; multiples of 16"));
  if (!targets || targets >> block.launch->cluster_size())
    fail(block, w, lane, at,
         detail::concat("bulk_load to the blocks of the mask ", targets, " of a cluster of ",
                        block.launch->cluster_size()));
  (void)shared_place(block, w, lane, arg(0), bytes, 16, at, "bulk_load");
  const Place from = resolve(block, w, lane, arg(1), bytes, 16, at, "bulk_load");
  if (from.space.shared || from.space.stride)
    fail(block, w, lane, at,
         "bulk_load from '" + *from.space.name + "', which is not global memory");
  if (from.space.tracked()) note_read(block, w, lane, from, at);
  if (from.space.written) check_written(block, w, lane, from.space, from.offset, bytes, at);
  for (int64_t r = 0; r < block.launch->cluster_size(); r++) {
    if (!(targets >> r & 1)) continue;
    Block& there = *block.cluster->blocks[static_cast<size_t>(r)];
    const auto in_block = [&](int64_t p) {
      return &there == &block ? p
                              : pointer::make(pointer::object(p) + (r + 1) * kLocalsPerBlock,
                                              pointer::offset(p));
    };
    Block* owner_of;
    Mbarrier& b = mbarrier(block, w, lane, in_block(arg(3)), at, "bulk_load", &owner_of);
    if (options_.checks && !b.fenced)
      fail(block, w, lane, at,
           "bulk_load at '" + b.name + "' without fence_mbarrier_init after its mbarrier_init");
    const Place to = resolve(block, w, lane, in_block(arg(0)), bytes, 1, at, "bulk_load");
    if (to.space.tracked())
      note_async(block, w, lane, to, {there.run, b.phase + 1, at, b.slot, 0}, true);
    std::copy_n(from.data, bytes, to.data);
    count_bytes(there, b, bytes);
  }
}

void Worker::bulk_store(Block& block, Warp& w, int lane, const HopperCall& call, int32_t at) {
  const auto arg = [&](size_t a) { return w.row(call.args[a])[lane].i; };
  const int64_t bytes = arg(2);
  if (bytes <= 0 || bytes % 16)
    fail(block, w, lane, at, detail::concat("bulk_store of ", bytes, " bytes; multiples of 16"));
  const Place from = shared_place(block, w, lane, arg(1), bytes, 16, at, "bulk_store"),
              to = resolve(block, w, lane, arg(0), bytes, 16, at, "bulk_store");
  if (to.space.shared || to.space.stride)
    fail(block, w, lane, at, "bulk_store to '" + *to.space.name + "', which is not global memory");
  const Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  const auto number = static_cast<uint16_t>(t.number);
  const auto stamp = [&](uint16_t slot) {
    return Stamp{block.run, t.stores + 1, at, static_cast<uint16_t>(slot + number), 0};
  };
  if (from.space.tracked()) note_async(block, w, lane, from, stamp(kStoreReads), false);
  if (to.space.tracked()) note_async(block, w, lane, to, stamp(kStoreWrites), true);
  if (to.space.written) std::fill_n(to.space.written + to.offset, bytes, uint8_t{1});
  std::copy_n(from.data, bytes, to.data);
}

// --- checks

std::string Worker::describe(const Block& block, const Stamp& s, bool write) const {
  const ir::SourceLoc& loc = block.program->locs[static_cast<size_t>(s.at)];
  const std::string line = loc.line ? loc.text() : "an unknown line";
  if (s.thread >= kStoreReads) return "the bulk store at " + line;
  if (s.thread >= kProducts) return "the wgmma at " + line;
  if (s.thread >= kCopies) return "the bulk copy at " + line;
  const int64_t n = s.thread, idx[3] = {n % block.dim[0], n / block.dim[0] % block.dim[1],
                                        n / (block.dim[0] * block.dim[1])};
  return std::string("the ") + (write ? "write" : "read") + " at " + line + " by thread " +
         triple(idx);
}

void Worker::race_async(const Block& block, const Warp& w, int lane, const Space& s,
                        const Stamp& mine, bool write, const Stamp& other, bool other_write) const {
  const char* missing = other.thread >= kStoreReads ? other_write ? "bulk_wait" : "bulk_wait_read"
                        : other.thread >= kProducts ? "wgmma_wait"
                        : other.thread >= kCopies   ? "mbarrier_wait"
                                                    : "a barrier";
  const std::string own = mine.thread >= kStoreReads ? "bulk store"
                          : mine.thread >= kProducts ? "wgmma"
                          : mine.thread >= kCopies   ? "bulk copy"
                          : write                    ? "write"
                                                     : "read";
  fail(block, w, lane, mine.at,
       detail::concat("race on '", *s.name, "': this ", own, " and ",
                      describe(block, other, other_write), " are not ordered by ", missing));
}

/// An access of a copy or product: what comes before it must be known to the thread that issues it, and what threads wrote must
/// have gone through a proxy fence. Where several warps issue it, only the last call records it.
void Worker::note_async(Block& block, const Warp& w, int lane, const Place& place,
                        const Stamp& stamp, bool write, bool record) {
  const Space& s = place.space;
  const int64_t end = (place.offset + place.bytes - 1) >> s.shift;
  const auto live = [&](const Stamp& x) { return !s.shared || x.run >= block.first_run; };
  const auto check = [&](const Stamp& x, bool other_write) {
    if (live(x) && !(x.run == stamp.run && x.thread == stamp.thread && x.clock == stamp.clock) &&
        !ordered(block, w, lane, x))
      race_async(block, w, lane, s, stamp, write, x, other_write);
  };
  for (int64_t g = place.offset >> s.shift; g <= end; g++) {
    if (block.launch->parallel && !s.shared) own(block, s, g, write);
    ShadowCell& c = cell(s, g);
    if (c.write.same(stamp) || (!write && c.read.same(stamp))) continue;
    if (s.shared && live(c.write) && (c.write.flags & kPending))
      fail(block, w, lane, stamp.at,
           "race on '" + *s.name + "': the copy at " +
               block.program->locs[static_cast<size_t>(c.write.at)].text() +
               " was not waited for (cp_async_wait)");
    if (write) {
      check(c.write, true), check(c.read, false), check(c.other_read, false);
      const auto more = more_reads_.find(&c);
      if (more != more_reads_.end()) {
        for (const Stamp& x : more->second) check(x, false);
        more_reads_.erase(more);
      }
      c.write = stamp;
      continue;
    }
    if (s.shared && !live(c.write))
      fail(block, w, lane, stamp.at,
           "read of shared memory '" + *s.name + "' that was never written");
    check(c.write, true);
    const Stamp& x = c.write;
    if (s.shared && live(x) && x.thread < kCopies) {
      const auto& e = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
      if (!w.more.covers(x.run | kFenced, x.thread, x.clock) &&
          !(e && e->known.covers(x.run | kFenced, x.thread, x.clock)))
        fail(block, w, lane, stamp.at,
             detail::concat("'", *s.name, "' is read by a copy or product, and there is no ",
                            "fence_proxy_async after ", describe(block, x, true)));
    }
    if (!record) continue;
    if (!live(c.read) || ordered(block, w, lane, c.read)) c.read = stamp;
    else if (!live(c.other_read) || ordered(block, w, lane, c.other_read)) c.other_read = stamp;
    else more_reads_[&c].push_back(stamp);
  }
}

}  // namespace hidet::backends::sim
