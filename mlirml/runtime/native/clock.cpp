// Kernels are timed in the thread that runs the program: workers belong to the kernel that started them.
#include "clock.h"

#include <time.h>

#include <memory>

namespace mlirml {
namespace {

struct Recorder {
  KernelRecord record;
  std::vector<int64_t> begins;
  size_t capacity = 0;
};

thread_local std::unique_ptr<Recorder> recorder;

bool has(int64_t kernel) {
  return recorder && kernel >= 0 && static_cast<size_t>(kernel) < recorder->begins.size();
}

}  // namespace

int64_t clock_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void start_kernel_record(int64_t kernels, int64_t capacity) {
  recorder = std::make_unique<Recorder>();
  recorder->begins.resize(static_cast<size_t>(kernels));
  recorder->record.totals.resize(static_cast<size_t>(kernels));
  recorder->capacity = static_cast<size_t>(capacity);
  recorder->record.events.reserve(recorder->capacity);  // memory for an event is not found while a kernel waits
}

KernelRecord end_kernel_record() {
  if (!recorder) return {};
  KernelRecord record = std::move(recorder->record);
  recorder.reset();
  return record;
}

}  // namespace mlirml

void mlirml_kernel_begins(int64_t kernel) {
  if (mlirml::has(kernel)) mlirml::recorder->begins[static_cast<size_t>(kernel)] = mlirml::clock_nanoseconds();
}

void mlirml_kernel_ends(int64_t kernel) {
  using namespace mlirml;
  if (!has(kernel)) return;
  const int64_t end = clock_nanoseconds();
  const auto index = static_cast<size_t>(kernel);
  KernelRecord &record = recorder->record;
  record.totals[index].calls++;
  record.totals[index].nanoseconds += end - recorder->begins[index];
  if (record.events.size() < recorder->capacity) record.events.push_back({kernel, recorder->begins[index], end});
}
