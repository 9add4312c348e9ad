// The times of the kernels of a program that was compiled to be measured.
#pragma once

#include <cstdint>
#include <vector>

extern "C" {
// Called by such a program before and after a kernel. Does nothing in a thread that records nothing.
void mlirml_kernel_begins(int64_t kernel);
void mlirml_kernel_ends(int64_t kernel);
}

namespace mlirml {

// One execution of a kernel; times in nanoseconds of the monotonic clock.
struct KernelEvent {
  int64_t kernel, begin, end;
};

struct KernelTotals {
  int64_t calls = 0, nanoseconds = 0;
};

struct KernelRecord {
  std::vector<KernelTotals> totals;
  std::vector<KernelEvent> events;  // the first executions, up to the capacity
};

int64_t clock_nanoseconds();

// Starts a record of `kernels` kernels for programs that this thread runs, with room for `capacity` events.
void start_kernel_record(int64_t kernels, int64_t capacity);

// Ends it; empty where there was none.
KernelRecord end_kernel_record();

}  // namespace mlirml
