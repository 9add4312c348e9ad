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

}  // namespace mlirml
