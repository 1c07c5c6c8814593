// interpret.cpp - executes the instructions of a warp's lanes that are at the same place, until they part, meet others or
// must wait.
#include <algorithm>
#include <cstdio>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

constexpr int kSlice =
    4096;  ///< loop iterations before other lanes, warps and blocks get their turn

/// The value of thread_idx_x ... grid_dim_z, in the order of the table of primitives, then of clock and parallel_threads.
void builtin(const Block& b, const Warp& w, uint32_t mask, int which, Cell* d) {
  const int k = which % 3;
  const int64_t value = which / 3 == 1   ? b.idx[k]
                        : which / 3 == 2 ? b.dim[k]
                        : which / 3 == 3 ? b.grid[k]
                        : which == 12    ? static_cast<int64_t>(w.clock)
                                         : 1;
  bits(mask, [&](int i) {
    d[i].i = which < 3 ? b.threads[static_cast<size_t>(w.index * kWarp + i)].idx[k] : value;
  });
}

void cast_bits(const Warp& w, uint32_t mask, const Inst& in) {
  const size_t from = DType(in.from).bytes(), to = DType(in.type).bytes();
  bits(mask, [&](int lane) {
    uint8_t bytes[1024] = {};
    for (int i = 0; i < in.sub; i++)
      write_cell(bytes + static_cast<size_t>(i) * from, in.from, w.row(in.a + i)[lane]);
    for (int i = 0; i < in.lanes; i++)
      w.row(in.dst + i)[lane] = read_cell(bytes + static_cast<size_t>(i) * to, in.type);
  });
}

}  // namespace

void Worker::print(const Warp& w, int lane, const Program& p, const Inst& in) const {
  const std::string& format = p.texts[in.a];
  std::string out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); i++) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    const size_t end = format.find_first_of("diuxXcfegap%", i + 1);
    HIDET_CHECK(end != std::string::npos, "a printf format that was not checked: ", format);
    if (format[end] == '%') {
      out += '%', i = end;
      continue;
    }
    const auto& [cell, type] = p.prints[in.c].at(next++);
    char text[512];
    const std::string spec = format.substr(i, end - i + 1);
    const Cell v = w.row(cell)[lane];
    if (type.is_pointer()) std::snprintf(text, sizeof text, "%p", reinterpret_cast<void*>(v.i));
    else if (type.dtype().is_float())
      std::snprintf(text, sizeof text, spec.c_str(), to_double(v, type.dtype()));
    else if (type.dtype().bits() == 64)
      std::snprintf(text, sizeof text, spec.c_str(), static_cast<long long>(v.i));
    else std::snprintf(text, sizeof text, spec.c_str(), static_cast<int>(v.i));
    out += text;
    i = end;
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
}

void Worker::outside(const Block& block, const Warp& w, int lane, const Inst& in,
                     int32_t at) const {
  const Access& x = block.program->accesses[static_cast<size_t>(in.a)];
  std::string index, shape;
  for (size_t k = 0; k < x.index.size(); k++) {
    index += (k ? ", " : "") + std::to_string(w.row(x.index[k])[lane].i);
    shape += (k ? ", " : "") + std::to_string(w.row(x.extent[k])[lane].i);
  }
  fail(block, w, lane, at,
       detail::concat(
           "index (", index, ")", in.lanes > 1 ? detail::concat(" of ", in.lanes, " elements") : "",
           " is outside '", x.tensor ? x.tensor->name : "a tensor", "' of shape [", shape, "]"));
}

/// Row-major offsets of elements; the lanes whose index is outside, which is an error unless guarded.
uint32_t Worker::check_index(const Block& block, const Warp& w, Lanes lanes, const Inst& in,
                             int32_t at) const {
  const Access& x = block.program->accesses[static_cast<size_t>(in.a)];
  const size_t rank = x.index.size();
  uint64_t sum[kWarp] = {}, bad[kWarp] = {},
           any = 0;  // unsigned: lanes that are not there may overflow
  for (size_t d = 0; d < rank; d++) {
    const Cell *i = w.row(x.index[d]), *n = w.row(x.extent[d]);
    const uint64_t last = !in.sub && d + 1 == rank ? in.lanes : 1;
    each(lanes, [&](int k) {
      const auto index = static_cast<uint64_t>(i[k].i), extent = static_cast<uint64_t>(n[k].i);
      sum[k] = sum[k] * extent + index;
      bad[k] |= index | (extent - last - index);  // the sign: outside
    });
  }
  Cell* to = w.row(in.dst);
  each(lanes, [&](int k) { to[k].i = static_cast<int64_t>(sum[k]); });
  uint32_t out = 0;
  for (uint64_t b : bad) any |= b;
  if (any >> 63) bits(lanes.mask, [&](int k) { out |= static_cast<uint32_t>(bad[k] >> 63) << k; });
  if (out && !in.sub) outside(block, w, std::countr_zero(out), in, at);
  return out;
}

void Worker::run_warp(Block& block, Warp& w) {
  w.slice = kSlice;
  while (const uint32_t from = w.lanes(State::ready) & ~w.tried) {
    // The lanes furthest behind go on together, up to the next ones.
    int32_t pc = INT32_MAX, stop = INT32_MAX;
    bits(from, [&](int i) { pc = std::min(pc, w.pc[i]); });
    uint32_t mask = 0;
    bits(w.lanes(State::ready), [&](int i) {
      if (w.pc[i] == pc) mask |= 1u << i;
      else if (w.pc[i] > pc) stop = std::min(stop, w.pc[i]);
    });
    w.tried &= ~mask;
    execute(block, w, mask, pc, stop);
    if (block.launch->steps.load(std::memory_order_relaxed) > options_.max_steps)
      report_waiting(block);
    if (!w.lanes(State::ready) && complete(w)) warp_operation(block, w);
  }
  w.tried = 0;
}

void Worker::execute(Block& block, Warp& w, uint32_t mask, int32_t pc, int32_t stop) {
  const Program& p = *block.program;
  const Inst* const code = p.code.data();
  const Lanes lanes{mask, mask == w.live() && mask != 1};
  const auto row = [&](int32_t c) { return w.row(c); };
  const auto leave = [&](int32_t to) { bits(mask, [&](int i) { w.pc[i] = to; }); };
  // The lanes `taken` go to one place, the others to another; true where they part.
  const auto branch = [&](uint32_t taken, int32_t to, int32_t other) {
    if (taken == mask || !taken) {
      pc = taken ? to : other;
      return false;
    }
    bits(mask, [&](int i) { w.pc[i] = taken >> i & 1 ? to : other; });
    return true;
  };
  // Counts an iteration; true where the turn is over.
  const auto spent = [&] {
    if (--w.slice > 0) return false;
    w.slice = kSlice;
    w.tried |= mask;
    block.launch->steps += int64_t{kSlice} * std::popcount(mask);
    return true;
  };
  while (pc < stop) {
    const Inst& in = code[pc];
    const int32_t at = pc++;
    switch (in.op) {
      case Op::move:
      case Op::binary:
      case Op::unary:
      case Op::cast:
      case Op::math:
      case Op::abs:
      case Op::select: in.fn(in, row(in.dst), row(in.a), row(in.b), row(in.c), lanes); break;
      case Op::bits: cast_bits(w, mask, in); break;
      case Op::jump: pc = in.dst; break;
      case Op::jump_if:
        if (branch(holding(row(in.a), lanes), in.dst, pc)) return;
        break;
      case Op::jump_unless:
        if (branch(mask & ~holding(row(in.a), lanes), in.dst, pc)) return;
        break;
      case Op::loop:
        pc = in.dst;
        if (spent()) return leave(pc);
        break;
      case Op::next: {
        const ForTable& f = p.fors[static_cast<size_t>(in.c)];
        f.step.fn(f.step, row(f.var), row(f.var), row(f.step.b), row(f.var), lanes);
        f.test.fn(f.test, row(f.test.dst), row(f.var), row(f.test.b), row(f.var), lanes);
        const uint32_t again = holding(row(f.test.dst), lanes);
        const bool parted = branch(again, f.body, pc);
        if (again && spent()) {
          if (!parted) leave(pc);
          return;
        }
        if (parted) return;
        break;
      }
      case Op::lane:
        bits(mask, [&](int k) {
          const int64_t i = row(in.b)[k].i;
          if (i < 0 || i >= in.lanes)
            fail(block, w, k, at, detail::concat("lane ", i, " of a vector of ", in.lanes));
          row(in.dst)[k] = row(in.a + static_cast<int32_t>(i))[k];
        });
        break;
      case Op::pointer_add: {
        const auto scale = static_cast<uint64_t>(in.sub ? -in.c : in.c);
        Cell *d = row(in.dst), *a = row(in.a), *b = row(in.b);
        each(lanes, [=](int i) {
          d[i].i = static_cast<int64_t>(static_cast<uint64_t>(a[i].i) +
                                        static_cast<uint64_t>(b[i].i) * scale);
        });
        break;
      }
      case Op::offset:
      case Op::check_index:
        if (branch(check_index(block, w, lanes, in, at), in.c, pc)) return;
        break;
      case Op::load:
      case Op::store: memory(block, w, lanes, in, at); break;
      case Op::declare: {
        const Local& l = p.locals[static_cast<size_t>(in.c)];
        bits(mask, [&](int i) {
          std::memset(w.written + p.register_bytes * i + l.offset, 0, static_cast<size_t>(l.bytes));
        });
        break;
      }
      case Op::call:
        bits(mask, [&](int i) { row(in.c)[i].i = pc; });
        pc = in.dst;
        break;
      case Op::ret:
        bits(mask, [&](int i) { w.pc[i] = static_cast<int32_t>(row(in.a)[i].i); });
        pc = w.pc[std::countr_zero(mask)];
        // Lanes of several callers may have met.
        for (uint32_t m = mask; m; m &= m - 1)
          if (w.pc[std::countr_zero(m)] != pc) return;
        break;
      case Op::exit:
        bits(mask, [&](int i) { wait(block, w, i, -1); });
        w.set(mask, State::exited);
        return leave(at);
      case Op::builtin: builtin(block, w, mask, in.sub, row(in.dst)); break;
      case Op::barrier: w.set(mask, State::barrier); return leave(pc);
      case Op::named_barrier: leave(pc); return named_barrier(block, w, mask, in, at);
      case Op::sync_warp:
      case Op::load_matrix:
      case Op::store_matrix:
      case Op::mma:
      case Op::move_matrix:
      case Op::reduce_warp:
      case Op::exchange:
      case Op::vote:
        leave(pc);
        w.set(mask, State::warp);
        if (mask != w.live()) return;
        warp_operation(block, w);
        break;
      case Op::fence: bits(mask, [&](int i) { fence(block, w, i, in.sub); }); break;
      case Op::atomic: bits(mask, [&](int i) { atomic(block, w, i, in, at); }); break;
      case Op::copy: bits(mask, [&](int i) { copy(block, w, i, in, at); }); break;
      case Op::commit:
        bits(mask, [&](int i) { block.threads[static_cast<size_t>(w.index * kWarp + i)].group++; });
        break;
      case Op::wait: bits(mask, [&](int i) { wait(block, w, i, in.c); }); break;
      case Op::print: bits(mask, [&](int i) { print(w, i, p, in); }); break;
      case Op::scratch: scratch(w, in); break;
      case Op::amx: amx(block, w, in, at); break;
      case Op::call_extern: call_extern(block, w, in, at); break;
      case Op::check: {
        const uint32_t failing = mask & ~holding(row(in.a), lanes);
        if (!failing) break;
        const std::string& text = p.texts[static_cast<size_t>(in.c)];
        if (p.on_gpu) fail(block, w, std::countr_zero(failing), at, text);
        throw Error(ErrorCode::usage, text, p.locs[static_cast<size_t>(at)].text());
      }
      case Op::hopper:
        leave(pc);
        if (hopper(block, w, mask, in, at)) return;
        break;
      case Op::aligned: aligned(block, w, mask, in, at); break;
      case Op::sane: sane(block, w, mask, in, at); break;
      case Op::launch: m_.launch(w, p.launches[static_cast<size_t>(in.c)]); break;
    }
  }
  leave(pc);
}

void Worker::sane(const Block& block, const Warp& w, uint32_t mask, const Inst& in,
                  int32_t at) const {
  const int width = DType(in.type).bits();
  for (int k = 0; k < in.lanes; k++)
    bits(mask, [&](int i) {
      const int64_t b = w.row(in.b + k)[i].i;
      if (in.sub == 0 && b == 0) fail(block, w, i, at, "integer division by zero");
      if (in.sub == 1 && (b < 0 || b >= width))
        fail(block, w, i, at, detail::concat("shift of ", width, " bits by ", b));
    });
}

void Worker::scratch(const Warp& w, const Inst& in) {
  const int64_t slot = w.row(in.a)->i, bytes = w.row(in.b)->i;
  std::vector<double>& memory = m_.scratch_[slot];
  memory.resize(std::max(memory.size(), static_cast<size_t>(bytes + 7) / 8));
  int64_t& object = m_.scratch_objects_[slot];
  if (!object) object = m_.add_object("scratch", u8, nullptr, 0);
  m_.objects_[static_cast<size_t>(object)].data = reinterpret_cast<uint8_t*>(memory.data());
  m_.objects_[static_cast<size_t>(object)].bytes = bytes;
  w.row(in.dst)->i = pointer::make(object, 0);
}

}  // namespace hidet::backends::sim
