// async.cpp - accesses of copies and products that are under way: races with those of threads and of each other, and what proxy
// fences have to come between.
#include <algorithm>

#include "sim/hopper.h"
#include "sim/worker.h"

namespace hidet::backends::sim {

std::string Worker::describe(const Block& block, const Stamp& s, bool write) const {
  const ir::SourceLoc& loc = block.program->locs[static_cast<size_t>(s.at)];
  const std::string line = loc.line ? loc.text() : "an unknown line";
  if (s.thread >= kStoreReads) return "the bulk store at " + line;
  if (s.thread >= kProducts) return "the wgmma at " + line;
  if (s.thread >= kCopies) return "the bulk copy at " + line;
  const int64_t n = s.thread, idx[3] = {n % block.dim[0], n / block.dim[0] % block.dim[1],
                                        n / (block.dim[0] * block.dim[1])};
  const char* kind = s.flags & kAtomic ? "atomic access" : write ? "write" : "read";
  return std::string("the ") + kind + " at " + line + " by thread " + triple(idx);
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

/// What threads wrote to a granule before must have gone through a proxy fence.
void Worker::check_fenced(const Block& block, const Warp& w, int lane, const Space& s,
                          const Stamp& x, int32_t at) const {
  const bool here = s.shared ? x.run >= block.first_run : x.run > block.launch->first_run;
  if (!here || x.thread >= kCopies) return;
  const uint32_t run = x.run | (s.shared ? kFencedShared : kFencedGlobal);
  const auto& e = block.threads[static_cast<size_t>(w.index * kWarp + lane)].exchange;
  if (w.more.covers(run, x.thread, x.clock) || (e && e->known.covers(run, x.thread, x.clock)))
    return;
  fail(block, w, lane, at,
       detail::concat("'", *s.name, "' is read by a copy or product, and there is no ",
                      "fence_proxy_async after ", describe(block, x, true)));
}

/// An access of a copy or product: what comes before it must be known to the thread that issues it, and what threads wrote must
/// have gone through a proxy fence where it reads. Where several warps issue it, only the last call records it.
void Worker::note_async(Block& block, const Warp& w, int lane, const Place& place,
                        const Stamp& stamp, Use use, bool record) {
  const Space& s = place.space;
  const bool write = use != Use::read;
  const int64_t end = (place.offset + place.bytes - 1) >> s.shift;
  const auto live = [&](const Stamp& x) { return !s.shared || x.run >= block.first_run; };
  for (int64_t g = place.offset >> s.shift; g <= end; g++) {
    if (block.launch->parallel && !s.shared) own(block, s, g, write);
    ShadowCell& c = cell(s, g);
    if ((use == Use::write && c.write.same(stamp)) || (use == Use::read && c.read.same(stamp)))
      continue;
    if (s.shared && live(c.write) && (c.write.flags & kPending))
      fail(block, w, lane, stamp.at,
           "race on '" + *s.name + "': the copy at " +
               block.program->locs[static_cast<size_t>(c.write.at)].text() +
               " was not waited for (cp_async_wait)");
    if (s.shared && !live(c.write) && use != Use::write)
      fail(block, w, lane, stamp.at,
           "read of shared memory '" + *s.name + "' that was never written");
    const auto check = [&](const Stamp& x, bool other_write) {
      const bool same = x.run == stamp.run && x.thread == stamp.thread && x.clock == stamp.clock;
      if (live(x) && !same && !ordered(block, w, lane, x))
        race_async(block, w, lane, s, stamp, write, x, other_write);
    };
    const bool atomic = use == Use::atomic || use == Use::update;
    if (!atomic || !(c.write.flags & kAtomic)) check(c.write, true);
    if (use == Use::read || use == Use::atomic) check_fenced(block, w, lane, s, c.write, stamp.at);
    if (!atomic) check_atomics(block, w, lane, s, c, stamp, write);
    if (write) {
      check(c.read, false), check(c.other_read, false);
      const auto more = more_reads_.find(&c);
      if (more != more_reads_.end())
        for (const Stamp& x : more->second) check(x, false);
    }
    if (use == Use::write) {
      more_reads_.erase(&c);
      if (c.write.flags & kAtomics) atomics_.erase(&c);
      c.write = stamp;
    } else if (atomic) {
      add_atomic(block, w, lane, s, c, stamp);
    } else if (record) {
      record_read(block, w, lane, s, c, stamp);
    }
  }
}

/// Keeps a read for the writes that come later.
void Worker::record_read(const Block& block, const Warp& w, int lane, const Space& s, ShadowCell& c,
                         const Stamp& stamp) {
  // Where blocks run at the same time, own() meets those of others.
  const uint32_t end = block.first_run + static_cast<uint32_t>(block.launch->cluster_size());
  const bool own_only = s.shared || block.launch->parallel;
  const auto replaced = [&](const Stamp& x) {
    return (x.run == stamp.run && x.thread == stamp.thread) ||
           (own_only && (x.run < block.first_run || x.run >= end)) || ordered(block, w, lane, x);
  };
  if (replaced(c.read)) return (void)(c.read = stamp);
  if (replaced(c.other_read)) return (void)(c.other_read = stamp);
  std::vector<Stamp>& list = more_reads_[&c];
  std::erase_if(list, replaced);
  list.push_back(stamp);
}

}  // namespace hidet::backends::sim
