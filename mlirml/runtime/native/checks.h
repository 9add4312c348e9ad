// Checks that a compiled program makes while it runs, such as that an index lies inside of an array.
#pragma once

#include <cstdint>

extern "C" {
// Called by compiled code on the thread that called the entry, when check `number` fails. The program goes on, safely;
// the call raises once the entry has returned.
void mlirml_check_failed(int64_t number);
}

namespace mlirml {

// Raises `mlirml.errors.CheckFailed` for the first check that failed on this thread since it was last asked; false if
// none did.
bool raise_failed_check();

// Forgets a check that failed on this thread: the call fails for another reason.
void forget_failed_check();

// Whether the exception that is set is such a one.
bool is_failed_check();

}  // namespace mlirml
