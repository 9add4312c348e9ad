// A lazily started pool of workers. Each thread owns a run of chunks, so that the same thread gets the same part of
// the data again in the next loop, and steals from the others when its own are done.
//
// A launch opens a gate that workers enter by themselves. The caller works too, closes the gate when no chunk is left
// and waits only for workers that entered: one that wakes too late costs nothing.
#include "pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "interrupts.h"

namespace mlirml {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kChunksPerThread = 6;
constexpr int kLongChunksPerThread = 2;
constexpr int kSpins = 3000;
constexpr uint32_t kCallerSleeps = 1u << 31;

using Body = void (*)(int64_t, int64_t, void *);

inline void cpu_pause() {
#if defined(__x86_64__)
  _mm_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

void futex_wait(std::atomic<uint32_t> *word, uint32_t value, const timespec *limit = nullptr) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(word), FUTEX_WAIT_PRIVATE, value, limit, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t> *word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

struct Loop {
  Body body;
  void *context;
  int64_t lo, quotient, remainder;  // chunk i has `quotient` iterations, the first `remainder` chunks one more
  unsigned float_control;
  int runs;
  bool polls;  // signals, in the bodies and while the caller waits

  void run_chunk(int64_t i) const {
    int64_t first = lo + i * quotient + std::min(i, remainder);
    body(first, first + quotient + (i < remainder ? 1 : 0), context);
  }
};

struct alignas(64) Run {
  std::atomic<int64_t> next;
  int64_t end;
};

// Everything is trivially destructible: workers may still look at it while the process exits.
struct Pool {
  // Bit 0: open. Bits 1 to 30: workers inside. Bit 31: the caller sleeps.
  alignas(64) std::atomic<uint32_t> gate;
  alignas(64) std::atomic<uint32_t> epoch;
  std::atomic<int> sleepers;
  std::atomic<uint32_t> stopping;
  std::atomic<bool> cancelled;  // the loop; changed by its caller alone
  alignas(64) std::atomic<bool> launching;
  Loop loop;
  Run runs[kMaxThreads];
  pthread_t threads[kMaxThreads];
  int workers;  // guarded by `launching`, like the next two
  bool started;
  bool fork_hooks;
  std::atomic<int> visible_workers;
  std::atomic<int> limit;
};

Pool pool;
thread_local bool inside_loop = false;
thread_local jmp_buf *way_out = nullptr;  // of a loop whose bodies poll

void work(int self) {
  const Loop &loop = pool.loop;
  const int runs = loop.runs;
  for (int k = 0; k < runs; k++) {
    Run &run = pool.runs[(self + k) % runs];
    if (run.next.load(std::memory_order_relaxed) >= run.end) continue;
    for (int64_t i; (i = run.next.fetch_add(1, std::memory_order_relaxed)) < run.end;) loop.run_chunk(i);
  }
}

// The part of one thread. Separate from what has destructors: bodies leave it by a jump where the loop is cancelled.
[[gnu::noinline]] void work_until_cancelled(int self) {
  if (!pool.loop.polls) return work(self);
  jmp_buf start;
  way_out = &start;
  if (_setjmp(start) == 0) work(self);
}

bool enter_gate() {
  uint32_t gate = pool.gate.load(std::memory_order_relaxed);
  while (gate & 1)
    if (pool.gate.compare_exchange_weak(gate, gate + 2, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  return false;
}

void leave_gate() {
  if (pool.gate.fetch_sub(2, std::memory_order_acq_rel) == (kCallerSleeps | 2)) futex_wake(&pool.gate, 1);
}

void close_gate() {
  uint32_t gate = pool.gate.fetch_and(~1u, std::memory_order_acq_rel) & ~1u;
  for (int spins = 0; gate != 0 && spins < kSpins; spins++) {
    cpu_pause();
    gate = pool.gate.load(std::memory_order_acquire);
  }
  if (gate == 0) return;
  gate = pool.gate.fetch_or(kCallerSleeps, std::memory_order_acq_rel) | kCallerSleeps;
  const timespec period = {0, kSignalPeriod * 1000000};
  while (gate != kCallerSleeps) {
    const bool polls = pool.loop.polls && !pool_is_cancelled();
    futex_wait(&pool.gate, gate, polls ? &period : nullptr);
    if (polls && interrupts_waiting()) pool_cancel();
    gate = pool.gate.load(std::memory_order_acquire);
  }
}

uint32_t wait_for_epoch(uint32_t seen) {
  for (int spins = 0; spins < kSpins; spins++) {
    uint32_t now = pool.epoch.load(std::memory_order_acquire);
    if (now != seen) return now;
    cpu_pause();
  }
  for (;;) {
    pool.sleepers.fetch_add(1, std::memory_order_seq_cst);
    uint32_t now = pool.epoch.load(std::memory_order_seq_cst);
    if (now == seen) futex_wait(&pool.epoch, seen);
    pool.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    now = pool.epoch.load(std::memory_order_acquire);
    if (now != seen) return now;
  }
}

void *worker_main(void *argument) {
  const int self = static_cast<int>(reinterpret_cast<intptr_t>(argument) & 0xFFFF);
  uint32_t seen = static_cast<uint32_t>(reinterpret_cast<intptr_t>(argument) >> 16);
  inside_loop = true;
  for (;;) {
    seen = wait_for_epoch(seen);
    if (pool.stopping.load(std::memory_order_acquire)) return nullptr;
    if (!enter_gate()) continue;
    // The gate may belong to a later loop than the epoch just seen; then this is that loop's work.
    set_float_control(pool.loop.float_control);
    work_until_cancelled(self);
    leave_gate();
  }
}

int available_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  // More CPUs than cpu_set_t has bits for.
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  return online > 0 ? static_cast<int>(std::min<long>(online, kMaxThreads)) : 1;
}

bool try_lock_launch() {
  bool expected = false;
  return pool.launching.compare_exchange_strong(expected, true, std::memory_order_acquire);
}

void lock_launch() {
  while (!try_lock_launch()) sched_yield();
}

void unlock_launch() { pool.launching.store(false, std::memory_order_release); }

void stop_locked() {
  if (pool.workers > 0) {
    pool.stopping.store(1, std::memory_order_release);
    pool.epoch.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(&pool.epoch, INT_MAX);
    for (int i = 0; i < pool.workers; i++) pthread_join(pool.threads[i], nullptr);
    pool.stopping.store(0, std::memory_order_release);
  }
  pool.workers = 0;
  pool.visible_workers.store(0, std::memory_order_relaxed);
  pool.started = false;
}

// The child has none of the workers, and nothing of the pool is on the heap, so that a fork need not wait for a loop that
// another thread runs: it may be a long one.
void after_fork_in_child() {
  pool.workers = 0;
  pool.started = false;
  pool.visible_workers.store(0);
  pool.gate.store(0);
  pool.sleepers.store(0);
  pool.stopping.store(0);
  pool.cancelled.store(false);
  inside_loop = false;
  unlock_launch();
}

void start_locked() {
  pool.started = true;
  if (!pool.fork_hooks) pool.fork_hooks = pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
  const int wanted = pool_threads() - 1;
  if (wanted <= 0) return;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // Python handles signals in its own threads
  const uint32_t epoch = pool.epoch.load();
  for (int i = 0; i < wanted; i++) {
    intptr_t argument = (static_cast<intptr_t>(epoch) << 16) | (i + 1);
    if (pthread_create(&pool.threads[i], nullptr, worker_main, reinterpret_cast<void *>(argument)) != 0) break;
    pthread_setname_np(pool.threads[i], "mlirml-worker");
    pool.workers = i + 1;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pool.visible_workers.store(pool.workers, std::memory_order_relaxed);
}

void launch_locked(const Loop &loop, int64_t chunks) {
  pool.loop = loop;
  const int runs = loop.runs;
  int64_t begin = 0;
  for (int r = 0; r < runs; r++) {
    int64_t end = begin + chunks / runs + (r < chunks % runs ? 1 : 0);
    pool.runs[r].end = end;
    pool.runs[r].next.store(begin, std::memory_order_relaxed);
    begin = end;
  }
  pool.gate.store(1, std::memory_order_release);
  pool.epoch.fetch_add(1, std::memory_order_seq_cst);
  if (pool.sleepers.load(std::memory_order_seq_cst) > 0) futex_wake(&pool.epoch, runs - 1);
  work_until_cancelled(0);
  close_gate();
}

}  // namespace

unsigned float_control() {
#if defined(__x86_64__)
  return _mm_getcsr() & ~0x3Fu;
#else
  return 0;
#endif
}

void set_float_control([[maybe_unused]] unsigned control) {
#if defined(__x86_64__)
  unsigned current = _mm_getcsr();
  if ((current & ~0x3Fu) != control) _mm_setcsr(control | (current & 0x3Fu));
#endif
}

bool pool_is_inside_loop() { return inside_loop; }

void pool_cancel() { pool.cancelled.store(true, std::memory_order_relaxed); }

bool pool_is_cancelled() { return pool.cancelled.load(std::memory_order_relaxed); }

void pool_leave_loop() { longjmp(*way_out, 1); }

int pool_threads() {
  int limit = pool.limit.load(std::memory_order_relaxed);
  int cpus = std::min(available_cpus(), kMaxThreads);
  return limit > 0 ? std::min(limit, cpus) : cpus;
}

void pool_set_threads(int threads) {
  if (inside_loop) return;
  lock_launch();
  pool.limit.store(threads, std::memory_order_relaxed);
  if (pool.started && pool.workers != pool_threads() - 1) stop_locked();
  unlock_launch();
}

int pool_workers() { return pool.visible_workers.load(std::memory_order_relaxed); }

void pool_stop() {
  if (inside_loop) return;
  lock_launch();
  stop_locked();
  unlock_launch();
}

// True if the loop was cancelled.
static bool run_loop(Body body, int64_t lo, int64_t hi, int64_t grain, void *context, int chunks_per_thread,
                     bool polls) {
  if (hi <= lo) return false;
  const uint64_t extent = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  const uint64_t pieces = extent / static_cast<uint64_t>(std::max<int64_t>(grain, 1));
  if (pieces < 2 || extent > INT64_MAX || inside_loop || !try_lock_launch()) {
    body(lo, hi, context);
    return false;
  }
  if (!pool.started) start_locked();
  if (pool.workers == 0) {
    unlock_launch();
    body(lo, hi, context);
    return false;
  }
  const int64_t threads = pool.workers + 1;
  const int64_t chunks = std::min<int64_t>(static_cast<int64_t>(pieces), threads * chunks_per_thread);
  const auto size = static_cast<int64_t>(extent);
  Loop loop = {body, context, lo, size / chunks, size % chunks, float_control(),
               static_cast<int>(std::min<int64_t>(threads, chunks)), polls};
  inside_loop = true;
  launch_locked(loop, chunks);
  inside_loop = false;
  const bool is_cancelled = pool.cancelled.exchange(false, std::memory_order_relaxed);
  unlock_launch();
  return is_cancelled;
}

void parallel_for(Body body, int64_t lo, int64_t hi, int64_t grain, void *context) {
  run_loop(body, lo, hi, grain, context, kChunksPerThread, false);
}

}  // namespace mlirml

extern "C" int64_t mlirml_threads() { return mlirml::pool_is_inside_loop() ? 1 : mlirml::pool_threads(); }

extern "C" void mlirml_parallel_for(void (*body)(int64_t, int64_t, void *), int64_t lo, int64_t hi, int64_t grain,
                                    void *context) {
  using namespace mlirml;
  if (run_loop(body, lo, hi, grain, context, kChunksPerThread, program_polls())) leave_program();
}

extern "C" void mlirml_parallel_for_long(void (*body)(int64_t, int64_t, void *), int64_t lo, int64_t hi, int64_t grain,
                                         void *context) {
  using namespace mlirml;
  if (run_loop(body, lo, hi, grain, context, kLongChunksPerThread, program_polls())) leave_program();
}
