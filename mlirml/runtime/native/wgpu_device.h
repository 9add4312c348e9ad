// A Vulkan device through wgpu-native's C interface.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string_view>

#include "device.h"
#include "wgpu_abi.h"

namespace mlirml {

// The library, opened by its path, and the adapters that it finds by one backend: 1 is Vulkan, 4 Metal.
class WgpuLibrary {
 public:
  WgpuLibrary(const std::string &path, uint64_t backend);  // throws NoDevice
  size_t count() const { return adapters_.size(); }
  wgpu::Handle adapter(size_t index) const;  // throws NoDevice
  const wgpu::Functions &functions() const { return functions_; }
  const unsigned opened = forks;

 private:
  wgpu::Functions functions_;
  wgpu::Handle instance_ = nullptr;
  std::vector<wgpu::Handle> adapters_;
};

// Buffers that are bound together, by their addresses.
struct BoundGroup {
  std::vector<uint64_t> addresses;
  wgpu::Handle handle = nullptr;
};

struct WgpuKernel : Kernel {
  std::string name;
  wgpu::Handle pipeline = nullptr, layout = nullptr;
  std::vector<uint32_t> scalar_bytes;  // of each argument; 0 for a buffer
  bool moves = false;                  // whether numbers are bound once, and found by offsets
  std::vector<BoundGroup> recent;      // groups, the last one found in front
};

class WgpuDevice;

// Shader code with its kernels; they live as long as this.
struct WgpuModule {
  WgpuModule() = default;
  WgpuModule(const WgpuModule &) = delete;
  WgpuModule &operator=(const WgpuModule &) = delete;
  std::shared_ptr<WgpuDevice> device;
  std::vector<std::unique_ptr<WgpuKernel>> kernels;
  ~WgpuModule();
};

class WgpuDevice : public Device {
 public:
  WgpuDevice(std::shared_ptr<WgpuLibrary> library, size_t index);  // throws NoDevice
  ~WgpuDevice() override;

  uint64_t alloc(uint64_t size);  // throws std::bad_alloc, DeviceError
  void free(uint64_t address);
  void copy_in(uint64_t address, const void *source, size_t size);
  void copy_out(void *target, uint64_t address, size_t size);
  void copy(uint64_t target, uint64_t source, size_t size);
  uint64_t mark();
  bool wait(uint64_t mark, double seconds);  // without end where negative
  void load(std::string_view code, std::string_view, const std::vector<KernelEntry> &entries, WgpuModule &module);

  // Runs host code that launches and copies; `table` is its last argument but for the stream, which is put in front.
  void run(void (*entry)(void **), std::vector<void *> &pointers, WgpuModule *module, const RunOptions &options);
  std::string take_warning() { return {}; }
  void lose();  // for tests: as if the device had been lost

  void launch(Kernel *kernel, const Launch &launch, void *const *arguments, size_t count) noexcept override;
  void copy_any(uint64_t target, uint64_t source, size_t size) noexcept override;

  // Addresses have the top bits 01, so that they are none of the host's, and nobody can follow them by mistake.
  static bool is_address(uint64_t address) { return address >> 62 == 1; }

  std::string name, driver;
  uint32_t kind = 0, subgroup_min = 0, subgroup_max = 0;
  std::set<std::string> features;
  wgpu::Limits limits;
  uint64_t launches = 0, submissions = 0, bytes_in = 0, bytes_out = 0;

 private:
  struct Buffer {
    wgpu::Handle handle = nullptr;
    uint64_t size = 0;
  };
  struct Place {
    const Buffer *buffer;
    uint64_t offset;
  };

  Place find(uint64_t address, uint64_t size) const;  // throws DeviceError
  wgpu::Handle create_buffer(uint64_t size, wgpu::Flags usage);
  wgpu::Handle encoder();
  wgpu::Handle pass();
  void end_pass();
  void flush();
  void check();
  void fail(const std::string &message);
  void write(uint64_t address, const void *source, size_t size);
  void read(void *target, uint64_t address, size_t size);
  void copy_on_device(uint64_t target, uint64_t source, size_t size);
  void launch_checked(WgpuKernel &kernel, const uint32_t (&grid)[3], void *const *arguments, size_t count);
  void make_pipeline(WgpuKernel &kernel, wgpu::Handle shader);
  bool is_idle();
  uint64_t put_scalar(const void *value, size_t size);
  wgpu::Handle group(WgpuKernel &kernel);
  void forget_groups(WgpuKernel &kernel);
  void forget_groups();
  void stage_for(uint64_t size);

  friend struct WgpuModule;
  friend void on_error(const wgpu::Handle *, uint32_t, wgpu::StringView, void *, void *);
  friend void on_lost(const wgpu::Handle *, uint32_t, wgpu::StringView, void *, void *);
  friend void on_done(uint32_t, wgpu::StringView, void *, void *);

  std::shared_ptr<WgpuLibrary> library_;
  const wgpu::Functions &f_;
  wgpu::Handle device_ = nullptr, queue_ = nullptr, encoder_ = nullptr, pass_ = nullptr;
  wgpu::Handle current_pipeline_ = nullptr;
  std::vector<Buffer> buffers_;  // by the number in the address
  std::vector<size_t> unused_;
  Buffer stage_, scalars_;
  std::vector<unsigned char> scalar_shadow_;
  uint64_t scalars_used_ = 0, scalars_address_ = 0;
  std::vector<WgpuKernel *> kernels_;  // all that are loaded
  std::vector<uint64_t> addresses_;    // of the arguments of a launch
  std::vector<uint32_t> offsets_;      // of its numbers
  uint64_t in_pass_ = 0, pending_ = 0;
  std::atomic<uint64_t> completed_{0};
  std::atomic<bool> lost_{false}, out_of_memory_{false};
  bool waits_ = false;  // for each kernel, to know which one failed
  std::string error_;
  DeviceMutex mutex_{name};
};

}  // namespace mlirml
