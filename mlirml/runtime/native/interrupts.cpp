// Python runs signal handlers in its main thread, between bytecodes. While that thread is in machine code, the code asks
// for them itself, a few times a second. A handler that raises ends the program by a jump to where it was entered:
// compiled code has no destructors, and its loops that poll hold no locks. From the body of a parallel loop the jump goes
// by way of the pool, which waits until the other threads have left the loop, too.
#include "interrupts.h"

#include <setjmp.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "pool.h"

namespace mlirml {
namespace {

struct Run {
  jmp_buf start;
  PyThreadState *state;
  Run *outer;
  bool is_inside_loop;  // of an outer program: a signal handler has called this one
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

// True where a signal handler raises, whose exception stays with the thread.
bool handlers_raise(Run &run) {
  const int64_t now = milliseconds();
  if (now < run.next) return false;
  const bool is_first = run.next == 0;
  run.next = now + kSignalPeriod;
  if (is_first) return false;
  if (!is_main_thread()) {
    run.next = INT64_MAX;
    return false;
  }
  const unsigned control = float_control();
  take_gil(run.state);
  const bool raised = PyErr_CheckSignals() != 0;
  run.state = PyEval_SaveThread();
  set_float_control(control);
  return raised;
}

}  // namespace

bool interrupts_waiting() { return current && handlers_raise(*current); }

bool program_polls() { return current != nullptr; }

void leave_program() {
  take_gil(current->state);
  longjmp(current->start, 1);
}

void call_or_leave(bool (*function)(int64_t), int64_t number) {
  Run *run = current;
  take_gil(run->state);
  const bool succeeded = function(number);
  current = run;
  run->state = PyEval_SaveThread();
  if (!succeeded) leave_program();
}

bool run_entry_point(void (*entry)(void **), void **pointers, bool polls) {
  Run run;
  run.outer = current;
  if (!polls) {
    current = nullptr;
    PyThreadState *state = PyEval_SaveThread();
    entry(pointers);
    take_gil(state);
    current = run.outer;
    return true;
  }
  run.is_inside_loop = pool_is_inside_loop();
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
  const bool is_in_pool = pool_is_inside_loop() && !(current && current->is_inside_loop);
  if (is_in_pool && pool_is_cancelled()) pool_leave_loop();
  if (!current || !handlers_raise(*current)) return;
  if (!is_in_pool) leave_program();
  pool_cancel();
  pool_leave_loop();
}
