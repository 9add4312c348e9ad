// A lazily started pool of workers. Each thread owns a run of iterations, so that the same thread gets the same part of
// the data again in the next loop, and takes it in chunks; it steals from the others when its own are done. The last
// chunks of a run are the shortest ones: a thread that has nothing left waits for no longer than one of those takes,
// whatever the iterations cost, and whichever core is slower.
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
constexpr int kEqualChunks = 6;  // of a run that is too short for others
constexpr int kSpins = 3000;  // some 50 microseconds
constexpr int kYields = 4000;  // some 2 milliseconds where the CPU has nothing else to run
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

// Where the chunks of a run start, in parts of its length: `starts[count]` is the whole.
struct Shares {
  int count;
  int starts[9];

  int whole() const { return starts[count]; }
};

constexpr Shares kShares = {8, {0, 3, 6, 8, 10, 12, 14, 15, 16}};
constexpr Shares kLongShares = {4, {0, 3, 5, 7, 8}};  // for bodies that do something before their first iteration

struct Loop {
  Body body;
  void *context;
  unsigned float_control;
  int runs;
  int threads;  // that may take part, the caller's included: as many as the CPUs it may run on
  bool polls;  // signals, in the bodies and while the caller waits
};

struct alignas(64) Run {
  std::atomic<int64_t> next;  // chunk
  int64_t chunks;
  int64_t first, size;  // iterations
  const Shares *shares;  // none for chunks of equal length

  void split(int64_t begin, int64_t length, int64_t grain, const Shares &wanted) {
    const int64_t pieces = std::max<int64_t>(1, length / grain);
    first = begin;
    size = length;
    shares = pieces >= wanted.whole() ? &wanted : nullptr;
    chunks = shares ? wanted.count : std::min<int64_t>(pieces, std::min(kEqualChunks, wanted.count));
    next.store(0, std::memory_order_relaxed);
  }

  int64_t start_of(int64_t chunk) const {
    const int64_t part = shares ? shares->starts[chunk] : chunk, whole = shares ? shares->whole() : chunks;
    return first + size / whole * part + size % whole * part / whole;
  }

  bool is_done() const { return next.load(std::memory_order_relaxed) >= chunks; }
};

// Everything is trivially destructible: workers may still look at it while the process exits.
struct Pool {
  // Bit 0: open. Bits 1 to 30: workers inside. Bit 31: the caller sleeps.
  alignas(64) std::atomic<uint32_t> gate;
  alignas(64) std::atomic<uint32_t> epoch;
  std::atomic<int> sleepers;
  std::atomic<uint32_t> stopping;
  std::atomic<bool> cancelled;  // the loop; changed by its caller alone
  std::atomic<int> caller, caller_cpu;  // the thread, and where it was when the loop began
  alignas(64) std::atomic<bool> launching;
  Loop loop;
  Run runs[kMaxThreads];
  pthread_t threads[kMaxThreads];
  int workers;  // guarded by `launching`, like the next two
  int wanted;  // workers that were started, or that the system refused
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
    if (run.is_done()) continue;
    for (int64_t i; (i = run.next.fetch_add(1, std::memory_order_relaxed)) < run.chunks;)
      loop.body(run.start_of(i), run.start_of(i + 1), loop.context);
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
  // Linux wakes a thread that slept on the CPU of the thread that wakes it, which is a worker with a CPU of its own.
  for (int spins = 0; gate != 0 && spins < kSpins + kYields; spins++) {
    if (spins < kSpins)
      cpu_pause();
    else
      sched_yield();
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

// Linux may wake a worker on the CPU of the caller, which does not pause, and leave it there while another CPU is idle:
// it would be too late for each loop. It leaves that CPU, and is not woken there again.
void leave_cpu_of_caller() {
  const int cpu = pool.caller_cpu.load(std::memory_order_relaxed);
  if (cpu < 0 || cpu >= CPU_SETSIZE || sched_getcpu() != cpu) return;
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(pool.caller.load(std::memory_order_relaxed), sizeof cpus, &cpus) != 0) return;
  CPU_CLR(cpu, &cpus);
  if (CPU_COUNT(&cpus) > 0) sched_setaffinity(0, sizeof cpus, &cpus);
}

void *worker_main(void *argument) {
  const int self = static_cast<int>(reinterpret_cast<intptr_t>(argument) & 0xFFFF);
  uint32_t seen = static_cast<uint32_t>(reinterpret_cast<intptr_t>(argument) >> 16);
  inside_loop = true;
  for (;;) {
    seen = wait_for_epoch(seen);
    if (pool.stopping.load(std::memory_order_acquire)) return nullptr;
    leave_cpu_of_caller();
    if (!enter_gate()) continue;
    // The gate may belong to a later loop than the epoch just seen; then this is that loop's work.
    if (self < pool.loop.threads) {
      set_float_control(pool.loop.float_control);
      work_until_cancelled(self);
    }
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

// The CPUs of this thread, which take a system call to ask for: not more often than the coarse clock moves.
int recent_cpus() {
  thread_local int cpus = 0;
  thread_local timespec asked = {};
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  if (cpus == 0 || now.tv_nsec != asked.tv_nsec || now.tv_sec != asked.tv_sec) {
    cpus = available_cpus();
    asked = now;
  }
  return cpus;
}

int limited(int cpus) {
  const int limit = pool.limit.load(std::memory_order_relaxed), most = std::min(cpus, kMaxThreads);
  return limit > 0 ? std::min(limit, most) : most;
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
  pool.wanted = 0;
}

// The child has none of the workers, and nothing of the pool is on the heap, so that a fork need not wait for a loop that
// another thread runs: it may be a long one.
void after_fork_in_child() {
  pool.workers = 0;
  pool.wanted = 0;
  pool.visible_workers.store(0);
  pool.gate.store(0);
  pool.sleepers.store(0);
  pool.stopping.store(0);
  pool.cancelled.store(false);
  inside_loop = false;
  unlock_launch();
}

// Starts workers until there are so many. They may run on the CPUs of the thread that starts them.
void start_locked(int wanted) {
  if (wanted <= pool.wanted) return;
  pool.wanted = wanted;
  if (!pool.fork_hooks) pool.fork_hooks = pthread_atfork(nullptr, nullptr, after_fork_in_child) == 0;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // Python handles signals in its own threads
  const uint32_t epoch = pool.epoch.load();
  for (int i = pool.workers; i < wanted; i++) {
    intptr_t argument = (static_cast<intptr_t>(epoch) << 16) | (i + 1);
    if (pthread_create(&pool.threads[i], nullptr, worker_main, reinterpret_cast<void *>(argument)) != 0) break;
    pthread_setname_np(pool.threads[i], "mlirml-worker");
    pool.workers = i + 1;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pool.visible_workers.store(pool.workers, std::memory_order_relaxed);
}

void launch_locked(const Loop &loop, int64_t begin, int64_t size, int64_t grain, const Shares &shares) {
  pool.loop = loop;
  const int runs = loop.runs;
  for (int r = 0; r < runs; r++) {
    const int64_t length = size / runs + (r < size % runs ? 1 : 0);
    pool.runs[r].split(begin, length, grain, shares);
    begin += length;
  }
  static thread_local const int self = static_cast<int>(syscall(SYS_gettid));
  pool.caller.store(self, std::memory_order_relaxed);
  pool.caller_cpu.store(sched_getcpu(), std::memory_order_relaxed);
  pool.gate.store(1, std::memory_order_release);
  pool.epoch.fetch_add(1, std::memory_order_seq_cst);
  // Any worker may be woken: where some may not take part, all are.
  const int woken = loop.threads > pool.workers ? runs - 1 : INT_MAX;
  if (pool.sleepers.load(std::memory_order_seq_cst) > 0) futex_wake(&pool.epoch, woken);
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

int pool_threads() { return limited(available_cpus()); }

void pool_set_threads(int threads) {
  if (inside_loop) return;
  lock_launch();
  pool.limit.store(threads, std::memory_order_relaxed);
  if (pool.workers > pool_threads() - 1) stop_locked();
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
static bool run_loop(Body body, int64_t lo, int64_t hi, int64_t grain, void *context, const Shares &shares,
                     bool polls) {
  if (hi <= lo) return false;
  grain = std::max<int64_t>(grain, 1);
  const uint64_t extent = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
  const uint64_t pieces = extent / static_cast<uint64_t>(grain);
  if (pieces < 2 || extent > INT64_MAX || inside_loop || !try_lock_launch()) {
    body(lo, hi, context);
    return false;
  }
  // The CPUs of this thread may have changed since the last loop, and other threads may have others.
  const int allowed = limited(recent_cpus());
  start_locked(allowed - 1);
  const int threads = std::min(pool.workers + 1, allowed);
  if (threads < 2) {
    unlock_launch();
    body(lo, hi, context);
    return false;
  }
  const int64_t runs = std::min<int64_t>(threads, static_cast<int64_t>(pieces));
  const Loop loop = {body, context, float_control(), static_cast<int>(runs), threads, polls};
  inside_loop = true;
  launch_locked(loop, lo, static_cast<int64_t>(extent), grain, shares);
  inside_loop = false;
  const bool is_cancelled = pool.cancelled.exchange(false, std::memory_order_relaxed);
  unlock_launch();
  return is_cancelled;
}

void parallel_for(Body body, int64_t lo, int64_t hi, int64_t grain, void *context) {
  run_loop(body, lo, hi, grain, context, kShares, false);
}

}  // namespace mlirml

extern "C" int64_t mlirml_threads() { return mlirml::pool_is_inside_loop() ? 1 : mlirml::pool_threads(); }

extern "C" void mlirml_parallel_for(void (*body)(int64_t, int64_t, void *), int64_t lo, int64_t hi, int64_t grain,
                                    void *context) {
  using namespace mlirml;
  if (run_loop(body, lo, hi, grain, context, kShares, program_polls())) leave_program();
}

extern "C" void mlirml_parallel_for_long(void (*body)(int64_t, int64_t, void *), int64_t lo, int64_t hi, int64_t grain,
                                         void *context) {
  using namespace mlirml;
  if (run_loop(body, lo, hi, grain, context, kLongShares, program_polls())) leave_program();
}
