// Work is recorded into one compute pass until somebody needs it done, or the pass has grown long: kernels of one pass
// see what earlier ones wrote, and a pass costs as much as fifty launches.
#include "wgpu_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <new>

namespace mlirml {
namespace {

constexpr uint32_t kMajor = 29;
constexpr int kOffsetBits = 38;  // of an address: memory of one buffer; the number of the buffer is above
constexpr uint64_t kMark = uint64_t{1} << 62;
constexpr uint64_t kAlignment = 256;
constexpr uint64_t kScalarBytes = 1 << 18;
constexpr uint64_t kShortestPass = 256, kLongestPass = 1024;  // of those that nobody waits for
constexpr size_t kMostGroups = 64;  // of a kernel
constexpr uint32_t kSpirvMagic = 0x07230203;

const char *const kInstall = "install a Vulkan driver, on Debian `apt-get install libvulkan1 mesa-vulkan-drivers`";

std::string text(wgpu::StringView view) {
  if (!view.data) return "";
  return view.length == SIZE_MAX ? std::string(view.data) : std::string(view.data, view.length);
}

wgpu::StringView view(const std::string &value) { return {value.data(), value.size()}; }

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

size_t number_of(uint64_t address) { return (address & (kMark - 1)) >> kOffsetBits; }

uint64_t offset_of(uint64_t address) { return address & ((uint64_t{1} << kOffsetBits) - 1); }

void on_device(uint32_t status, wgpu::Handle device, wgpu::StringView message, void *data1, void *data2) {
  if (status == wgpu::kSuccess) *static_cast<wgpu::Handle *>(data1) = device;
  else *static_cast<std::string *>(data2) = text(message);
}

void on_mapped(uint32_t status, wgpu::StringView, void *data, void *) { *static_cast<uint32_t *>(data) = status; }

}  // namespace

WgpuLibrary::WgpuLibrary(const std::string &path, uint64_t backend) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: drivers do not like it
  if (!library) throw NoDevice(std::string("wgpu-native cannot be loaded: ") + dlerror(), "install the package `wgpu` again");
  const char *missing = nullptr;
  auto symbol = [&](const char *name) {
    void *found = dlsym(library, name);
    if (!found) missing = name;
    return found;
  };
#define MLIRML_LOAD(result, name, arguments) \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(symbol("wgpu" #name));
  MLIRML_WGPU_FUNCTIONS(MLIRML_LOAD)
#undef MLIRML_LOAD
  const std::string other = "install version 0.32 of the package `wgpu`";
  if (missing) throw NoDevice(std::string("wgpu-native has no function `") + missing + "`", other);
  const uint32_t version = functions_.GetVersion();
  if (version >> 24 != kMajor)
    throw NoDevice("wgpu-native has version " + std::to_string(version >> 24) + ", and mlirml needs version " +
                       std::to_string(kMajor),
                   other);
  // One backend alone: Mesa's driver of OpenGL would put its LLVM where the LLVM of the compiler stumbles over it.
  wgpu::InstanceExtras extras;
  extras.chain.type = wgpu::kInstanceExtras;
  extras.backends = backend;
  wgpu::InstanceDescriptor descriptor;
  descriptor.next = &extras.chain;
  instance_ = functions_.CreateInstance(&descriptor);
  if (!instance_) throw NoDevice("wgpu-native gives no instance", kInstall);
  wgpu::EnumerateOptions options;
  options.backends = backend;
  adapters_.resize(functions_.InstanceEnumerateAdapters(instance_, &options, nullptr));
  if (!adapters_.empty()) functions_.InstanceEnumerateAdapters(instance_, &options, adapters_.data());
}

wgpu::Handle WgpuLibrary::adapter(size_t index) const {
  if (index >= adapters_.size())
    throw NoDevice(adapters_.empty() ? "no Vulkan driver offers a device"
                                     : "there are " + std::to_string(adapters_.size()) + " Vulkan devices",
                   kInstall);
  return adapters_[index];
}

void on_error(const wgpu::Handle *, uint32_t kind, wgpu::StringView message, void *data, void *) {
  auto *device = static_cast<WgpuDevice *>(data);
  if (kind == wgpu::kOutOfMemory) device->out_of_memory_ = true;
  device->fail(text(message));
}

void on_lost(const wgpu::Handle *, uint32_t, wgpu::StringView, void *data, void *) {
  static_cast<WgpuDevice *>(data)->lost_ = true;
}

void on_done(uint32_t, wgpu::StringView, void *data, void *mark) {
  auto *device = static_cast<WgpuDevice *>(data);
  const auto number = reinterpret_cast<uint64_t>(mark);
  if (number > device->completed_) device->completed_ = number;
}

WgpuDevice::WgpuDevice(std::shared_ptr<WgpuLibrary> library, size_t index)
    : library_(std::move(library)), f_(library_->functions()) {
  need_own_library(library_->opened);
  wgpu::Handle adapter = library_->adapter(index);
  wgpu::AdapterInfo info;
  f_.AdapterGetInfo(adapter, &info);
  name = text(info.device);
  driver = text(info.description);
  kind = info.kind;
  subgroup_min = info.subgroup_min;
  subgroup_max = info.subgroup_max;
  f_.AdapterInfoFreeMembers(info);
  f_.AdapterGetLimits(adapter, &limits);
  const std::pair<uint32_t, const char *> wanted[] = {{wgpu::kShaderF16, "f16"}, {wgpu::kShaderF64, "f64"},
                                                      {wgpu::kShaderInt64, "i64"}, {wgpu::kSubgroup, "subgroups"},
                                                      {wgpu::kFloat32Atomic, "f32-atomics"}};
  std::vector<uint32_t> found;
  for (const auto &[feature, word] : wanted)
    if (f_.AdapterHasFeature(adapter, feature)) {
      found.push_back(feature);
      features.insert(word);
    }
  wgpu::DeviceDescriptor descriptor;
  descriptor.feature_count = found.size();
  descriptor.features = found.data();
  descriptor.limits = &limits;
  descriptor.lost.function = on_lost;
  descriptor.lost.data1 = this;
  descriptor.error.function = on_error;
  descriptor.error.data1 = this;
  std::string reason;
  wgpu::Callback<wgpu::GotDevice> got;
  got.function = on_device;
  got.data1 = &device_;
  got.data2 = &reason;
  f_.AdapterRequestDevice(adapter, &descriptor, got);
  if (!device_) throw NoDevice("the device " + name + " cannot be opened: " + reason, kInstall);
  queue_ = f_.DeviceGetQueue(device_);
  scalars_address_ = alloc(kScalarBytes);
  scalar_shadow_.resize(kScalarBytes);
}

WgpuDevice::~WgpuDevice() {
  if (!mutex_.is_ours()) return;
  if (pass_) end_pass();
  if (encoder_) f_.CommandEncoderRelease(encoder_);
  forget_groups();
  for (const Buffer &buffer : buffers_)
    if (buffer.handle) f_.BufferRelease(buffer.handle);
  if (stage_.handle) f_.BufferRelease(stage_.handle);
  if (device_) f_.DeviceRelease(device_);
}

void WgpuDevice::fail(const std::string &message) {
  if (error_.empty()) error_ = message.empty() ? "an error without a message" : message;
}

// Raises what has gone wrong since the last call.
void WgpuDevice::check() {
  if (lost_) throw lost_device(name);
  if (error_.empty()) return;
  std::string message;
  message.swap(error_);
  const bool memory = out_of_memory_.exchange(false);
  if (memory) throw std::bad_alloc();
  throw DeviceError("the device " + name + " refuses: " + message);
}

WgpuDevice::Place WgpuDevice::find(uint64_t address, uint64_t size) const {
  const size_t number = number_of(address);
  const uint64_t offset = offset_of(address);
  if (!is_address(address) || number >= buffers_.size() || !buffers_[number].handle ||
      offset + size > buffers_[number].size)
    throw DeviceError("an address is none of the device " + name);
  return {&buffers_[number], offset};
}

wgpu::Handle WgpuDevice::create_buffer(uint64_t size, wgpu::Flags usage) {
  if (size > limits.buffer_bytes) throw std::bad_alloc();
  wgpu::BufferDescriptor descriptor;
  descriptor.size = size;
  descriptor.usage = usage;
  wgpu::Handle handle = f_.DeviceCreateBuffer(device_, &descriptor);
  if (error_.empty() && !lost_ && handle) return handle;
  if (handle) f_.BufferRelease(handle);
  check();
  throw std::bad_alloc();
}

uint64_t WgpuDevice::alloc(uint64_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  if (unused_.empty()) {
    buffers_.emplace_back();
    unused_.push_back(buffers_.size() - 1);
  }
  const size_t number = unused_.back();
  const uint64_t rounded = round_up(std::max<uint64_t>(size, 1), kAlignment);
  Buffer buffer = {create_buffer(rounded, wgpu::kStorage | wgpu::kCopySource | wgpu::kCopyTarget), rounded};
  unused_.pop_back();
  buffers_[number] = buffer;
  return kMark | static_cast<uint64_t>(number) << kOffsetBits;
}

void WgpuDevice::free(uint64_t address) {
  if (!mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(mutex_);
  const size_t number = number_of(address);
  if (number >= buffers_.size() || !buffers_[number].handle) return;
  if (!lost_) flush();
  forget_groups();
  f_.BufferRelease(buffers_[number].handle);  // the device keeps it until its work is done
  buffers_[number] = {};
  unused_.push_back(number);
}

wgpu::Handle WgpuDevice::encoder() {
  if (!encoder_) encoder_ = f_.DeviceCreateCommandEncoder(device_, nullptr);
  return encoder_;
}

wgpu::Handle WgpuDevice::pass() {
  if (!pass_) {
    pass_ = f_.CommandEncoderBeginComputePass(encoder(), nullptr);
    current_pipeline_ = nullptr;
  }
  return pass_;
}

void WgpuDevice::end_pass() {
  if (!pass_) return;
  f_.ComputePassEncoderEnd(pass_);
  f_.ComputePassEncoderRelease(pass_);
  pass_ = nullptr;
}

// Hands the recorded work to the device.
void WgpuDevice::flush() {
  if (!encoder_) return;
  end_pass();
  if (scalars_used_) {
    f_.QueueWriteBuffer(queue_, buffers_[number_of(scalars_address_)].handle, 0, scalar_shadow_.data(), scalars_used_);
    scalars_used_ = 0;
  }
  wgpu::Handle commands = f_.CommandEncoderFinish(encoder_, nullptr);
  f_.CommandEncoderRelease(encoder_);
  encoder_ = nullptr;
  in_pass_ = pending_ = 0;
  f_.QueueSubmit(queue_, 1, &commands);
  f_.CommandBufferRelease(commands);
  submissions++;
  wgpu::Callback<wgpu::Done> done;
  done.function = on_done;
  done.data1 = this;
  done.data2 = reinterpret_cast<void *>(submissions);
  f_.QueueOnSubmittedWorkDone(queue_, done);
}

uint64_t WgpuDevice::mark() {
  std::lock_guard<DeviceMutex> lock(mutex_);
  return submissions + (encoder_ ? 1 : 0);
}

bool WgpuDevice::wait(uint64_t mark, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(std::max(seconds, 0.0));
  {
    std::lock_guard<DeviceMutex> lock(mutex_);
    check();
    if (mark > submissions) flush();
    mark = std::min(mark, submissions);
  }
  while (completed_ < mark) {
    f_.DevicePoll(device_, seconds < 0, nullptr);
    if (lost_) break;
    if (completed_ >= mark) break;
    if (seconds >= 0) {
      if (Clock::now() >= end) return false;
      usleep(50);
    }
  }
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  return true;
}

void WgpuDevice::copy_in(uint64_t address, const void *source, size_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  write(address, source, size);
  check();
}

void WgpuDevice::write(uint64_t address, const void *source, size_t size) {
  if (!size) return;
  const Place place = find(address, size);
  flush();  // what is written goes in front of work that is not submitted yet
  bytes_in += size;
  const uint64_t whole = size & ~uint64_t{3};
  if (place.offset % 4) {  // only host code that stores into the middle of an array of bytes
    const uint64_t first = place.offset & ~uint64_t{3};
    std::vector<unsigned char> words(round_up(place.offset + size, 4) - first);
    const uint64_t base = address - (place.offset - first);
    read(words.data(), base, words.size());
    std::memcpy(words.data() + (place.offset - first), source, size);
    f_.QueueWriteBuffer(queue_, place.buffer->handle, first, words.data(), words.size());
    return;
  }
  if (whole) f_.QueueWriteBuffer(queue_, place.buffer->handle, place.offset, source, whole);
  if (whole == size) return;
  unsigned char last[4] = {};
  if (place.offset + whole + 4 <= place.buffer->size) read(last, address + whole, 4);
  std::memcpy(last, static_cast<const unsigned char *>(source) + whole, size - whole);
  f_.QueueWriteBuffer(queue_, place.buffer->handle, place.offset + whole, last, 4);
}

void WgpuDevice::stage_for(uint64_t size) {
  if (stage_.size >= size) return;
  if (stage_.handle) f_.BufferRelease(stage_.handle);
  stage_ = {};
  const uint64_t rounded = round_up(size, 1 << 16);
  stage_ = {create_buffer(rounded, wgpu::kMapRead | wgpu::kCopyTarget), rounded};
}

void WgpuDevice::copy_out(void *target, uint64_t address, size_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  read(target, address, size);
  check();
}

void WgpuDevice::read(void *target, uint64_t address, size_t size) {
  if (!size) return;
  const Place place = find(address, size);
  const uint64_t first = place.offset & ~uint64_t{3}, bytes = round_up(place.offset + size, 4) - first;
  stage_for(bytes);
  end_pass();
  f_.CommandEncoderCopyBufferToBuffer(encoder(), place.buffer->handle, first, stage_.handle, 0, bytes);
  flush();
  uint32_t status = 0;
  wgpu::Callback<wgpu::Done> done;
  done.function = on_mapped;
  done.data1 = &status;
  f_.BufferMapAsync(stage_.handle, wgpu::kMapForReading, 0, bytes, done);
  while (!status && !lost_) f_.DevicePoll(device_, 1, nullptr);
  if (status != wgpu::kSuccess) {
    check();
    throw DeviceError("the device " + name + " gives no access to its memory");
  }
  const auto *mapped = static_cast<const unsigned char *>(f_.BufferGetConstMappedRange(stage_.handle, 0, bytes));
  std::memcpy(target, mapped + (place.offset - first), size);
  f_.BufferUnmap(stage_.handle);
  bytes_out += size;
}

void WgpuDevice::copy(uint64_t target, uint64_t source, size_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  copy_on_device(target, source, size);
  check();
}

void WgpuDevice::copy_on_device(uint64_t target, uint64_t source, size_t size) {
  if (!size || target == source) return;
  const Place to = find(target, size), from = find(source, size);
  const bool same = to.buffer == from.buffer;
  // The end of a buffer is free to be copied with what stands in front of it.
  const bool whole = size % 4 == 0 || (to.offset + size + 3 >= to.buffer->size && !same);
  if (to.offset % 4 || from.offset % 4 || !whole || same) {
    std::vector<unsigned char> bytes(size);
    read(bytes.data(), source, size);
    write(target, bytes.data(), size);
    return;
  }
  end_pass();
  f_.CommandEncoderCopyBufferToBuffer(encoder(), from.buffer->handle, from.offset, to.buffer->handle, to.offset,
                                      round_up(size, 4));
  pending_++;
}

void WgpuDevice::copy_any(uint64_t target, uint64_t source, size_t size) noexcept {
  if (lost_ || !error_.empty()) {
    if (!is_address(target)) std::memset(reinterpret_cast<void *>(target), 0, size);  // loops that read it must end
    return;
  }
  try {
    if (is_address(target) && is_address(source)) copy_on_device(target, source, size);
    else if (is_address(target)) write(target, reinterpret_cast<const void *>(source), size);
    else if (is_address(source)) read(reinterpret_cast<void *>(target), source, size);
    else std::memmove(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source), size);
  } catch (const std::exception &error) {
    fail(error.what());
    if (!is_address(target)) std::memset(reinterpret_cast<void *>(target), 0, size);
  }
}

void WgpuDevice::launch(Kernel *kernel, const Launch &launch, void *const *arguments, size_t count) noexcept {
  if (lost_ || !error_.empty()) return;
  try {
    auto &known = static_cast<WgpuKernel &>(*kernel);
    launch_checked(known, launch.grid, arguments, count);
    if (!waits_) return;
    flush();
    while (completed_ < submissions && !lost_) f_.DevicePoll(device_, 1, nullptr);
    if (!error_.empty()) error_ = "kernel " + known.name + ": " + error_;
  } catch (const std::exception &error) {
    fail(error.what());
  }
}

void WgpuDevice::launch_checked(WgpuKernel &kernel, const uint32_t (&grid)[3], void *const *arguments, size_t count) {
  if (count != kernel.scalar_bytes.size()) throw DeviceError("kernel " + kernel.name + " takes another number of arguments");
  if (!grid[0] || !grid[1] || !grid[2]) return;
  addresses_.resize(count);
  offsets_.clear();
  // The numbers of one kernel lie in one upload: the next one starts from the front again.
  if (scalars_used_ + count * kAlignment > kScalarBytes) flush();
  for (size_t i = 0; i < count; i++) {
    if (!kernel.scalar_bytes[i]) {
      std::memcpy(&addresses_[i], arguments[i], sizeof(uint64_t));
      continue;
    }
    const uint64_t offset = put_scalar(arguments[i], kernel.scalar_bytes[i]);
    if (kernel.moves) offsets_.push_back(static_cast<uint32_t>(offset));
    addresses_[i] = scalars_address_ + (kernel.moves ? 0 : offset);
  }
  wgpu::Handle bound = group(kernel);
  if (!bound) return;
  wgpu::Handle step = pass();
  if (current_pipeline_ != kernel.pipeline) f_.ComputePassEncoderSetPipeline(step, kernel.pipeline);
  current_pipeline_ = kernel.pipeline;
  f_.ComputePassEncoderSetBindGroup(step, 0, bound, offsets_.size(), offsets_.data());
  f_.ComputePassEncoderDispatchWorkgroups(step, grid[0], grid[1], grid[2]);
  launches++;
  if (++in_pass_ >= kLongestPass || (in_pass_ % kShortestPass == 0 && is_idle())) flush();
}

// Whether all that was handed to the device is done: while it has work, recording on costs less than another pass.
bool WgpuDevice::is_idle() {
  if (completed_ < submissions) f_.DevicePoll(device_, 0, nullptr);
  return completed_ >= submissions;
}

// Numbers are read from a buffer of their own, which is written in front of the kernels that are submitted together.
uint64_t WgpuDevice::put_scalar(const void *value, size_t size) {
  const uint64_t at = scalars_used_;
  std::memcpy(scalar_shadow_.data() + at, value, size);
  scalars_used_ += kAlignment;
  return at;
}

// The group of `addresses_`, kept for the next launches with the same ones.
wgpu::Handle WgpuDevice::group(WgpuKernel &kernel) {
  std::vector<BoundGroup> &recent = kernel.recent;
  for (size_t i = 0; i < recent.size(); i++)
    if (recent[i].addresses == addresses_) {
      const wgpu::Handle found = recent[i].handle;
      if (i > 1) std::swap(recent[i], recent[i - 1]);
      return found;
    }
  std::vector<wgpu::BindGroupEntry> entries(addresses_.size());
  for (size_t i = 0; i < addresses_.size(); i++) {
    const Place place = find(addresses_[i], 1);
    const bool moves = kernel.moves && kernel.scalar_bytes[i];
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].buffer = place.buffer->handle;
    entries[i].offset = place.offset;
    entries[i].size = moves ? kAlignment
                            : std::min(place.buffer->size - place.offset, limits.storage_binding_bytes & ~uint64_t{3});
  }
  wgpu::BindGroupDescriptor descriptor;
  descriptor.layout = kernel.layout;
  descriptor.count = entries.size();
  descriptor.entries = entries.data();
  wgpu::Handle made = f_.DeviceCreateBindGroup(device_, &descriptor);
  if (!error_.empty() || !made) {
    if (made) f_.BindGroupRelease(made);
    return nullptr;
  }
  if (recent.size() >= kMostGroups) {
    f_.BindGroupRelease(recent.back().handle);
    recent.pop_back();
  }
  recent.push_back({addresses_, made});
  return made;
}

void WgpuDevice::forget_groups(WgpuKernel &kernel) {
  for (const BoundGroup &group : kernel.recent) f_.BindGroupRelease(group.handle);
  kernel.recent.clear();
}

void WgpuDevice::forget_groups() {
  for (WgpuKernel *kernel : kernels_) forget_groups(*kernel);
}

void WgpuDevice::load(std::string_view code, std::string_view, const std::vector<KernelEntry> &entries, WgpuModule &module) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  std::vector<uint32_t> words(code.size() / 4);
  std::memcpy(words.data(), code.data(), words.size() * 4);
  wgpu::ShaderSourceSpirv binary;
  binary.chain.type = wgpu::kShaderSourceSpirv;
  binary.words = static_cast<uint32_t>(words.size());
  binary.code = words.data();
  wgpu::ShaderSourceWgsl text;
  text.chain.type = wgpu::kShaderSourceWgsl;
  text.code = {code.data(), code.size()};
  const bool is_binary = !words.empty() && words[0] == kSpirvMagic;
  wgpu::Described described;
  described.next = is_binary ? &binary.chain : &text.chain;
  // Loops end, because the compiler has made them; places come from users, and are kept inside of their arrays.
  wgpu::Handle shader = f_.DeviceCreateShaderModuleTrusted(device_, &described, wgpu::kBoundsChecks);
  check();
  for (const KernelEntry &entry : entries) {
    auto kernel = std::make_unique<WgpuKernel>();
    kernel->device = this;
    kernel->name = entry.name;
    kernel->number = static_cast<int64_t>(module.kernels.size());
    kernel->scalar_bytes = entry.scalar_bytes;
    if (entry.scalar_bytes.size() > limits.storage_buffers)
      throw DeviceError("kernel " + entry.name + " needs " + std::to_string(entry.scalar_bytes.size()) +
                        " buffers, and the device " + name + " binds " + std::to_string(limits.storage_buffers));
    make_pipeline(*kernel, shader);
    kernels_.push_back(kernel.get());
    module.kernels.push_back(std::move(kernel));
    if (!error_.empty()) break;
  }
  f_.ShaderModuleRelease(shader);
  check();
}

// The layout is not taken from the shader, which has no place for arguments that the kernel does not use.
void WgpuDevice::make_pipeline(WgpuKernel &kernel, wgpu::Handle shader) {
  std::vector<wgpu::BindGroupLayoutEntry> entries(kernel.scalar_bytes.size());
  const auto numbers = entries.size() - std::count(kernel.scalar_bytes.begin(), kernel.scalar_bytes.end(), 0u);
  kernel.moves = numbers <= limits.dynamic_storage_buffers && limits.storage_alignment <= kAlignment;
  for (size_t i = 0; i < entries.size(); i++) {
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].visibility = wgpu::kComputeStage;
    entries[i].buffer.type = wgpu::kStorageBinding;
    entries[i].buffer.dynamic_offset = kernel.moves && kernel.scalar_bytes[i];
  }
  wgpu::BindGroupLayoutDescriptor group;
  group.count = entries.size();
  group.entries = entries.data();
  kernel.layout = f_.DeviceCreateBindGroupLayout(device_, &group);
  if (!error_.empty()) return;
  wgpu::PipelineLayoutDescriptor whole;
  whole.count = 1;
  whole.groups = &kernel.layout;
  wgpu::Handle layout = f_.DeviceCreatePipelineLayout(device_, &whole);
  if (error_.empty()) {
    wgpu::ComputePipelineDescriptor descriptor;
    descriptor.layout = layout;
    descriptor.shader = shader;
    descriptor.entry = view(kernel.name);
    kernel.pipeline = f_.DeviceCreateComputePipeline(device_, &descriptor);
  }
  if (layout) f_.PipelineLayoutRelease(layout);
}

WgpuModule::~WgpuModule() {
  if (!device || !device->mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(device->mutex_);
  for (const auto &kernel : kernels) {
    device->forget_groups(*kernel);
    auto &known = device->kernels_;
    known.erase(std::remove(known.begin(), known.end(), kernel.get()), known.end());
    if (kernel->layout) device->f_.BindGroupLayoutRelease(kernel->layout);
    if (kernel->pipeline) device->f_.ComputePipelineRelease(kernel->pipeline);
  }
}

void WgpuDevice::run(void (*entry)(void **), std::vector<void *> &pointers, WgpuModule *module, const RunOptions &options) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  check();
  waits_ = options.waits;
  std::vector<void *> table = {this};
  if (module)
    for (const auto &kernel : module->kernels) table.push_back(kernel.get());
  pointers.push_back(table.data());
  entry(pointers.data());
  if (!lost_) flush();
  check();
}

void WgpuDevice::lose() {
  std::lock_guard<DeviceMutex> lock(mutex_);
  end_pass();
  if (encoder_) f_.CommandEncoderRelease(encoder_);
  encoder_ = nullptr;
  f_.DeviceDestroy(device_);
  f_.DevicePoll(device_, 0, nullptr);
  lost_ = true;
}

}  // namespace mlirml
