// shadow.cpp - races and reads of what was never written: each access is compared with those before it.
#include <hidet/runtime/error.h>

#include <algorithm>

#include "sim/worker.h"

namespace hidet::backends::sim {
namespace {

constexpr int64_t kPage = 4096;  // granules

std::string line_of(const Program& p, const Stamp& s) {
  const ir::SourceLoc& loc = p.locs[static_cast<size_t>(s.at)];
  return loc.line ? loc.text() : "an unknown line";
}

}  // namespace

Stamp Worker::now(const Block& block, const Warp& w, int lane, int32_t at, uint8_t flags) const {
  return {block.run, w.clock, at, static_cast<uint16_t>(w.index * kWarp + lane), flags};
}

bool Worker::ordered_elsewhere(const Block& block, const Warp& w, int lane, const Stamp& s) const {
  const int thread = w.index * kWarp + lane;
  if (w.more.covers(s.run, s.thread, s.clock)) return true;
  const auto& x = block.threads[static_cast<size_t>(thread)].exchange;
  return x && x->known.covers(s.run, s.thread, s.clock);
}

void Worker::race(const Block& block, const Warp& w, int lane, const Space& s, const Stamp& mine,
                  bool write, const Stamp& other, bool other_write) const {
  if (other.thread >= kCopies || mine.thread >= kCopies)
    race_async(block, w, lane, s, mine, write, other, other_write);
  const int64_t n = other.thread;
  const int64_t idx[3] = {n % block.dim[0], n / block.dim[0] % block.dim[1],
                          n / (block.dim[0] * block.dim[1])};
  const int64_t b = other.run - block.launch->first_run - 1, size = block.launch->cluster_size();
  int64_t at[3];
  block.launch->place(b / size, b % size, at);
  const auto kind = [](const Stamp& x, bool is_write) {
    return x.flags & kAtomic ? "atomic access" : is_write ? "write" : "read";
  };
  fail(block, w, lane, mine.at,
       detail::concat("race on '", *s.name, "': this ", kind(mine, write), " and the ",
                      kind(other, other_write), " at ", line_of(*block.program, other),
                      " by thread ", triple(idx),
                      other.run == block.run ? " of the same block are not ordered by a barrier"
                                             : " of block " + triple(at) + " are not ordered"));
}

ShadowCell& Worker::cell(const Space& s, int64_t granule) {
  if (s.cells) return s.cells[granule];
  const auto page = static_cast<size_t>((s.granule + granule) / kPage);
  if (page >= pages_.size()) pages_.resize(static_cast<size_t>(m_.granules_ / kPage + 1));
  if (!pages_[page]) pages_[page] = zeroed<ShadowCell>(kPage);
  return pages_[page][(s.granule + granule) % kPage];
}

/// While blocks run at the same time: notices two blocks at one place, one of them writing. Which of the two finds it is
/// chance: what is thrown only makes the launch run again, in order.
void Worker::own(const Block& block, const Space& s, int64_t granule, bool write) {
  Owners& o = m_.owners_[static_cast<size_t>(s.granule + granule)];
  const uint32_t first = block.launch->first_run, many = first, run = block.run;
  const auto other = [&](uint32_t who) { return who >= first && who && who != run; };
  bool met = false;
  if (write) {
    if (o.writer.load(std::memory_order_relaxed) != run) met = other(o.writer.exchange(run));
    met = met || other(o.reader.load());
  } else {
    uint32_t seen = o.reader.load(std::memory_order_relaxed);
    while (seen != run && seen != many &&
           !o.reader.compare_exchange_weak(seen, seen > first ? many : run)) {
    }
    met = other(o.writer.load());
  }
  HIDET_REQUIRE(!met, ErrorCode::usage, "", "blocks meet");
}

namespace {

/// True where the two reads that are known tell all that this one would, and were compared with the last write: two lanes
/// of this warp since it was last ordered, or two blocks where nobody wrote.
bool adds_nothing(const Block& block, const ShadowCell& c, const Stamp& mine) {
  if (block.program->partial || c.write.flags) return false;
  const Stamp &a = c.read, &b = c.other_read;
  const uint32_t first = block.launch->first_run;
  if (a.run > first && b.run > first && a.run != b.run) return c.write.run <= first;
  return a.run == mine.run && b.run == mine.run && a.clock == mine.clock && b.clock == mine.clock &&
         a.thread != b.thread && a.thread / kWarp == mine.thread / kWarp &&
         b.thread / kWarp == mine.thread / kWarp;
}

}  // namespace

void Worker::note_read(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                       uint8_t flags) {
  const Stamp mine = now(block, w, lane, at, flags);
  const Space& s = place.space;
  const int64_t end = (place.offset + place.bytes - 1) >> s.shift;
  for (int64_t g = place.offset >> s.shift; g <= end; g++) {
    if (block.launch->parallel && !s.shared) own(block, s, g, false);
    ShadowCell& c = cell(s, g);
    // Whoever wrote there since this thread's last look would have met it.
    if (!c.read.same(mine) && !adds_nothing(block, c, mine))
      read_cell_of(block, w, lane, s, c, mine);
  }
}

void Worker::read_cell_of(Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                          const Stamp& mine) {
  const bool in_block = c.write.run >= block.first_run;
  if ((c.write.flags & kPending) && in_block)
    fail(block, w, lane, mine.at,
         detail::concat("read of '", *s.name, "' before cp_async_wait for the copy at ",
                        line_of(*block.program, c.write)));
  if (s.shared && !in_block) never_written(block, w, lane, s, mine.at);
  if ((!s.shared || in_block) && !ordered(block, w, lane, c.write))
    race(block, w, lane, s, mine, false, c.write, true);
  check_atomics(block, w, lane, s, c, mine, false);
  // Two reads by different threads meet any write that some read meets. The second is of another block or warp where
  // there is one, since barriers order those of a block, and a warp orders its own.
  const auto peers = [](const Stamp& x, const Stamp& y) {
    return x.run == y.run && x.thread / kWarp == y.thread / kWarp;
  };
  const auto keep = [&](const Stamp& x) {
    if (!block.program->partial) return;
    std::vector<Stamp>& list = more_reads_[&c];
    std::erase_if(list, [&](const Stamp& y) { return ordered(block, w, lane, y) || peers(x, y); });
    list.push_back(x);
  };
  if ((c.read.run == mine.run && c.read.thread == mine.thread) || ordered(block, w, lane, c.read)) {
    c.read = mine;
  } else if (ordered(block, w, lane, c.other_read) || peers(c.other_read, mine) ||
             peers(c.other_read, c.read)) {
    c.other_read = mine;
  } else if (c.other_read.run == c.read.run && mine.run != c.read.run) {
    keep(c.other_read);
    c.other_read = mine;
  } else {
    keep(mine);
  }
}

void Worker::note_write(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                        uint8_t flags) {
  const Stamp mine = now(block, w, lane, at, flags);
  const Space& s = place.space;
  const int64_t end = (place.offset + place.bytes - 1) >> s.shift;
  for (int64_t g = place.offset >> s.shift; g <= end; g++) {
    if (block.launch->parallel && !s.shared) own(block, s, g, true);
    ShadowCell& c = cell(s, g);
    if (!c.write.same(mine) || (mine.flags & kPending)) write_cell_of(block, w, lane, s, c, mine);
  }
}

void Worker::write_cell_of(Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                           const Stamp& mine) {
  if ((c.write.flags & kPending) && (!s.shared || c.write.run >= block.first_run))
    fail(block, w, lane, mine.at,
         detail::concat("race on '", *s.name, "': this write meets the copy at ",
                        line_of(*block.program, c.write), " that was not waited for"));
  if ((!s.shared || c.write.run >= block.first_run) && !ordered(block, w, lane, c.write))
    race(block, w, lane, s, mine, true, c.write, true);
  check_reads(block, w, lane, s, c, mine);
  check_atomics(block, w, lane, s, c, mine, true);
  if (block.program->partial) more_reads_.erase(&c);
  if (c.write.flags & kAtomics) atomics_.erase(&c);
  c.write = mine;
}

void Worker::never_written(Block& block, const Warp& w, int lane, const Space& s,
                           int32_t at) const {
  if (block.unwritten) return;
  // Reported at the next barrier: a thread that runs later may write it before, which is a race.
  try {
    fail(block, w, lane, at,
         detail::concat("read of shared memory '", *s.name, "' that was never written"));
  } catch (const Error&) {
    block.unwritten = std::current_exception();
  }
}

void Worker::check_reads(const Block& block, const Warp& w, int lane, const Space& s,
                         const ShadowCell& c, const Stamp& mine) const {
  const auto check = [&](const Stamp& x) {
    if ((!s.shared || x.run >= block.first_run) && !ordered(block, w, lane, x))
      race(block, w, lane, s, mine, true, x, false);
  };
  check(c.read), check(c.other_read);
  if (!block.program->partial) return;
  const auto more = more_reads_.find(&c);
  if (more != more_reads_.end())
    for (const Stamp& x : more->second) check(x);
}

void Worker::check_atomics(const Block& block, const Warp& w, int lane, const Space& s,
                           const ShadowCell& c, const Stamp& mine, bool write) const {
  if (!(c.write.flags & kAtomics)) return;
  const auto list = atomics_.find(&c);
  if (list == atomics_.end()) return;
  for (const Stamp& x : list->second)
    if ((!s.shared || x.run >= block.first_run) && !ordered(block, w, lane, x))
      race(block, w, lane, s, mine, write, x, true);
}

void Worker::note_atomic(Block& block, const Warp& w, int lane, const Place& place, int32_t at,
                         bool fresh) {
  const Stamp mine = now(block, w, lane, at, kAtomic);
  const Space& s = place.space;
  const int64_t end = (place.offset + place.bytes - 1) >> s.shift;
  for (int64_t g = place.offset >> s.shift; g <= end; g++) {
    if (block.launch->parallel && !s.shared) own(block, s, g, true);
    ShadowCell& c = cell(s, g);
    const bool in_block = c.write.run >= block.first_run;
    if ((c.write.flags & kPending) && (!s.shared || in_block))
      fail(block, w, lane, mine.at,
           detail::concat("atomic access of '", *s.name, "' before cp_async_wait for the copy at ",
                          line_of(*block.program, c.write)));
    if (s.shared && !in_block) {
      if (!fresh) never_written(block, w, lane, s, at);
      c.write = mine;
    }
    if (!(c.write.flags & kAtomic) && !ordered(block, w, lane, c.write))
      race(block, w, lane, s, mine, true, c.write, true);
    check_reads(block, w, lane, s, c, mine);
    add_atomic(block, w, lane, s, c, mine);
  }
}

/// Keeps an atomic access for the plain ones that come later.
void Worker::add_atomic(const Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                        Stamp mine) {
  mine.flags |= kAtomic;
  std::vector<Stamp>& list = atomics_[&c];
  std::erase_if(list, [&](const Stamp& x) {
    return (s.shared && x.run < block.first_run) || x.same(mine) || ordered(block, w, lane, x);
  });
  // More than a warp of them: what meets one of those that are gone meets one of these.
  if (list.size() > kWarp) list.erase(list.begin());
  list.push_back(mine);
  c.write.flags |= kAtomics;
}

}  // namespace hidet::backends::sim
