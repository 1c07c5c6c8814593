// thread_pool.h - the process's one pool of threads and parallel_for on it.
// Workers wait for work by spinning for about 50 us and then sleep. The calling thread always works
// too. A nested or second concurrent region uses the workers that are free, else runs on its caller.
// After fork the child has no workers: everything runs on its callers.
// Threading: thread-safe.
#pragma once
#include <cstdint>
#include <exception>
#include <type_traits>

namespace hidet {

/// Threads that a parallel region may use, its caller included. At first HIDET_NUM_THREADS, else the
/// number of CPUs that this process may run on.
int num_threads();
/// Throws Error(usage) unless 1 <= n <= 1024. Regions that run now keep the workers that they have.
void set_num_threads(int n);

namespace runtime {

/// Iterations [begin, end); returns a status, 0 for success. Must not throw.
using ParallelBody = int32_t (*)(void* closure, int64_t begin, int64_t end);

/// Splits [0, count) into chunks of at least `grain` iterations over the pool and returns when all have
/// finished. The result is 0, or the status of the failing chunk with the least `begin`; chunks after
/// it may not have run. Which iterations share a chunk is not defined; each thread begins with the same part of them
/// in each region.
int32_t parallel_for(int64_t count, int64_t grain, ParallelBody body, void* closure) noexcept;

/// The same for a C++ callable body(begin, end) that returns void or a status, and may throw: an
/// exception of the chunk with the least `begin` is thrown again here.
template <class Body>
int32_t parallel_for(int64_t count, int64_t grain, Body&& body);

namespace detail {
/// Remembers the exception of the chunk with the least begin.
class FirstException {
 public:
  void keep(int64_t begin) noexcept;  ///< in a catch block
  void rethrow() const {
    if (exception_) std::rethrow_exception(exception_);
  }

 private:
  std::exception_ptr exception_;
  int64_t begin_ = 0;
};
inline constexpr int32_t kThrew = INT32_MIN;

template <class Body>
struct Closure {
  Body& body;
  FirstException first;
  static int32_t run(void* self, int64_t begin, int64_t end) {
    auto& closure = *static_cast<Closure*>(self);
    try {
      if constexpr (std::is_void_v<decltype(closure.body(begin, end))>) {
        closure.body(begin, end);
        return 0;
      } else {
        return closure.body(begin, end);
      }
    } catch (...) {
      closure.first.keep(begin);
      return kThrew;
    }
  }
};
}  // namespace detail

template <class Body>
int32_t parallel_for(int64_t count, int64_t grain, Body&& body) {
  detail::Closure<std::remove_reference_t<Body>> closure{body, {}};
  const int32_t status =
      parallel_for(count, grain, &detail::Closure<std::remove_reference_t<Body>>::run, &closure);
  if (status == detail::kThrew) closure.first.rethrow();
  return status;
}

}  // namespace runtime
}  // namespace hidet
