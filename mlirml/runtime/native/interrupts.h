// Ctrl-C, and other signals that Python handles, while machine code runs.
#pragma once

#include <cstdint>

#include "numpy_api.h"

extern "C" {
// Called by compiled code once in a while in loops that may be long or endless. Where a signal handler raises, it does
// not return: the call of the program fails with the handler's exception.
void mlirml_poll();
}

namespace mlirml {

// Runs `entry(pointers)` without the GIL. `polls` says whether the code calls `mlirml_poll`. False with an exception set
// where a signal handler has raised one.
bool run_entry_point(void (*entry)(void **), void **pointers, bool polls);

// Looks at the signals if the last look is a while ago, in a thread that waits for others. True where a handler has
// raised: the exception stays with the thread, which leaves the program by `leave_program`.
bool interrupts_waiting();
[[noreturn]] void leave_program();

// Calls a function with the GIL, in a program that polls signals, and leaves that where it gives false with an exception.
void call_or_leave(bool (*function)(int64_t), int64_t number);

// Whether the program that this thread runs polls signals.
bool program_polls();

// How long a thread may wait for others without a look at the signals.
constexpr int64_t kSignalPeriod = 100;  // milliseconds: to get the GIL may take five

}  // namespace mlirml
