// workers.cpp - compile threads: pthreads, because std::thread cannot ask for a stack of its own size.
// Clang recurses with the depth of expressions and generated expressions are deep; the memory is only
// reserved. Threading: see workers.h.
#include "cpu/workers.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <vector>

#include "hidet/runtime/error.h"

namespace hidet::backends::cpu {
namespace {

constexpr size_t kStackBytes = size_t(64) << 20;

struct Shared {
  const std::function<void(int)>& body;
  const int count;
  std::mutex mutex;
  std::condition_variable changed;
  int next = 0, done = 0, running = 0;  // guarded by mutex
  bool stop = false;
  int failed_index = -1;
  std::exception_ptr failure;

  void work() {
    std::unique_lock lock(mutex);
    while (!stop && next < count) {
      const int index = next++;
      lock.unlock();
      std::exception_ptr error;
      try {
        body(index);
      } catch (...) {
        error = std::current_exception();
      }
      lock.lock();
      ++done;
      if (error != nullptr) fail(index, error);
      changed.notify_one();
    }
    --running;
    changed.notify_one();
  }

  void fail(int index, std::exception_ptr error) {
    stop = true;
    if (failed_index >= 0 && failed_index < index) return;
    failed_index = index;
    failure = std::move(error);
  }
};

std::vector<pthread_t> start(Shared& shared, int threads) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  std::vector<pthread_t> started;
  for (int i = 0; i < threads; ++i) {
    pthread_t thread;
    const auto run = [](void* s) -> void* {
      static_cast<Shared*>(s)->work();
      return nullptr;
    };
    if (pthread_create(&thread, &attributes, run, &shared) != 0) break;
    started.push_back(thread);
  }
  pthread_attr_destroy(&attributes);
  return started;
}

}  // namespace

void run_on_workers(int count, int jobs, const std::function<void(int)>& body,
                    const std::function<bool(int done)>& progress) {
  if (count == 0) return;
  Shared shared{.body = body, .count = count};
  const int wanted = std::clamp(jobs, 1, count);
  std::unique_lock lock(shared.mutex);
  const std::vector<pthread_t> threads = start(shared, wanted);
  shared.running = static_cast<int>(threads.size());
  bool cancelled = false;
  std::exception_ptr thrown;
  for (int reported = 0; shared.running > 0 || reported < shared.done;) {
    shared.changed.wait(lock, [&] { return shared.running == 0 || shared.done > reported; });
    if (shared.done == reported) continue;
    ++reported;
    lock.unlock();
    // The workers use what is on this stack: an exception waits until they have ended.
    try {
      if (!cancelled && progress && !progress(reported)) cancelled = true;
    } catch (...) {
      cancelled = true;
      thrown = std::current_exception();
    }
    lock.lock();
    if (cancelled) shared.stop = true;
  }
  lock.unlock();
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  if (thrown != nullptr) std::rethrow_exception(thrown);
  if (shared.failure != nullptr) std::rethrow_exception(shared.failure);
  if (cancelled) throw Error(ErrorCode::cancelled, "the build was cancelled");
  HIDET_REQUIRE(shared.done == count, ErrorCode::memory, "",
                "no thread could be started to compile");
}

}  // namespace hidet::backends::cpu
