// interpret.cpp - executes a thread's instructions until it ends or must wait for others.
#include <cstdio>

#include "sim/machine.h"

namespace hidet::backends::sim {
namespace {

constexpr int kSlice = 4096;  ///< loop iterations before other threads of the block get their turn

/// The value of thread_idx_x ... grid_dim_z, in the order of the table of primitives.
int64_t builtin(const Block& b, const Thread& t, int which) {
  const int d = which % 3;
  switch (which / 3) {
    case 0: return t.idx[d];
    case 1: return b.idx[d];
    case 2: return b.dim[d];
    default: return b.grid[d];
  }
}

void cast_bits(Cell* r, const Inst& in) {
  uint8_t bytes[1024] = {};
  const size_t from = DType(in.from).bytes(), to = DType(in.type).bytes();
  for (int i = 0; i < in.sub; i++) write_cell(bytes + i * from, in.from, r[in.a + i]);
  for (int i = 0; i < in.lanes; i++) r[in.dst + i] = read_cell(bytes + i * to, in.type);
}

/// Lane by lane, for what has no instruction of its own.
void lanewise(Cell* r, const Inst& in) {
  const DType type(in.type);
  for (int i = 0; i < in.lanes; i++) {
    Cell& out = r[in.dst + i];
    const Cell a = r[in.a + i];
    switch (in.op) {
      case Op::move: out = a; break;
      case Op::binary: out = binary(static_cast<ir::BinaryOp>(in.sub), a, r[in.b + i], type); break;
      case Op::unary: out = unary(static_cast<ir::UnaryOp>(in.sub), a, type); break;
      case Op::cast: out = convert(a, DType(in.from), type); break;
      case Op::abs: out = absolute(a, type); break;
      case Op::select: out = r[in.c + i].i ? a : r[in.b + i]; break;
      default:
        out =
            math(in.sub, a, in.sub == 255 ? r[in.b + i] : a, in.sub == 255 ? r[in.c + i] : a, type);
        break;
    }
  }
}

}  // namespace

void Machine::step(const Block& block) {
  steps_ += kSlice;
  if (steps_ <= options_.max_steps) return;
  report_waiting(block);
}

void Machine::print(const Thread& t, const Program& p, const Inst& in) const {
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
    const Cell v = t.regs[cell];
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

void Machine::run(Block& block, Thread& t) {
  const Program& p = *block.program;
  const Inst* const code = p.code.data();
  Cell* const r = t.regs;
  int32_t pc = t.pc;
  int slice = kSlice;
  const auto wrap = [](int64_t v) { return static_cast<int64_t>(static_cast<int32_t>(v)); };
  // Back edges: counted, and after a slice others run.
  const auto back = [&](int32_t to) {
    pc = to;
    if (--slice > 0) return false;
    t.pc = pc;
    step(block);
    slice = kSlice;
    return block.threads.size() > 1;
  };
  for (;;) {
    const Inst& in = code[pc];
    const int32_t at = pc++;
    switch (in.op) {
      case Op::add_i32: r[in.dst].i = wrap(r[in.a].i + r[in.b].i); break;
      case Op::sub_i32: r[in.dst].i = wrap(r[in.a].i - r[in.b].i); break;
      case Op::mul_i32: r[in.dst].i = wrap(r[in.a].i * r[in.b].i); break;
      case Op::div_i32: r[in.dst].i = r[in.b].i ? wrap(r[in.a].i / r[in.b].i) : 0; break;
      case Op::mod_i32: r[in.dst].i = r[in.b].i ? r[in.a].i % r[in.b].i : 0; break;
      case Op::lt_i32: r[in.dst].i = r[in.a].i < r[in.b].i; break;
      case Op::add_f32: r[in.dst].f = r[in.a].f + r[in.b].f; break;
      case Op::sub_f32: r[in.dst].f = r[in.a].f - r[in.b].f; break;
      case Op::mul_f32: r[in.dst].f = r[in.a].f * r[in.b].f; break;
      case Op::div_f32: r[in.dst].f = r[in.a].f / r[in.b].f; break;
      case Op::move:
        if (in.lanes == 1) r[in.dst] = r[in.a];
        else lanewise(r, in);
        break;
      case Op::cast:
        if (in.from == DTypeCode::i32 && in.type == DTypeCode::i64 && in.lanes == 1)
          r[in.dst].i = r[in.a].i;
        else lanewise(r, in);
        break;
      case Op::binary:
      case Op::unary:
      case Op::math:
      case Op::abs:
      case Op::select: lanewise(r, in); break;
      case Op::bits: cast_bits(r, in); break;
      case Op::jump: pc = in.dst; break;
      case Op::jump_if:
        if (r[in.a].i) pc = in.dst;
        break;
      case Op::jump_unless:
        if (!r[in.a].i) pc = in.dst;
        break;
      case Op::loop:
        if (back(in.dst)) return;
        break;
      case Op::next_i32: {
        const ForTable& f = p.fors[in.c];
        r[f.var].i = wrap(r[f.var].i + r[f.step].i);
        if (r[f.var].i < r[f.end].i && back(f.body)) return;
        break;
      }
      case Op::next_other: {
        const ForTable& f = p.fors[in.c];
        r[f.var] = binary(ir::BinaryOp::add, r[f.var], r[f.step], f.dtype);
        if (binary(ir::BinaryOp::lt, r[f.var], r[f.end], f.dtype).i && back(f.body)) return;
        break;
      }
      case Op::lane: {
        const int64_t i = r[in.b].i;
        if (i < 0 || i >= in.lanes)
          fail(block, t, at, detail::concat("lane ", i, " of a vector of ", in.lanes));
        r[in.dst] = r[in.a + i];
        break;
      }
      case Op::pointer_add: r[in.dst].i = r[in.a].i + (in.sub ? -1 : 1) * r[in.b].i * in.c; break;
      case Op::offset:
      case Op::check_index: {
        bool outside = false;
        check_index(block, t, in, at, &outside, &r[in.dst].i);
        if (outside) pc = in.c;
        break;
      }
      case Op::load:
      case Op::store: memory(block, t, in, at); break;
      case Op::declare: {
        const Local& l = p.locals[in.c];
        std::memset(t.written + l.offset, 0, static_cast<size_t>(l.bytes));
        break;
      }
      case Op::call:
        r[in.c].i = pc;
        pc = in.dst;
        break;
      case Op::ret: pc = static_cast<int32_t>(r[in.a].i); break;
      case Op::exit:
        wait(block, t, -1);
        t.state = State::exited;
        t.pc = at;
        return;
      case Op::builtin: r[in.dst].i = builtin(block, t, in.sub); break;
      case Op::barrier:
        t.state = State::barrier;
        t.pc = pc;
        return;
      case Op::named_barrier:
        t.pc = pc;
        if (named_barrier(block, t, in, at)) return;
        break;
      case Op::sync_warp:
      case Op::load_matrix:
      case Op::store_matrix:
      case Op::mma:
      case Op::exchange:
      case Op::vote:
        t.state = State::warp;
        t.pc = pc;
        return;
      case Op::fence: break;
      case Op::atomic: atomic(block, t, in, at); break;
      case Op::copy: copy(block, t, in, at); break;
      case Op::commit: t.group++; break;
      case Op::wait: wait(block, t, in.c); break;
      case Op::print: print(t, p, in); break;
      case Op::scratch: {
        const int64_t slot = r[in.a].i, bytes = r[in.b].i;
        std::vector<double>& memory = scratch_[slot];
        memory.resize(std::max(memory.size(), static_cast<size_t>(bytes + 7) / 8));
        int64_t& object = scratch_objects_[slot];
        if (!object) object = add_object("scratch", u8, nullptr, 0);
        objects_[object].data = reinterpret_cast<uint8_t*>(memory.data());
        objects_[object].bytes = bytes;
        r[in.dst].i = pointer::make(object, 0);
        break;
      }
      case Op::check:
        if (!r[in.a].i) {
          if (p.on_gpu) fail(block, t, at, p.texts[in.c]);
          throw Error(ErrorCode::usage, p.texts[in.c], p.locs[at].text());
        }
        break;
      case Op::launch: launch(block, r, p.launches[in.c]); break;
    }
  }
}

}  // namespace hidet::backends::sim
