// Devices as compiled programs see them: addresses that mean something to the device only, kernels, one queue.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

namespace mlirml {

// The device is gone, or refuses what was asked of it. The message is for users.
struct DeviceError : std::runtime_error {
  explicit DeviceError(const std::string &message, std::string help = "")
      : std::runtime_error(message), help(std::move(help)) {}
  std::string help;
};

// What each use of a device says after it was lost.
inline DeviceError lost_device(const std::string &name) {
  return DeviceError("the device " + name + " was lost",
                     "host arrays are as they were, and other devices work; this one does again in a new process. "
                     "MLIRML_SYNC=1 tells which kernel failed");
}

// How often this process has come out of a fork.
inline std::atomic<unsigned> forks{0};
inline const int forks_are_counted = pthread_atfork(nullptr, nullptr, [] { forks++; });

inline const char *const kSpawn =
    "open devices in the child only, or start it anew, as by `multiprocessing.get_context(\"spawn\")`";

// The lock of a device, which belongs to the process that has opened it: its threads and its queues are not forked.
class DeviceMutex {
 public:
  explicit DeviceMutex(const std::string &name) : name_(name) {}
  bool is_ours() const { return opened_ == forks; }
  void lock() {
    if (!is_ours())
      throw DeviceError("the device " + name_ + " was opened by the parent of this process, and does not survive a fork",
                        kSpawn);
    mutex_.lock();
  }
  void unlock() { mutex_.unlock(); }

 private:
  const std::string &name_;
  const unsigned opened_ = forks;
  std::recursive_mutex mutex_;
};

// The device cannot be had; `help` says what to install.
struct NoDevice : std::runtime_error {
  NoDevice(const std::string &message, std::string help) : std::runtime_error(message), help(std::move(help)) {}
  std::string help;
};

// Raises where a library was opened by the parent of this process.
inline void need_own_library(unsigned opened) {
  if (opened != forks) throw NoDevice("the driver was started by the parent of this process, and does not survive a fork", kSpawn);
}

class Device;

// A kernel that is loaded; what host code has in its table.
struct Kernel {
  Device *device = nullptr;
  int64_t number = 0;  // in the table of its program
  virtual ~Kernel() = default;
};

// What host code asks of a kernel.
struct Launch {
  uint32_t grid[3], block[3], shared_bytes;
};

// A kernel as it is loaded: its name, and the bytes of its arguments, 0 for buffers.
struct KernelEntry {
  std::string name;
  std::vector<uint32_t> scalar_bytes;
  std::string image;  // the code of this kernel alone, whose symbol is `kOwnSymbol`; empty if it is in that of all
  // For each argument: 0 for a number, else four times the bytes of its array, and 1 if it reads them, 2 if it writes
  // them; -1 for an array of which nothing is known.
  std::vector<int64_t> accesses;
};

// How a call of a program is run.
struct RunOptions {
  bool waits = false;   // for each kernel, to know which one failed
  bool graphs = true;   // gives many launches to the device at once
  uint32_t streams = 1;  // most launches side by side
};

constexpr char kOwnSymbol[] = "kernel";

// All work is done in the order of the calls.
class Device {
 public:
  virtual ~Device() = default;

  // Called by host code that runs between `begin` and `end`; failures are kept for `end`.
  virtual void launch(Kernel *kernel, const Launch &launch, void *const *arguments, size_t count) noexcept = 0;
  virtual void copy_any(uint64_t target, uint64_t source, size_t size) noexcept = 0;
};

}  // namespace mlirml

// What host code calls, by upstream's names. The stream is the device.
extern "C" {
void mgpuLaunchKernel(void *kernel, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z, intptr_t block_x,
                      intptr_t block_y, intptr_t block_z, int32_t shared_bytes, void *stream, void **arguments,
                      void **extra, size_t count);
void mgpuMemcpy(void *target, void *source, size_t size, void *stream);
}
