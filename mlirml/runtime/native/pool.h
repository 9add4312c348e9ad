// The thread pool behind parallel loops.
#pragma once

#include <cstdint>

extern "C" {
// Runs body over [lo, hi) in pieces of at least `grain` iterations (the whole range may be one piece) and returns when
// all are done. Calls from inside a body, and calls while another Python thread uses the pool, run in the caller alone.
void mlirml_parallel_for(void (*body)(int64_t lo, int64_t hi, void *context), int64_t lo, int64_t hi, int64_t grain,
                         void *context);

// The same in few, long pieces, for bodies that do something before their first iteration that others are spared.
void mlirml_parallel_for_long(void (*body)(int64_t lo, int64_t hi, void *context), int64_t lo, int64_t hi,
                              int64_t grain, void *context);

// The number of threads that a loop which begins here may use.
int64_t mlirml_threads();
}

namespace mlirml {

// Rounding, flush-to-zero and exception masks; the low six bits are sticky flags, which belong to each thread.
unsigned float_control();
void set_float_control(unsigned control);

// `mlirml_parallel_for` for callers with destructors: it always returns, whatever signals come.
void parallel_for(void (*body)(int64_t lo, int64_t hi, void *context), int64_t lo, int64_t hi, int64_t grain,
                  void *context);

// Whether this thread is in the body of a parallel loop.
bool pool_is_inside_loop();

// Ends the parallel loop that this thread has begun: each thread leaves it where it polls next, and the program then
// fails with the exception of a signal handler.
void pool_cancel();
bool pool_is_cancelled();
[[noreturn]] void pool_leave_loop();

// The number of threads that the next loop may use, the caller's included.
int pool_threads();

// Caps the number of threads; 0 stands for every CPU this process may run on. Waits for a running loop.
void pool_set_threads(int threads);

// Workers alive now (without callers); 0 before the first parallel loop.
int pool_workers();

// Ends the workers. A later loop starts new ones.
void pool_stop();

}  // namespace mlirml
