// A library with the functions of libcuda that mlirml calls, and a device in host memory. Tests ask it to fail, or to
// leave work undone, and ask what it was told.
//
// As on a GPU, the host cannot read the device's memory: its addresses lie where no process has memory, and only this
// library knows which memory they mean. Who reads one on the host is killed, a copy to what is no such address fails.
//
// Work is done at once, or, where a test wants to know what waits for what, as late as it may be, or in any order that
// streams and events allow.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

namespace {

constexpr int kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700;

int failure = 0;       // what the next launch, allocation or copy gives
int later = 0;         // what is found out when the next kernel runs
int busy = 0;          // whether events are reached
int devices = 2, version = 12040;
#ifndef FAKE_MEMORY
#define FAKE_MEMORY (size_t{1} << 20)
#endif
size_t in_use = 0, most = FAKE_MEMORY;
constexpr uint64_t kFar = uint64_t{1} << 62;  // between an address on the device and its memory
struct Block {
  std::unique_ptr<unsigned char[]> bytes;
  size_t size;
};
std::map<uint64_t, Block> blocks;  // by address on the device

// The memory of an address on the device; null where it has not so many bytes.
unsigned char *memory(uint64_t address, size_t size) {
  auto next = blocks.upper_bound(address);
  if (next == blocks.begin()) return nullptr;
  const auto &[start, block] = *--next;
  const bool inside = address - start <= block.size && size <= block.size - (address - start);
  return inside ? block.bytes.get() + (address - start) : nullptr;
}
thread_local int contexts = 0;  // pushed and not popped
int orders = 0;         // how often a stream was made to wait
uint64_t first_of = 0, second_of = 0;  // the streams of the last such order
struct {
  unsigned grid[3], block[3], shared;
} last;

struct Stream {
  struct Task {
    std::function<void()> work;  // none where the stream waits for so many tasks of another one
    void *other = nullptr;
    uint64_t count = 0;
  };
  std::deque<Task> tasks;
  uint64_t given = 0, done = 0;
};

struct Event {
  void *stream = nullptr;  // the tasks that were given to it before the event
  uint64_t count = 0;
};

std::map<void *, Stream> streams;
int kernels = 0, uploads = 0;  // that have run
using Hook = int (*)(intptr_t function, const unsigned *sizes, void **arguments);
Hook hook = nullptr;     // runs kernels, where a test does so
intptr_t functions = 0;  // that were asked for; each is its number
int late = 0;  // 0: work is done at once; 1: when it is waited for; more: in an order drawn from this number
uint32_t drawn = 0;

bool step(Stream &stream) {
  if (stream.tasks.empty()) return false;
  Stream::Task &first = stream.tasks.front();
  if (first.other && streams[first.other].done < first.count) return false;
  const std::function<void()> work = std::move(first.work);
  stream.tasks.pop_front();
  stream.done++;
  if (work) work();
  return true;
}

void finish(void *handle, uint64_t count) {
  Stream &stream = streams[handle];
  while (stream.done < count) {
    const Stream::Task &first = stream.tasks.front();
    if (first.other) finish(first.other, first.count);
    step(stream);
  }
}

void finish_all() {
  for (auto &[handle, stream] : streams) finish(handle, stream.given);
}

// Does some of what can be done, where work is done in any order.
void happen() {
  if (late < 2) return;
  for (int i = 0; i < 3; i++)
    for (auto &[handle, stream] : streams) {
      drawn = drawn * 1664525 + 1013904223;
      if (drawn >> 30 == 0) step(stream);
    }
}

void give(void *handle, Stream::Task task) {
  Stream &stream = streams[handle];
  stream.tasks.push_back(std::move(task));
  stream.given++;
  if (!late) finish(handle, stream.given);
  happen();
}

bool reached(const Event &event) { return !event.stream || streams[event.stream].done >= event.count; }

int done() {
  const int now = failure;
  if (now != kIllegalAddress) failure = 0;  // an illegal address is for ever
  return contexts >= 1 ? now : 201;         // CUDA_ERROR_INVALID_CONTEXT
}

}  // namespace

extern "C" {

void fake_hook(Hook function) { hook = function; }
intptr_t fake_functions() { return functions; }
// The allocations: for each its address on the device, where its bytes are, and its size.
size_t fake_allocations(uint64_t *out, size_t most) {
  size_t count = 0;
  for (const auto &[address, block] : blocks) {
    if (count < most)
      out[3 * count] = address, out[3 * count + 1] = reinterpret_cast<uint64_t>(block.bytes.get()), out[3 * count + 2] = block.size;
    count++;
  }
  return count;
}
void fake_fail(int code) { failure = code, later = 0; }
void fake_fail_later(int code) { later = code; }
void fake_hold(int on) { busy = on; }
void fake_run(int *counts) { counts[0] = kernels, counts[1] = uploads; }
// Does all that need not wait for a stream.
void fake_run_without(uint64_t held) {
  for (bool more = true; more;) {
    more = false;
    for (auto &[handle, stream] : streams)
      if (reinterpret_cast<uint64_t>(handle) != held) more = step(stream) || more;
  }
}
void fake_late(int how) { finish_all(), late = how, drawn = how; }
void fake_devices(int count, int driver) { devices = count, version = driver; }
void fake_memory(size_t size) { most = size; }
int fake_contexts() { return contexts; }
size_t fake_in_use() { return in_use; }
int fake_orders(uint64_t *streams) { return streams[0] = first_of, streams[1] = second_of, orders; }
void fake_last(unsigned *values) { std::memcpy(values, &last, sizeof(last)); }

int cuInit(unsigned) { return devices ? 0 : kNoDevice; }
int cuDriverGetVersion(int *out) { return *out = version, 0; }
int cuGetErrorName(int code, const char **out) {
  *out = code == kIllegalAddress ? "CUDA_ERROR_ILLEGAL_ADDRESS" : code == kInvalidImage ? "CUDA_ERROR_INVALID_IMAGE" : "CUDA_ERROR";
  return 0;
}
int cuGetErrorString(int, const char **out) { return *out = "as the test wanted", 0; }
int cuDeviceGetCount(int *out) { return *out = devices, 0; }
int cuDeviceGet(int *out, int index) { return *out = 40 + index, 0; }
int cuDeviceGetName(char *out, int size, int device) {
  std::strncpy(out, device == 40 ? "First GPU" : "Second GPU", size);
  return 0;
}
int cuDeviceTotalMem_v2(size_t *out, int) { return *out = most, 0; }
int cuDeviceGetAttribute(int *out, int what, int) {
  *out = what == 75 ? 9 : what == 76 ? 0 : what == 97 ? 232448 : what == 8 ? 49152 : what == 10 ? 32 : 132;
  return 0;
}
int cuDevicePrimaryCtxRetain(void **out, int device) { return *out = reinterpret_cast<void *>(intptr_t{device}), 0; }
int cuDevicePrimaryCtxRelease_v2(int) { return 0; }
int cuCtxPushCurrent_v2(void *) { return contexts++, 0; }
int cuCtxPopCurrent_v2(void **) { return contexts--, 0; }
int cuStreamCreate(void **out, unsigned) { return *out = std::malloc(1), 0; }
int cuStreamDestroy_v2(void *stream) { return std::free(stream), 0; }
int cuStreamWaitEvent(void *stream, void *event, unsigned) {
  const Event before = *static_cast<Event *>(event);
  orders++;
  first_of = reinterpret_cast<uint64_t>(before.stream), second_of = reinterpret_cast<uint64_t>(stream);
  if (late) give(stream, {nullptr, before.stream, before.count});
  return contexts >= 1 ? failure : 201;
}
int cuStreamSynchronize(void *stream) { return finish(stream, streams[stream].given), failure; }
int cuEventCreate(void **out, unsigned) { return *out = new Event, 0; }
int cuEventRecord(void *event, void *stream) { return *static_cast<Event *>(event) = {stream, streams[stream].given}, 0; }
int cuEventQuery(void *event) {
  happen();
  const bool waits = busy || !reached(*static_cast<Event *>(event));
  return failure == kIllegalAddress ? failure : waits ? kNotReady : 0;
}
int cuEventSynchronize(void *event) {
  const Event *known = static_cast<Event *>(event);
  if (known->stream) finish(known->stream, known->count);
  return failure == kIllegalAddress ? failure : 0;
}
int cuEventDestroy_v2(void *event) { return delete static_cast<Event *>(event), 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) {
  if (in_use + size > most) return kOutOfMemory;
  in_use += size;
  Block block = {std::unique_ptr<unsigned char[]>(new unsigned char[size]), size};
  *out = reinterpret_cast<uint64_t>(block.bytes.get()) | kFar;
  blocks[*out] = std::move(block);
  return done();
}
int cuMemFree_v2(uint64_t address) {
  finish_all();
  const auto found = blocks.find(address);
  if (found == blocks.end()) return kInvalidValue;
  in_use -= found->second.size;
  return blocks.erase(found), 0;
}
int cuMemHostAlloc(void **out, size_t size, unsigned) { return *out = std::malloc(size), 0; }
int cuMemFreeHost(void *memory) { return std::free(memory), 0; }
int copy(void *to, const void *from, size_t size, void *stream, int upload = 0) {
  if (!to || !from) return kInvalidValue;
  const int result = done();
  if (!result) give(stream, {[=] { std::memcpy(to, from, size), uploads += upload; }});
  return result;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
  return copy(memory(to, size), from, size, stream, 1);
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
  return copy(to, memory(from, size), size, stream);
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *stream) {
  return copy(memory(to, size), memory(from, size), size, stream);
}
int cuModuleLoadDataEx(void **out, const void *image, unsigned count, int *options, void **values) {
  if (!std::strncmp(static_cast<const char *>(image), "bad", 3)) {
    if (count == 2 && options[0] == 5) std::strcpy(static_cast<char *>(values[0]), "line 1: bad");
    return kInvalidImage;
  }
  return *out = const_cast<void *>(image), 0;
}
int cuModuleUnload(void *) { return 0; }
int cuModuleGetFunction(void **out, void *, const char *name) {
  if (hook) return *out = reinterpret_cast<void *>(++functions), 0;
  return *out = const_cast<char *>(name), std::strcmp(name, "scale") ? kNotFound : 0;
}
int cuFuncGetAttribute(int *out, int, void *) { return *out = 1024, 0; }
int cuFuncSetAttribute(void *, int what, int value) { return what == 8 && value <= 232448 - 1024 ? 0 : 1; }
// The one kernel: out[i] = factor * in[i] for each thread i.
int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *stream, void **arguments, void **) {
  last = {{gx, gy, gz}, {bx, by, bz}, shared};
  const int result = done();
  if (result) return result;
  if (hook) {
    const unsigned sizes[] = {gx, gy, gz, bx, by, bz, shared};
    return failure = hook(reinterpret_cast<intptr_t>(function), sizes, arguments);
  }
  failure = later;
  const unsigned count = gx * gy * gz * bx * by * bz;
  auto argument = [&](int i) {
    return reinterpret_cast<float *>(memory(*static_cast<uint64_t *>(arguments[i]), count * sizeof(float)));
  };
  auto *in = argument(0), *out = argument(1);
  if (!in || !out) return failure = kIllegalAddress;
  const float factor = *static_cast<float *>(arguments[2]);
  give(stream, {[=] {
    kernels++;
    for (unsigned i = 0; i < count; i++) out[i] = factor * in[i];
  }});
  return 0;
}
}
