// memory.cpp - accesses to memory: bounds, alignment, unwritten memory, races.
#include "sim/machine.h"

namespace hidet::backends::sim {
namespace {

std::string line_of(const ir::SourceLoc* loc) {
  return loc && loc->line ? loc->text() : "an unknown line";
}

int64_t thread_index(const Block& b, int number, int64_t* idx) {
  idx[0] = number % b.dim[0];
  idx[1] = number / b.dim[0] % b.dim[1];
  idx[2] = number / (b.dim[0] * b.dim[1]);
  return number;
}

bool same_bits(Cell a, Cell b, DType t) {
  uint8_t x[8] = {}, y[8] = {};
  write_cell(x, t.code(), a);
  write_cell(y, t.code(), b);
  return std::memcmp(x, y, sizeof x) == 0;
}

}  // namespace

std::string triple(const int64_t* v) {
  return detail::concat("(", v[0], ", ", v[1], ", ", v[2], ")");
}

void Machine::fail(const Block& block, const Thread& t, int32_t at, const std::string& what) const {
  const Program& p = *block.program;
  std::string who = "'" + p.name + "'";
  if (p.on_gpu) {
    int64_t idx[3];
    thread_index(block, t.number, idx);
    who = "kernel " + who + ", block " + triple(block.idx) + ", thread " + triple(idx);
  }
  throw Error(ErrorCode::usage, what + " (" + who + ")", p.locs[at].text());
}

void Machine::race(const Block& block, const Thread& t, const Place& place, int32_t at, bool write,
                   const Shadow& other, bool other_write) const {
  int64_t idx[3];
  thread_index(block, other.thread, idx);
  const bool same_block = other.epoch >= block.first_epoch;
  fail(block, t, at,
       detail::concat(
           "race on '", *place.name, "': this ", write ? "write" : "read", " and the ",
           other_write ? "write" : "read", " at ", line_of(other.loc), " by ",
           same_block ? "thread " + triple(idx) + " of the same block are not ordered by a barrier"
                      : "thread " + triple(idx) + " of another block are not ordered"));
}

Place Machine::resolve(const Block& block, const Thread& t, int64_t pointer, int64_t bytes,
                       int64_t align, int32_t at, const char* what, int32_t access) const {
  const int64_t id = pointer::object(pointer), off = pointer::offset(pointer);
  Place place{nullptr, nullptr, 0, nullptr, false, nullptr};
  int64_t size = 0;
  DType dtype = u8;
  int shift = 0;
  ShadowCell* shadow = nullptr;
  if (id >= kFirstLocal) {
    const size_t local = static_cast<size_t>(id - block.first_local);
    if (id < block.first_local || local >= block.program->locals.size())
      fail(block, t, at, std::string(what) + " through a pointer to memory of another function");
    const Local& l = block.program->locals[local];
    size = l.bytes, dtype = l.dtype, place.name = &l.name;
    if (l.scope == ir::Scope::registers) {
      place.data = t.memory + l.offset;
      place.written = t.written + l.offset;
    } else {
      const int64_t start =
          l.offset + (l.scope == ir::Scope::dynamic_shared ? block.dynamic_at : 0);
      place.data = block.shared + start;
      place.shared = true;
      shift = bytewise_ ? 0 : 2;
      if (!bytewise_ && l.dtype.bytes() < 4) shift = l.dtype.bytes() == 2 ? 1 : 0;
      shadow = block.shared_shadow ? block.shared_shadow + start
                                   : nullptr;  // one cell a byte is reserved
    }
  } else {
    if (id <= 0 || id >= static_cast<int64_t>(objects_.size()))
      fail(block, t, at, std::string(what) + " through a null pointer");
    const Object& o = objects_[id];
    size = o.bytes, dtype = o.dtype, place.data = o.data, place.name = &o.name, shift = o.shift;
    shadow = block.program->on_gpu ? o.shadow : nullptr;
  }
  if (off < 0 || off > size - bytes) [[unlikely]] {
    const int64_t element = static_cast<int64_t>(dtype.bytes());
    const ir::Var* seen = access >= 0 ? block.program->accesses[access].tensor : nullptr;
    const std::string as = seen && seen->name != *place.name ? " (as '" + seen->name + "')" : "";
    fail(block, t, at,
         detail::concat(what, " outside '", *place.name, "'", as, ": ",
                        bytes > element ? detail::concat(bytes, " bytes from ") : "", "index ",
                        off >= 0 ? off / element : -((-off + element - 1) / element),
                        " on; it has ", size / element, " elements"));
  }
  if (align > 1 && off % align)
    fail(block, t, at,
         detail::concat("misaligned ", what, " of '", *place.name, "': byte ", off,
                        " is not a multiple of ", align));
  place.data += off;
  if (place.written) place.written += off;
  if (shadow) {
    place.shadow = shadow + (off >> shift);
    place.granules = static_cast<int>(((off + bytes - 1) >> shift) - (off >> shift) + 1);
  }
  return place;
}

Shadow Machine::now(const Block& block, const Thread& t, int32_t at) const {
  return {block.epoch,
          block.warp_epochs[t.number / 32],
          &block.program->locs[at],
          static_cast<uint16_t>(t.number),
          0,
          0};
}

/// True where nothing orders `other` before this thread's next access.
bool Machine::unordered(const Block& block, const Thread& t, const Shadow& other) const {
  if (other.epoch < block.launch_epoch) return false;
  if (other.epoch < block.first_epoch)
    return !block.program->fences;  // another block; fences order what we do not follow
  if (other.epoch != block.epoch || other.thread == t.number) return false;
  return other.thread / 32 != t.number / 32 || other.warp_epoch == block.warp_epochs[t.number / 32];
}

void Machine::note_read(const Block& block, const Thread& t, const Place& place, int32_t at,
                        bool atomic) {
  for (int g = 0; g < place.granules; g++) {
    ShadowCell& cell = place.shadow[g];
    const Shadow& w = cell.write;
    const bool in_block = w.epoch >= block.first_epoch;
    if (w.pending && in_block)
      fail(block, t, at,
           detail::concat("read of '", *place.name, "' before cp_async_wait for the copy at ",
                          line_of(w.loc)));
    if (place.shared && !in_block && !unwritten_) {
      // Reported at the next barrier: a thread that runs later may write it in this interval, which is a race.
      try {
        fail(block, t, at,
             detail::concat("read of shared memory '", *place.name, "' that was never written"));
      } catch (const Error&) {
        unwritten_ = std::current_exception();
      }
    }
    if (!(atomic && w.atomic) && (!place.shared || in_block) && unordered(block, t, w))
      race(block, t, place, at, false, w, true);
    Shadow& first = cell.read;
    Shadow& second = cell.other_read;
    const bool own = first.thread == t.number && first.epoch >= block.first_epoch;
    Shadow& slot = own || !unordered(block, t, first) ? first : second;
    // A second reader of another warp stays: no barrier of this warp orders it.
    if (&slot == &second && unordered(block, t, second) && second.thread / 32 != first.thread / 32)
      continue;
    slot = now(block, t, at);
    slot.atomic = atomic;
  }
}

void Machine::note_write(const Block& block, const Thread& t, const Place& place, int32_t at,
                         bool atomic, bool pending) {
  for (int g = 0; g < place.granules; g++) {
    ShadowCell& cell = place.shadow[g];
    const auto live = [&](const Shadow& s) {
      return !place.shared || s.epoch >= block.first_epoch;
    };
    if (cell.write.pending && live(cell.write))
      fail(block, t, at,
           detail::concat("race on '", *place.name, "': this write meets the copy at ",
                          line_of(cell.write.loc), " that was not waited for"));
    for (const Shadow* s : {&cell.write, &cell.read, &cell.other_read})
      if (!(atomic && s->atomic) && live(*s) && unordered(block, t, *s))
        race(block, t, place, at, true, *s, s == &cell.write);
    cell.write = now(block, t, at);
    cell.write.atomic = atomic;
    cell.write.pending = pending;
  }
}

void Machine::check_index(const Block& block, const Thread& t, const Inst& in, int32_t at,
                          bool* outside, int64_t* offset) const {
  const Access& x = block.program->accesses[in.a];
  const bool guarded = in.sub;
  int64_t sum = 0;
  const size_t rank = x.index.size();
  for (size_t d = 0; d < rank; d++) {
    const int64_t i = t.regs[x.index[d]].i, n = t.regs[x.extent[d]].i;
    const int64_t last = !guarded && d + 1 == rank ? in.lanes - 1 : 0;
    sum = sum * n + i;
    if (i >= 0 && i + last < n) continue;
    if (guarded) {
      *outside = true;
      return;
    }
    std::string index, shape;
    for (size_t k = 0; k < rank; k++) {
      index += (k ? ", " : "") + std::to_string(t.regs[x.index[k]].i);
      shape += (k ? ", " : "") + std::to_string(t.regs[x.extent[k]].i);
    }
    fail(block, t, at,
         detail::concat("index (", index, ")",
                        in.lanes > 1 ? detail::concat(" of ", in.lanes, " elements") : "",
                        " is outside '", x.tensor ? x.tensor->name : "a tensor", "' of shape [",
                        shape, "]"));
  }
  *offset = sum;
}

void Machine::memory(Block& block, Thread& t, const Inst& in, int32_t at) {
  const bool write = in.op == Op::store;
  const int64_t size = static_cast<int64_t>(DType(in.type).bytes());
  const int64_t p = t.regs[in.a].i + t.regs[in.b].i * size;
  const Place place =
      resolve(block, t, p, size * in.lanes, size, at, write ? "write" : "read", in.c);
  if (options_.checks) {
    if (place.shadow)
      write ? note_write(block, t, place, at, false) : note_read(block, t, place, at, false);
    if (place.written) {
      if (write) std::memset(place.written, 1, static_cast<size_t>(size * in.lanes));
      else
        for (int64_t i = 0; i < size * in.lanes; i++)
          if (!place.written[i])
            fail(block, t, at,
                 detail::concat("read of '", *place.name, "' in registers, index ",
                                pointer::offset(p) / size, ", that was never written"));
    }
  }
  for (int i = 0; i < in.lanes; i++) {
    if (write) write_cell(place.data + i * size, in.type, t.regs[in.dst + i]);
    else t.regs[in.dst + i] = read_cell(place.data + i * size, in.type);
  }
}

void Machine::atomic(Block& block, Thread& t, const Inst& in, int32_t at) {
  const DType type(in.type);
  const Place place = resolve(block, t, t.regs[in.a].i, static_cast<int64_t>(type.bytes()),
                              static_cast<int64_t>(type.bytes()), at, "atomic access", -1);
  if (options_.checks && place.shadow) {
    note_read(block, t, place, at, true);
    note_write(block, t, place, at, true);
  }
  const Cell old = read_cell(place.data, in.type), v = t.regs[in.b];
  Cell next = v;
  switch (in.sub) {
    case 0: next = binary(ir::BinaryOp::add, old, v, type); break;
    case 1: next = binary(ir::BinaryOp::max, old, v, type); break;
    case 2: next = binary(ir::BinaryOp::min, old, v, type); break;
    case 4: next = same_bits(old, v, type) ? t.regs[in.c] : old; break;
    case 5: next = binary(ir::BinaryOp::bit_and, old, v, type); break;
    case 6: next = binary(ir::BinaryOp::bit_or, old, v, type); break;
    case 7: next = binary(ir::BinaryOp::bit_xor, old, v, type); break;
    default: break;
  }
  write_cell(place.data, in.type, next);
  t.regs[in.dst] = old;
}

void Machine::copy(Block& block, Thread& t, const Inst& in, int32_t at) {
  Copy c{t.regs[in.a].i, in.lanes, t.group, {}, &block.program->locs[at]};
  const int64_t kept = in.sub ? t.regs[in.c].i : c.bytes;
  if (kept < 0 || kept > c.bytes)
    fail(block, t, at, detail::concat("cp_async of ", kept, " of ", c.bytes, " bytes"));
  const Place from =
      resolve(block, t, kept ? t.regs[in.b].i : c.to, kept, c.bytes, at, "cp_async read", -1);
  const Place to = resolve(block, t, c.to, c.bytes, c.bytes, at, "cp_async write", -1);
  if (!to.shared || (kept && from.shared))
    fail(block, t, at,
         "cp_async copies from global to shared memory, not from '" + *from.name + "' to '" +
             *to.name + "'");
  if (options_.checks) {
    if (from.shadow && kept) note_read(block, t, from, at, false);
    if (to.shadow) note_write(block, t, to, at, false, true);
  }
  std::memcpy(c.data, from.data, static_cast<size_t>(kept));
  t.copies.push_back(c);
}

void Machine::wait(Block& block, Thread& t, int32_t pending) {
  size_t kept = 0;
  for (const Copy& c : t.copies) {
    if (c.group >= t.group - pending) {
      t.copies[kept++] = c;
      continue;
    }
    const int32_t at = static_cast<int32_t>(c.loc - block.program->locs.data());
    const Place to = resolve(block, t, c.to, c.bytes, 1, at, "cp_async write", -1);
    std::memcpy(to.data, c.data, static_cast<size_t>(c.bytes));
    for (int g = 0; g < to.granules; g++) to.shadow[g].write = now(block, t, at);
  }
  t.copies.resize(kept);
}

}  // namespace hidet::backends::sim
