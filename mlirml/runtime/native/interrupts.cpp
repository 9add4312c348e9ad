// Python runs signal handlers in its main thread, between bytecodes. While that thread is in machine code, the code asks
// for them itself, a few times a second. A handler that raises ends the program by a jump to where it was entered:
// compiled code has no destructors, and its loops that poll hold no locks.
#include "interrupts.h"

#include <setjmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

namespace mlirml {
namespace {

constexpr int64_t kPeriod = 100;  // milliseconds from one look at the signals to the next: to get the GIL may take five

struct Run {
  jmp_buf start;
  PyThreadState *state;
  Run *outer;
  int64_t next = 0;  // look at the signals then; 0 before the first poll
};

thread_local Run *current = nullptr;

int64_t milliseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1000000;
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030D0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

// Python ends other threads that ask for the GIL at its exit, and would unwind them through C++ frames.
void take_gil(PyThreadState *state) {
  if (is_finalizing() && !is_main_thread())
    for (;;) pause();
  PyEval_RestoreThread(state);
}

// Separate from what has destructors: `longjmp` into a frame leaves its changed variables undefined.
bool run_until_interrupted(void (*entry)(void **), void **pointers, Run &run) {
  const unsigned control = float_control();
  if (_setjmp(run.start) != 0) {  // the GIL is held
    set_float_control(control);
    return false;
  }
  entry(pointers);
  return true;
}

}  // namespace

bool run_entry_point(void (*entry)(void **), void **pointers, bool polls) {
  if (!polls) {
    PyThreadState *state = PyEval_SaveThread();
    entry(pointers);
    take_gil(state);
    return true;
  }
  Run run;
  run.outer = current;
  run.state = PyEval_SaveThread();
  current = &run;
  const bool done = run_until_interrupted(entry, pointers, run);
  current = run.outer;
  if (done) take_gil(run.state);
  return done;
}

}  // namespace mlirml

void mlirml_poll() {
  using namespace mlirml;
  Run *run = current;
  if (!run || pool_is_inside_loop()) return;
  const int64_t now = milliseconds();
  if (now < run->next) return;
  const bool is_first = run->next == 0;
  run->next = now + kPeriod;
  if (is_first) return;
  if (!is_main_thread()) {
    run->next = INT64_MAX;
    return;
  }
  const unsigned control = float_control();
  take_gil(run->state);
  if (PyErr_CheckSignals() != 0) longjmp(run->start, 1);
  run->state = PyEval_SaveThread();
  set_float_control(control);
}
