// Kernels run as if in the order of the calls: on one stream, beside which others take those that need not wait for each
// other, or as a graph (cuda_queue.cpp). Between programs there is that one stream only. Copies from the host and to it have streams of their own, so that
// they are made beside kernels: an upload waits for those that its memory was used by before, a download for those that
// compute it, and kernels wait for the uploads before them. All go through pinned memory, parts of it in turn.
#include "cuda_device.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <utility>

namespace mlirml {
namespace {

constexpr size_t kStageBytes = size_t{4} << 20;
constexpr size_t kRingBytes = size_t{8} << 20, kPartBytes = size_t{2} << 20, kPieceAlignment = 256;
constexpr size_t kLogBytes = 4096;
constexpr int kOldestDriver = 12000;

const char *const kInstall = "install NVIDIA's driver, version 525 or newer, and run `nvidia-smi` to see whether it works";

}  // namespace

CudaLibrary::CudaLibrary(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);  // never closed: the driver keeps threads
  if (!library) throw NoDevice(std::string("NVIDIA's driver is not installed: ") + dlerror(), kInstall);
  const char *missing = nullptr;
#define MLIRML_LOAD(name, symbol, arguments)                                           \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(dlsym(library, #symbol)); \
  if (!functions_.name) missing = #symbol;
  MLIRML_CUDA_FUNCTIONS(MLIRML_LOAD)
#undef MLIRML_LOAD
#define MLIRML_LOAD(name, symbol, arguments)                                               \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(dlsym(library, #symbol)); \
  has_graphs_ = has_graphs_ && functions_.name;
  MLIRML_CUDA_GRAPH_FUNCTIONS(MLIRML_LOAD)
#undef MLIRML_LOAD
  if (missing) throw NoDevice(std::string("NVIDIA's driver has no function `") + missing + "`: it is too old", kInstall);
  const cuda::Result started = functions_.Init(0);
  if (started == cuda::kNoDevice) return;
  if (started != cuda::kSuccess) throw NoDevice("NVIDIA's driver does not start: " + words(started), kInstall);
  functions_.DriverGetVersion(&version_);
  if (version_ < kOldestDriver)
    throw NoDevice("NVIDIA's driver is for CUDA " + std::to_string(version_ / 1000) + ", and mlirml needs CUDA 12", kInstall);
  functions_.DeviceGetCount(&count_);
}

std::string CudaLibrary::words(cuda::Result result) const {
  const char *name = nullptr, *text = nullptr;
  functions_.GetErrorName(result, &name);
  functions_.GetErrorString(result, &text);
  return std::string(name ? name : "CUDA error " + std::to_string(result)) + (text ? std::string(", ") + text : "");
}

struct CudaDevice::Active {
  explicit Active(CudaDevice &device) : device(device) {
    const cuda::Result result = device.f_.CtxPushCurrent(device.context_);
    pushed = result == cuda::kSuccess;
  }
  ~Active() {
    cuda::Handle old = nullptr;
    if (pushed) device.f_.CtxPopCurrent(&old);
  }
  CudaDevice &device;
  bool pushed;
};

CudaDevice::CudaDevice(std::shared_ptr<CudaLibrary> library, int index)
    : library_(std::move(library)), f_(library_->functions()), index_(index) {
  auto needed = [&](cuda::Result result) {
    if (result != cuda::kSuccess)
      throw NoDevice("the device cuda:" + std::to_string(index) + " cannot be opened: " + library_->words(result), kInstall);
  };
  need_own_library(library_->opened);
  if (index < 0 || index >= library_->count())
    throw NoDevice("there are " + std::to_string(library_->count()) + " CUDA devices", kInstall);
  needed(f_.DeviceGet(&device_, index));
  char text[256] = {};
  needed(f_.DeviceGetName(text, sizeof(text) - 1, device_));
  name = text;
  needed(f_.DeviceTotalMem(&memory, device_));
  needed(f_.DevicePrimaryCtxRetain(&context_, device_));
  Active active(*this);
  for (cuda::Handle *stream : {&stream_, &uploads_, &downloads_}) needed(f_.StreamCreate(stream, cuda::kNonBlocking));
  streams_[0] = stream_;
  for (size_t i = 1; i < kMostStreams; i++) needed(f_.StreamCreate(&streams_[i], cuda::kNonBlocking));
  processors_ = static_cast<uint64_t>(std::max(attribute(cuda::kMultiprocessors), 1));
  for (cuda::Handle *event : {&order_, &fork_}) needed(f_.EventCreate(event, cuda::kDisableTiming));
  void *ring = nullptr;
  needed(f_.MemHostAlloc(&ring, kRingBytes, 0));
  ring_ = static_cast<unsigned char *>(ring);
  for (Stage &stage : stages_) {
    needed(f_.MemHostAlloc(&stage.memory, kStageBytes, 0));
    needed(f_.EventCreate(&stage.event, cuda::kDisableTiming));
  }
}

CudaDevice::~CudaDevice() {
  if (!context_ || !mutex_.is_ours()) return;
  {
    Active active(*this);
    for (cuda::Handle stream : {stream_, uploads_, downloads_})
      if (stream) f_.StreamSynchronize(stream);
    for (const Piece &piece : pieces_) f_.EventDestroy(piece.event);
    if (ring_) f_.MemFreeHost(ring_);
    for (const Event &event : events_) f_.EventDestroy(event.event);
    for (cuda::Handle event : unused_events_) f_.EventDestroy(event);
    for (Stage &stage : stages_) {
      if (stage.event) f_.EventDestroy(stage.event);
      if (stage.memory) f_.MemFreeHost(stage.memory);
    }
    for (const auto &[address, size] : blocks_) f_.MemFree(address);
    for (cuda::Handle event : {order_, fork_})
      if (event) f_.EventDestroy(event);
    for (size_t i = 1; i < kMostStreams; i++)
      if (streams_[i]) f_.StreamDestroy(streams_[i]);
    for (cuda::Handle stream : {stream_, uploads_, downloads_})
      if (stream) f_.StreamDestroy(stream);
  }
  f_.DevicePrimaryCtxRelease(device_);
}

int CudaDevice::attribute(int number) const {
  int value = 0;
  f_.DeviceGetAttribute(&value, number, device_);
  return value;
}

// After an error of a kernel the context gives the same error to every call: the device is lost to this process.
void CudaDevice::need(cuda::Result result, const char *doing) {
  if (result == cuda::kSuccess) return;
  if (result == cuda::kOutOfMemory) throw DeviceError("the device " + name + " has no memory left for " + doing);
  const std::string words = library_->words(result);
  if (!cuda::is_refusal(result)) lost_ = true;
  throw DeviceError("the device " + name + " failed while " + doing + ": " + words);
}

bool CudaDevice::is_on_device(uint64_t address) const {
  auto inside = [&](const auto &block) { return address - block.first < std::max<uint64_t>(block.second, 1); };
  const auto next = blocks_.upper_bound(address);
  if (next != blocks_.begin() && inside(*std::prev(next))) return true;
  return std::any_of(borrowed_.begin(), borrowed_.upper_bound(address), inside);
}

void CudaDevice::take(uint64_t address, uint64_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  borrowed_.emplace(address, size);
}

void CudaDevice::give_back(uint64_t address, uint64_t size) noexcept {
  if (!mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(mutex_);
  const auto [first, last] = borrowed_.equal_range(address);
  const auto found = std::find_if(first, last, [&](const auto &block) { return block.second == size; });
  if (found != last) borrowed_.erase(found);
}

uint64_t CudaDevice::alloc(uint64_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  cuda::Address address = 0;
  const cuda::Result got = f_.MemAlloc(&address, std::max<uint64_t>(size, 1));
  if (got == cuda::kOutOfMemory) throw std::bad_alloc();  // the pool gives back what it keeps, and asks again
  need(got, "allocating memory");
  blocks_[address] = size;
  return address;
}

void CudaDevice::free(uint64_t address) {
  if (!mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  const auto known = blocks_.find(address);
  if (known == blocks_.end()) return;
  blocks_.erase(known);
  f_.MemFree(address);  // waits for the work that uses it
}

cuda::Handle CudaDevice::event() {
  cuda::Handle found = nullptr;
  if (unused_events_.empty()) {
    need(f_.EventCreate(&found, cuda::kDisableTiming), "making an event");
  } else {
    found = unused_events_.back();
    unused_events_.pop_back();
  }
  return found;
}

// Where the host code of a program calls something that uses the device, its work so far comes first.
void CudaDevice::settle() {
  if (!queue_) return;
  Active active(*this);
  queue_->settle();
}

std::string CudaDevice::take_warning() {
  if (!mutex_.is_ours()) return {};
  std::lock_guard<DeviceMutex> lock(mutex_);
  return std::exchange(warning_, {});
}

uint64_t CudaDevice::mark() {
  std::lock_guard<DeviceMutex> lock(mutex_);
  settle();
  if (!pending_ && !uploading_) return marks_;
  Active active(*this);
  forget_done();
  join_uploads();
  cuda::Handle recorded = event();
  need(f_.EventRecord(recorded, stream_), "recording an event");
  events_.push_back({++marks_, recorded});
  pending_ = false;
  return marks_;
}

// Lets kernels that come later wait for the uploads so far.
void CudaDevice::join_uploads() {
  if (!uploading_) return;
  order(uploads_, stream_);
  uploading_ = false;
  pending_ = true;
}

// The mark that a copy waits for.
uint64_t CudaDevice::resolved(std::optional<uint64_t> after) {
  return after ? std::max(*after, shared_) : mark();
}

// The event of a mark; null where it is reached.
cuda::Handle CudaDevice::event_of(uint64_t mark) {
  for (const Event &each : events_)
    if (each.number >= mark) return mark > done_ ? each.event : nullptr;
  return nullptr;
}

void CudaDevice::forget_done() {
  while (!events_.empty() && f_.EventQuery(events_.front().event) == cuda::kSuccess) {
    done_ = events_.front().number;
    unused_events_.push_back(events_.front().event);
    events_.pop_front();
  }
}

bool CudaDevice::wait(uint64_t mark, double seconds) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(std::max(seconds, 0.0));
  while (true) {
    {
      std::lock_guard<DeviceMutex> lock(mutex_);
      Active active(*this);
      forget_done();
      if (done_ >= mark || events_.empty()) return true;
      const cuda::Result state = f_.EventQuery(events_.front().event);
      if (state != cuda::kSuccess && state != cuda::kNotReady) need(state, "working");
    }
    if (seconds >= 0 && Clock::now() >= end) return false;
    usleep(seconds < 0 ? 20 : 50);
  }
}

void CudaDevice::order(cuda::Handle first, cuda::Handle second) {
  need(f_.EventRecord(order_, first), "recording an event");
  need(f_.StreamWaitEvent(second, order_, 0), "waiting for an event");
}

void CudaDevice::make_wait(uint64_t stream) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  settle();
  join_uploads();
  order(stream_, reinterpret_cast<cuda::Handle>(stream));
}

void CudaDevice::wait_for(uint64_t stream) noexcept {
  if (!mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  try {
    settle();
    order(reinterpret_cast<cuda::Handle>(stream), stream_);
    follow();
  } catch (const std::exception &) {
    // The other stream, or the device, is gone: there is no work to wait for.
  }
}

void CudaDevice::follow() {
  std::lock_guard<DeviceMutex> lock(mutex_);
  pending_ = true;
  shared_ = mark();
}

void CudaDevice::finish() noexcept {
  if (!mutex_.is_ours()) return;
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  try {
    settle();
  } catch (const std::exception &) {
    // The device is gone, and what waits for it finds that out.
  }
  f_.StreamSynchronize(uploads_);
  f_.StreamSynchronize(stream_);
}

void CudaDevice::await(Stage &stage) {
  if (stage.used) need(f_.EventSynchronize(stage.event), "copying");
  stage.used = false;
}

// Where so many bytes of the pinned memory begin that no copy uses any more.
size_t CudaDevice::pinned(size_t size) {
  if (ring_head_ + size > kRingBytes) ring_head_ = 0;
  const size_t begin = ring_head_, end = begin + size;
  auto in_the_way = [&](const Piece &piece) { return piece.begin < end && begin < piece.end; };
  while (!pieces_.empty()) {
    const cuda::Handle oldest = pieces_.front().event;
    if (std::any_of(pieces_.begin(), pieces_.end(), in_the_way)) need(f_.EventSynchronize(oldest), "copying to it");
    else if (f_.EventQuery(oldest) != cuda::kSuccess) break;
    unused_events_.push_back(oldest);
    pieces_.pop_front();
  }
  return begin;
}

void CudaDevice::write(uint64_t address, const void *source, size_t size, cuda::Handle stream) {
  const auto *bytes = static_cast<const unsigned char *>(source);
  for (size_t at = 0; at < size; at += kPartBytes) {
    const size_t part = std::min(kPartBytes, size - at);
    const size_t begin = pinned(part);
    std::memcpy(ring_ + begin, bytes + at, part);
    need(f_.MemcpyHtoDAsync(address + at, ring_ + begin, part, stream), "copying to it");
    cuda::Handle done = event();
    pieces_.push_back({begin, begin + part, done});
    ring_head_ = (begin + part + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment;
    need(f_.EventRecord(done, stream), "copying to it");
  }
  bytes_in += size;
}

void CudaDevice::read(void *target, uint64_t address, size_t size, cuda::Handle stream) {
  auto *bytes = static_cast<unsigned char *>(target);
  const size_t parts = (size + kStageBytes - 1) / kStageBytes;
  // Part `i` is copied out of its buffer when part `i + 1` is on its way.
  for (size_t i = 0; i <= parts; i++) {
    if (i < parts) {
      Stage &stage = stages_[i % 2];
      await(stage);
      const size_t at = i * kStageBytes, part = std::min(kStageBytes, size - at);
      need(f_.MemcpyDtoHAsync(stage.memory, address + at, part, stream), "copying from it");
      need(f_.EventRecord(stage.event, stream), "copying from it");
      stage.used = true;
    }
    if (i > 0) {
      Stage &stage = stages_[(i - 1) % 2];
      await(stage);
      const size_t at = (i - 1) * kStageBytes;
      std::memcpy(bytes + at, stage.memory, std::min(kStageBytes, size - at));
    }
  }
  bytes_out += size;
}

void CudaDevice::copy_in(uint64_t address, const void *source, size_t size, std::optional<uint64_t> after) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  if (!size) return;
  if (cuda::Handle before = event_of(resolved(after))) need(f_.StreamWaitEvent(uploads_, before, 0), "waiting for an event");
  uploading_ = true;
  write(address, source, size, uploads_);
}

void CudaDevice::copy_out(void *target, uint64_t address, size_t size, std::optional<uint64_t> after) {
  cuda::Handle before = nullptr;
  {
    std::lock_guard<DeviceMutex> lock(mutex_);
    Active active(*this);
    before = event_of(resolved(after));
  }
  if (before) {  // others may give the device work meanwhile
    Active active(*this);
    const cuda::Result state = f_.EventSynchronize(before);
    std::lock_guard<DeviceMutex> lock(mutex_);
    need(state, "copying from it");
  }
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  read(target, address, size, downloads_);
}

void CudaDevice::copy(uint64_t target, uint64_t source, size_t size) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  if (!size || target == source) return;
  settle();
  join_uploads();
  need(f_.MemcpyDtoDAsync(target, source, size, stream_), "copying");
  pending_ = true;
}

void CudaDevice::copy_any(uint64_t target, uint64_t source, size_t size) noexcept {
  const bool to_device = is_on_device(target), from_device = is_on_device(source);
  try {
    if (!error_.empty()) throw DeviceError(error_);
    if (to_device && from_device) return queue_->copy(target, source, size);
    if (to_device || from_device) queue_->settle();
    if (to_device) write(target, reinterpret_cast<const void *>(source), size, stream_), pending_ = true;
    else if (from_device) read(reinterpret_cast<void *>(target), source, size, stream_);
    else std::memmove(reinterpret_cast<void *>(target), reinterpret_cast<const void *>(source), size);
  } catch (const std::exception &error) {
    if (error_.empty()) error_ = error.what();
    if (!to_device) std::memset(reinterpret_cast<void *>(target), 0, size);  // loops that read it must end
  }
}

void CudaDevice::launch(Kernel *kernel, const Launch &launch, void *const *arguments, size_t) noexcept {
  const auto &grid = launch.grid;
  if (!error_.empty() || !grid[0] || !grid[1] || !grid[2]) return;
  try {
    queue_->launch(static_cast<CudaKernel &>(*kernel), launch, arguments);
  } catch (const std::exception &error) {
    error_ = error.what();
  }
}

// Loads an image into `module.modules`; `log` is what the driver says of one that it does not take.
cuda::Result CudaDevice::load_image(const std::string &image, CudaModule &module, std::string &log) {
  if (module.modules.count(image)) return cuda::kSuccess;
  std::vector<char> text(kLogBytes);
  int options[] = {cuda::kErrorLog, cuda::kErrorLogBytes};
  void *values[] = {text.data(), reinterpret_cast<void *>(text.size())};
  cuda::Handle handle = nullptr;
  // A string has the zero at its end that PTX needs.
  const cuda::Result loaded = f_.ModuleLoadDataEx(&handle, image.c_str(), 2, options, values);
  text.back() = 0;
  log = text.data();
  if (loaded == cuda::kSuccess) module.modules[image] = handle;
  return loaded;
}

cuda::Handle CudaDevice::image_of(const std::string &image, CudaModule &module) {
  std::string log;
  if (const cuda::Result loaded = load_image(image, module, log))
    throw DeviceError("the device " + name + " does not take the kernels: " + library_->words(loaded) +
                      (log.empty() ? "" : "\n" + log));
  return module.modules[image];
}

// The module of all kernels without an image of their own: that for the processor, unless the driver refuses it, as one
// that is older than the assembler does, or one of another processor.
cuda::Handle CudaDevice::common_of(const std::string &code, const std::string &cubin, CudaModule &module) {
  std::string unused;
  if (!cubin.empty() && load_image(cubin, module, unused) == cuda::kSuccess) {
    cubins++;
    return module.modules[cubin];
  }
  return code.empty() ? nullptr : image_of(code, module);
}

void CudaDevice::load(std::string_view code, std::string_view cubin, const std::vector<KernelEntry> &entries,
                      CudaModule &module) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  Active active(*this);
  const cuda::Handle common = common_of(std::string(code), std::string(cubin), module);
  const int most = attribute(cuda::kSharedOptIn);
  for (const KernelEntry &entry : entries) {
    auto kernel = std::make_unique<CudaKernel>();
    kernel->device = this;
    kernel->name = entry.name;
    kernel->number = static_cast<int64_t>(module.kernels.size());
    kernel->sizes = entry.scalar_bytes;
    kernel->accesses = entry.accesses;
    const cuda::Handle handle = entry.image.empty() ? common : image_of(entry.image, module);
    const char *symbol = entry.image.empty() ? entry.name.c_str() : kOwnSymbol;
    need(f_.ModuleGetFunction(&kernel->function, handle, symbol), ("loading the kernel " + entry.name).c_str());
    int own = 0;
    f_.FuncGetAttribute(&own, cuda::kStaticShared, kernel->function);
    if (entry.image.empty() && most - own > attribute(cuda::kSharedPerBlock))
      f_.FuncSetAttribute(kernel->function, cuda::kMaxDynamicShared, most - own);
    module.kernels.push_back(std::move(kernel));
  }
}

CudaModule::~CudaModule() {
  if (!device || modules.empty()) return;
  if (!device->mutex_.is_ours()) {
    for (auto &graph : habits.graphs) graph.release();  // the driver that has them is not in this process
    return;
  }
  std::lock_guard<DeviceMutex> lock(device->mutex_);
  CudaDevice::Active active(*device);
  device->f_.StreamSynchronize(device->stream_);
  habits.graphs.clear();
  for (const auto &[image, handle] : modules) device->f_.ModuleUnload(handle);
}

void CudaDevice::run(void (*entry)(void **), std::vector<void *> &pointers, CudaModule *module, const RunOptions &options) {
  std::lock_guard<DeviceMutex> lock(mutex_);
  if (lost_) throw lost_device(name);
  Active active(*this);
  settle();
  join_uploads();
  CudaHabits unknown;
  RunOptions allowed = options;
  allowed.graphs = options.graphs && library_->has_graphs();
  CudaQueue queue(*this, module ? module->habits : unknown, allowed);
  std::vector<void *> table = {static_cast<Device *>(this)};
  if (module)
    for (const auto &kernel : module->kernels) table.push_back(kernel.get());
  pointers.push_back(table.data());
  entry(pointers.data());
  try {
    queue.settle();
  } catch (const std::exception &error) {
    if (error_.empty()) error_ = error.what();
  }
  if (error_.empty()) return;
  std::string message;
  message.swap(error_);
  throw DeviceError(message);
}

}  // namespace mlirml
