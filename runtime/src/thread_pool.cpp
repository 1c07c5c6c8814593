// thread_pool.cpp - the process's pool of threads.
// A worker has a mailbox: idle, busy, or a job that it has not begun. A region posts its job into the
// mailboxes of idle workers, works itself until no chunk is left, takes back what nobody began, and waits
// for the workers that did begin. Jobs live on their callers' stacks; nothing is allocated.
// A job's chunks are cut into one part a thread, the same for the same thread each time: where regions in a row
// walk the same rows, a thread finds in its own cache what it wrote. Who has finished takes chunks of the other parts.
// Threading: thread-safe.
#include "hidet/runtime/thread_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "hidet/runtime/cpu_level.h"
#include "hidet/runtime/error.h"
#include "hidet/runtime/log.h"

namespace hidet {
namespace runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostThreads = 1024;
constexpr int kChunksPerThread = 4;  // for balance: threads that are late take fewer
constexpr int kMostParts = 16;       // more threads share them
constexpr auto kSpin = std::chrono::microseconds(50);

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Spins until done() or until kSpin has passed; true when done.
template <class Done>
bool spin(const Done& done) {
  const auto end = Clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; i++) {
      if (done()) return true;
      relax();
    }
  } while (Clock::now() < end);
  return done();
}

// One parallel region.
struct Job {
  Job(ParallelBody b, void* c, int64_t count, int64_t pieces, int threads)
      : body(b),
        closure(c),
        chunk(count / pieces),
        larger(count % pieces),
        chunks(pieces),
        parts(static_cast<int>(std::min<int64_t>({threads, chunks, kMostParts}))) {
    for (int p = 0; p < parts; p++) {
      part[p].next.store(p * chunks / parts, std::memory_order_relaxed);
      part[p].end = (p + 1) * chunks / parts;
    }
  }

  struct alignas(64) Part {
    std::atomic<int64_t> next;  // chunks [next, end) are left
    int64_t end;
  };

  const ParallelBody body;
  void* const closure;
  const int64_t chunk, larger, chunks;  // `larger` chunks, spread evenly, have one iteration more
  const int parts;
  Part part[kMostParts];
  std::atomic<int> helpers{0};             // workers that have the job, begun or not
  std::atomic<int64_t> failed{INT64_MAX};  // the least failing chunk
  std::mutex mutex;                        // of status
  int32_t status = 0;

  int64_t begin_of(int64_t i) const { return i * chunk + i * larger / chunks; }

  // The thread's own part first.
  void work(int thread) noexcept {
    for (int p = 0; p < parts; p++) work_on(part[(thread + p) % parts]);
  }

  void work_on(Part& own) noexcept {
    while (true) {
      const int64_t i = own.next.fetch_add(1, std::memory_order_relaxed);
      // Chunks before a failing one are run all the same: one of them may fail, too.
      if (i >= own.end || i > failed.load(std::memory_order_relaxed)) return;
      const int32_t result = body(closure, begin_of(i), begin_of(i + 1));
      if (result != 0) fail(i, result);
    }
  }

  void fail(int64_t i, int32_t result) {
    std::lock_guard lock(mutex);
    if (i > failed.load(std::memory_order_relaxed)) return;
    failed.store(i, std::memory_order_relaxed);
    status = result;
  }
};

struct alignas(64) Worker {
  std::atomic<Job*> mailbox{nullptr};  // null: idle
  std::atomic<bool> parked{false};
  std::mutex mutex;
  std::condition_variable wake;
  std::thread thread;
};

class Pool {
 public:
  static Pool& get() {
    static Pool* const pool = new Pool;  // never destroyed: regions may run while the process ends
    return *pool;
  }

  int threads() const { return threads_.load(std::memory_order_relaxed); }
  void set_threads(int n) { threads_.store(n, std::memory_order_relaxed); }

  int32_t run(int64_t count, int64_t grain, ParallelBody body, void* closure) noexcept {
    const int threads = this->threads();
    const int64_t most = count / std::max<int64_t>(grain, 1);
    if (threads <= 1 || most <= 1) return body(closure, 0, count);
    const int64_t chunks = std::min<int64_t>(most, int64_t{threads} * kChunksPerThread);
    Job job(body, closure, count, chunks, threads);
    Worker* posted[kMostThreads];
    const int helpers =
        post(job, static_cast<int>(std::min<int64_t>(threads - 1, chunks - 1)), posted);
    if (helpers == 0) return body(closure, 0, count);
    job.work(0);
    take_back(job, posted, helpers);
    wait(job);
    return job.status;
  }

 private:
  Pool() : threads_(default_threads()) {
    pthread_atfork(nullptr, nullptr, [] {
      get().started_.store(0);
      get().closed_.store(true);
    });
    std::atexit([] { get().stop(); });
  }

  static int default_threads() {
    const int cpus = std::clamp(available_cpus(), 1, kMostThreads);
    const char* text = std::getenv("HIDET_NUM_THREADS");
    if (!text || !*text) return cpus;
    int n = 0;
    const char* end = text + std::strlen(text);
    const auto [stop, problem] = std::from_chars(text, end, n);
    if (problem == std::errc() && stop == end && n >= 1 && n <= kMostThreads) return n;
    log_once("HIDET_NUM_THREADS",
             hidet::detail::concat("HIDET_NUM_THREADS is '", text, "', not a number from 1 to ",
                                   kMostThreads, ": using ", cpus, " threads"));
    return cpus;
  }

  // Posts the job to at most `wanted` idle workers; the number of them.
  int post(Job& job, int wanted, Worker** posted) noexcept {
    if (closed_.load(std::memory_order_acquire)) return 0;  // after fork, or at exit
    if (started_.load(std::memory_order_acquire) < wanted) start(wanted);
    const int there = std::min(started_.load(std::memory_order_acquire), threads() - 1);
    int helpers = 0;
    for (int i = 0; i < there && helpers < wanted; i++) {
      Worker& w = *workers_[i];
      Job* idle = nullptr;
      if (w.mailbox.load(std::memory_order_relaxed)) continue;
      job.helpers.fetch_add(1, std::memory_order_relaxed);
      // The order of this store and the load of `parked` against the worker's store and load is what
      // makes sure that one of the two sees the other.
      if (!w.mailbox.compare_exchange_strong(idle, &job, std::memory_order_seq_cst)) {
        job.helpers.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      posted[helpers++] = &w;
      if (w.parked.load(std::memory_order_seq_cst)) {
        {
          std::lock_guard lock(w.mutex);
        }
        w.wake.notify_one();
      }
    }
    return helpers;
  }

  static void take_back(Job& job, Worker* const* posted, int helpers) noexcept {
    for (int i = 0; i < helpers; i++) {
      Job* mine = &job;
      if (posted[i]->mailbox.compare_exchange_strong(mine, nullptr, std::memory_order_acq_rel))
        job.helpers.fetch_sub(1, std::memory_order_relaxed);
    }
  }

  // A worker that has begun its last chunk finishes soon; only where it has no CPU does this take long.
  static void wait(const Job& job) noexcept {
    const auto done = [&] { return job.helpers.load(std::memory_order_acquire) == 0; };
    if (spin(done)) return;
    for (int i = 0; i < 1000; i++) {
      if (done()) return;
      std::this_thread::yield();
    }
    while (!done()) std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

  void start(int wanted) noexcept {
    std::lock_guard lock(start_mutex_);
    // Signals are for the program's own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      for (int i = started_.load(); i < wanted && !closed_.load(); i++) {
        auto worker = std::make_unique<Worker>();
        Worker* w = worker.get();
        w->thread = std::thread([this, w, i] { loop(*w, i + 1); });
        workers_[i] = std::move(worker);
        started_.store(i + 1, std::memory_order_release);
      }
    } catch (const std::exception& e) {
      log_once("thread pool",
               hidet::detail::concat("cannot start a thread (", e.what(), "): the pool has ",
                                     started_.load(), " workers"));
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static Job* busy() {
    static char mark;
    return reinterpret_cast<Job*>(&mark);
  }

  void loop(Worker& w, int thread) noexcept {
    const bool may_spin = available_cpus() > 1;
    while (true) {
      const auto posted = [&] { return w.mailbox.load(std::memory_order_acquire) != nullptr; };
      if (!(may_spin && threads() <= available_cpus() && spin(posted))) park(w);
      if (closed_.load(std::memory_order_relaxed)) return;
      Job* job = w.mailbox.load(std::memory_order_acquire);
      if (!job || !w.mailbox.compare_exchange_strong(job, busy(), std::memory_order_acq_rel))
        continue;
      job->work(thread);
      w.mailbox.store(nullptr, std::memory_order_release);
      job->helpers.fetch_sub(1,
                             std::memory_order_release);  // the last touch: the job may be gone now
    }
  }

  void park(Worker& w) {
    std::unique_lock lock(w.mutex);
    w.parked.store(true, std::memory_order_seq_cst);
    w.wake.wait(lock, [&] { return w.mailbox.load(std::memory_order_seq_cst) || closed_.load(); });
    w.parked.store(false, std::memory_order_relaxed);
  }

  // At exit. Workers that are inside a body are left alone: the body may be what called exit.
  void stop() noexcept {
    if (closed_.exchange(true)) return;
    std::lock_guard lock(start_mutex_);
    const int there = started_.exchange(0);
    for (int i = 0; i < there; i++) {
      Worker& w = *workers_[i];
      {
        std::lock_guard parked(w.mutex);
      }
      w.wake.notify_one();
      if (w.mailbox.load() == busy()) w.thread.detach();
      else w.thread.join();
    }
  }

  std::atomic<int> threads_;
  std::atomic<int> started_{0};
  std::atomic<bool> closed_{false};
  std::mutex start_mutex_;
  std::unique_ptr<Worker> workers_[kMostThreads];
};

}  // namespace

void detail::FirstException::keep(int64_t begin) noexcept {
  static std::mutex* const mutex = new std::mutex;
  std::lock_guard lock(*mutex);
  if (exception_ && begin_ < begin) return;
  exception_ = std::current_exception();
  begin_ = begin;
}

int32_t parallel_for(int64_t count, int64_t grain, ParallelBody body, void* closure) noexcept {
  if (count <= 0) return 0;
  return Pool::get().run(count, grain, body, closure);
}

}  // namespace runtime

int num_threads() { return runtime::Pool::get().threads(); }

void set_num_threads(int n) {
  HIDET_REQUIRE(n >= 1 && n <= runtime::kMostThreads, ErrorCode::usage, "",
                "the number of threads must be from 1 to ", runtime::kMostThreads, ", not ", n);
  runtime::Pool::get().set_threads(n);
}

}  // namespace hidet
