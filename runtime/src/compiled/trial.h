// trial.h - runs what may crash or never end, in a copy of this process, so that this one goes on whatever happens.
// Threading: thread-safe. The copy has one thread: locks that others of this process hold stay held there, at worst until its time
// is over.
#pragma once
#include <functional>
#include <string>

namespace hidet::runtime {

/// Runs `work` in a forked process for at most `seconds`: "" where it returns, else why it did not, as a clause: what it threw,
/// the signal that ended it, or that it took too long. Memory that it writes, and what it prints, is gone with it. Not for GPUs,
/// whose driver does not live on in a forked process.
std::string try_in_child(const std::function<void()>& work, double seconds);

}  // namespace hidet::runtime
