// memory.cpp - accesses to memory: bounds, alignment, what was never written; loads, stores, atomics, asynchronous copies.
#include <algorithm>
#include <cstring>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

bool same_bits(Cell a, Cell b, DType t) {
  uint8_t x[8] = {}, y[8] = {};
  write_cell(x, t.code(), a);
  write_cell(y, t.code(), b);
  return std::memcmp(x, y, sizeof x) == 0;
}

/// By DTypeCode, up to tf32.
constexpr uint8_t kBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4, 8, 4};

template <DTypeCode T>
void load_lanes(Cell* d, uint8_t* const* place, uint32_t mask, int lanes) {
  constexpr size_t size = kBytes[static_cast<size_t>(T)];
  for (int k = 0; k < lanes; k++, d += kWarp)
    bits(mask, [&](int i) { d[i] = read_cell(place[i] + static_cast<size_t>(k) * size, T); });
}
template <DTypeCode T>
void store_lanes(const Cell* v, uint8_t* const* place, uint32_t mask, int lanes) {
  constexpr size_t size = kBytes[static_cast<size_t>(T)];
  bits(mask, [&](int i) {
    for (int k = 0; k < lanes; k++)
      write_cell(place[i] + static_cast<size_t>(k) * size, T, v[k * kWarp + i]);
  });
}
struct MoveRow {
  void (*load)(Cell*, uint8_t* const*, uint32_t, int);
  void (*store)(const Cell*, uint8_t* const*, uint32_t, int);
};
template <DTypeCode T>
constexpr MoveRow kMove{load_lanes<T>, store_lanes<T>};
constexpr MoveRow kMoves[] = {
    kMove<DTypeCode::boolean>, kMove<DTypeCode::i8>,  kMove<DTypeCode::i16>,  kMove<DTypeCode::i32>,
    kMove<DTypeCode::i64>,     kMove<DTypeCode::u8>,  kMove<DTypeCode::u16>,  kMove<DTypeCode::u32>,
    kMove<DTypeCode::u64>,     kMove<DTypeCode::f16>, kMove<DTypeCode::bf16>, kMove<DTypeCode::f32>,
    kMove<DTypeCode::f64>,     kMove<DTypeCode::tf32>};

}  // namespace

std::string triple(const int64_t* v) {
  return detail::concat("(", v[0], ", ", v[1], ", ", v[2], ")");
}

void Worker::fail(const Block& block, int32_t thread, int32_t at, const std::string& what) const {
  const Program& p = *block.program;
  std::string who = "'" + p.name + "'";
  if (p.on_gpu) {
    const int32_t* idx = block.threads[static_cast<size_t>(thread)].idx;
    const int64_t wide[3] = {idx[0], idx[1], idx[2]};
    who = "kernel " + who + ", block " + triple(block.idx) + ", thread " + triple(wide);
  }
  throw Error(ErrorCode::usage, what + " (" + who + ")", p.locs[static_cast<size_t>(at)].text());
}
void Worker::fail(const Block& block, const Warp& w, int lane, int32_t at,
                  const std::string& what) const {
  fail(block, w.index * kWarp + lane, at, what);
}

Space Worker::space(const Block& block, const Warp& w, int64_t object, int lane, int32_t at,
                    const char* what) const {
  Space s;
  if (object < kFirstLocal) {
    if (object <= 0 || object >= static_cast<int64_t>(m_.objects_.size()))
      fail(block, w, lane, at, std::string(what) + " through a null pointer");
    Object& o = m_.objects_[static_cast<size_t>(object)];
    s.size = o.bytes, s.dtype = o.dtype, s.data = o.data, s.name = &o.name, s.shift = o.shift;
    if (options_.checks) {
      s.granule = block.program->on_gpu ? o.granule : -1;
      s.written = o.written.empty() ? nullptr : o.written.data();
    }
    return s;
  }
  const Block* in = &block;
  if (block.program->hopper && block.cluster && object >= block.first_local + kLocalsPerBlock) {
    const int64_t rank = (object - block.first_local) / kLocalsPerBlock - 1;
    if (rank < static_cast<int64_t>(block.cluster->blocks.size())) {
      in = block.cluster->blocks[static_cast<size_t>(rank)].get();
      object -= (rank + 1) * kLocalsPerBlock;
      if (std::none_of(in->warps.begin(), in->warps.end(), [](const Warp& x) { return x.live(); }))
        fail(block, w, lane, at,
             detail::concat(what, " of shared memory of block ", rank,
                            " of the cluster, which has ended"));
    }
  }
  const auto local = static_cast<size_t>(object - block.first_local);
  if (object < block.first_local || local >= block.program->locals.size())
    fail(block, w, lane, at,
         std::string(what) + " through a pointer to memory of another function");
  const Local& l = block.program->locals[local];
  s.size = l.bytes, s.dtype = l.dtype, s.name = &l.name;
  if (l.scope == ir::Scope::registers) {
    s.data = w.memory + l.offset;
    s.stride = block.program->register_bytes;
    if (options_.checks) s.written = w.written + l.offset;
    return s;
  }
  const int64_t start = l.offset + (l.scope == ir::Scope::dynamic_shared ? in->dynamic_at : 0);
  s.data = in->shared.get() + start;
  s.shared = true;
  s.shift = std::min(m_.finest_, l.dtype.bytes() < 2 ? 0 : l.dtype.bytes() < 4 ? 1 : 2);
  // One cell a byte is there.
  if (options_.checks) s.cells = in->shared_shadow.get() + start;
  return s;
}

void Worker::bad_access(const Block& block, const Warp& w, int lane, const Space& s, int64_t offset,
                        int64_t bytes, int64_t align, int32_t at, const char* what,
                        int32_t access) const {
  if (offset >= 0 && offset <= s.size - bytes)
    fail(block, w, lane, at,
         detail::concat("misaligned ", what, " of '", *s.name, "': byte ", offset,
                        " is not a multiple of ", align));
  const auto element = static_cast<int64_t>(s.dtype.bytes());
  const ir::Var* seen =
      access >= 0 ? block.program->accesses[static_cast<size_t>(access)].tensor : nullptr;
  const std::string as = seen && seen->name != *s.name ? " (as '" + seen->name + "')" : "";
  fail(block, w, lane, at,
       detail::concat(what, " outside '", *s.name, "'", as, ": ",
                      bytes > element ? detail::concat(bytes, " bytes from ") : "", "index ",
                      offset >= 0 ? offset / element : -((-offset + element - 1) / element),
                      " on; it has ", s.size / element, " elements"));
}

Place Worker::resolve(const Block& block, const Warp& w, int lane, int64_t pointer, int64_t bytes,
                      int64_t align, int32_t at, const char* what, int32_t access) const {
  const int64_t offset = pointer::offset(pointer);
  const Space s = space(block, w, pointer::object(pointer), lane, at, what);
  if (offset < 0 || offset > s.size - bytes || (align > 1 && offset % align))
    bad_access(block, w, lane, s, offset, bytes, align, at, what, access);
  return {s, offset, bytes, s.data + s.stride * lane + offset};
}

void Worker::check_written(const Block& block, const Warp& w, int lane, const Space& s,
                           int64_t offset, int64_t bytes, int32_t at) const {
  const uint8_t* written = s.written + s.stride * lane + offset;
  if (bytes == 4 && raw<uint32_t>(written) == 0x01010101u) return;
  for (int64_t i = 0; i < bytes; i++)
    if (!written[i])
      fail(block, w, lane, at,
           detail::concat("read of '", *s.name, "'", s.stride ? " in registers" : "", ", index ",
                          (offset + i) / static_cast<int64_t>(s.dtype.bytes()),
                          ", that was never written"));
}

/// Checks a promise. Tensors begin at multiples of whatever is asked: what the host has here lies elsewhere on a GPU.
void Worker::aligned(const Block& block, const Warp& w, uint32_t mask, const Inst& in,
                     int32_t at) const {
  if (!options_.checks) return;
  bits(mask, [&](int i) {
    const int64_t p = w.row(in.a)[i].i, offset = pointer::offset(p);
    if (offset % in.c == 0) return;
    const std::string what = in.sub ? "atomic access" : "assume_aligned";
    const Space s = space(block, w, pointer::object(p), i, at, what.c_str());
    fail(
        block, w, i, at,
        detail::concat(what, " of '", *s.name, "': byte ", offset, " is not a multiple of ", in.c));
  });
}

void Worker::memory(Block& block, Warp& w, Lanes lanes, const Inst& in, int32_t at) {
  const bool write = in.op == Op::store;
  const char* what = write ? "write" : "read";
  const int64_t size = kBytes[static_cast<size_t>(in.type)];
  const int64_t bytes = size * in.lanes, align = in.sub ? bytes : size;
  const Cell *base = w.row(in.a), *index = w.row(in.b);
  uint8_t* data[kWarp] = {};
  int64_t object = -1;
  const int fresh = block.program->hopper ? kFresh : 1;
  Place place;
  Space& s = place.space;
  place.bytes = bytes;
  bits(lanes.mask, [&](int i) {
    const int64_t p = base[i].i + index[i].i * size;
    if (pointer::object(p) != object)
      object = pointer::object(p), s = space(block, w, object, i, at, what);
    const int64_t offset = pointer::offset(p);
    if (offset < 0 || offset > s.size - bytes || (offset & (align - 1))) [[unlikely]]
      bad_access(block, w, i, s, offset, bytes, align, at, what, in.c);
    data[i] = s.data + s.stride * i + offset;
    if (s.tracked()) {
      place.offset = offset;
      write ? note_write(block, w, i, place, at) : note_read(block, w, i, place, at);
    }
    if (!s.written) return;
    if (s.stride && block.program->hopper)
      touch_sums(block, w, i, s.data - w.memory + offset, bytes, at);
    if (write)
      std::memset(s.written + s.stride * i + offset, s.stride ? fresh : 1,
                  static_cast<size_t>(bytes));
    else check_written(block, w, i, s, offset, bytes, at);
  });
  const MoveRow& move = kMoves[static_cast<size_t>(in.type)];
  if (write) move.store(w.row(in.dst), data, lanes.mask, in.lanes);
  else move.load(w.row(in.dst), data, lanes.mask, in.lanes);
}

void Worker::atomic(Block& block, Warp& w, int lane, const Inst& in, int32_t at) {
  const DType type(in.type);
  const auto each = static_cast<int64_t>(type.bytes()), bytes = each * in.lanes;
  const Place place =
      resolve(block, w, lane, w.row(in.a)[lane].i, bytes, bytes, at, "atomic access");
  const Space& s = place.space;
  if (s.tracked()) {
    note_atomic(block, w, lane, place, at, in.sub == kExchange);
    if (block.program->fences)
      exchange_clocks(block, w, lane, place.data,
                      s.shared ? owner(block, w.row(in.a)[lane].i).published : published_);
  }
  if (s.written) {
    if (in.sub != kExchange) check_written(block, w, lane, s, place.offset, bytes, at);
    std::memset(s.written + s.stride * lane + place.offset, 1, static_cast<size_t>(bytes));
  }
  Cell old[2];  // 16 bytes are two
  bool same = true;
  for (int k = 0; k < in.lanes; k++) {
    old[k] = read_cell(place.data + k * each, in.type);
    same = same && same_bits(old[k], w.row(in.b + k)[lane], type);
  }
  for (int k = 0; k < in.lanes; k++) {
    const Cell v = w.row(in.b + k)[lane];
    const Cell next = in.sub == kExchange ? v
                      : in.sub == kCompare
                          ? (same ? w.row(in.c + k)[lane] : old[k])
                          : combined(static_cast<ir::Combine>(in.sub), old[k], v, type);
    write_cell(place.data + k * each, in.type, next);
    w.row(in.dst + k)[lane] = old[k];
  }
}

void Worker::copy(Block& block, Warp& w, int lane, const Inst& in, int32_t at) {
  Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  Copy c{w.row(in.a)[lane].i, in.lanes, t.group, at, {}};
  const int64_t kept = in.sub ? w.row(in.c)[lane].i : c.bytes;
  if (kept < 0 || kept > c.bytes)
    fail(block, w, lane, at, detail::concat("cp_async of ", kept, " of ", c.bytes, " bytes"));
  const Place from = resolve(block, w, lane, kept ? w.row(in.b)[lane].i : c.to, kept, c.bytes, at,
                             "cp_async read");
  const Place to = resolve(block, w, lane, c.to, c.bytes, c.bytes, at, "cp_async write");
  if (!to.space.shared || (kept && (from.space.shared || from.space.stride)))
    fail(block, w, lane, at,
         "cp_async copies from global to shared memory, not from '" + *from.space.name + "' to '" +
             *to.space.name + "'");
  if (from.space.tracked() && kept) note_read(block, w, lane, from, at);
  if (from.space.written && kept) check_written(block, w, lane, from.space, from.offset, kept, at);
  if (to.space.tracked()) note_write(block, w, lane, to, at, kPending);
  std::memcpy(c.data, from.data, static_cast<size_t>(kept));
  t.copies.push_back(c);
}

void Worker::wait(Block& block, Warp& w, int lane, int32_t pending) {
  Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  size_t kept = 0;
  for (const Copy& c : t.copies) {
    if (c.group >= t.group - pending) t.copies[kept++] = c;
    else end_copy(block, w, lane, c, now(block, w, lane, c.at));
  }
  t.copies.resize(kept);
}

/// The thread's copies are in memory, written by `written`.
void Worker::end_copies(Block& block, Warp& w, int lane, const Stamp& written) {
  Thread& t = block.threads[static_cast<size_t>(w.index * kWarp + lane)];
  for (const Copy& c : t.copies) end_copy(block, w, lane, c, written);
  t.copies.clear();
}

void Worker::end_copy(Block& block, const Warp& w, int lane, const Copy& c, const Stamp& written) {
  const Place to = resolve(block, w, lane, c.to, c.bytes, 1, c.at, "cp_async write");
  std::memcpy(to.data, c.data, static_cast<size_t>(c.bytes));
  if (!to.space.tracked()) return;
  const int64_t end = (to.offset + to.bytes - 1) >> to.space.shift;
  for (int64_t g = to.offset >> to.space.shift; g <= end; g++) cell(to.space, g).write = written;
}

}  // namespace hidet::backends::sim
