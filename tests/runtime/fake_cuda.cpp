// A library with the functions of libcuda that mlirml calls, and a device in host memory. Tests ask it to fail, or to
// leave work undone, and ask what it was told.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr int kOutOfMemory = 2, kNoDevice = 100, kInvalidImage = 200, kNotFound = 500, kNotReady = 600, kIllegalAddress = 700;

int failure = 0;       // what the next launch, allocation or copy gives
int later = 0;         // what is found out when the next kernel runs
int busy = 0;          // whether events are reached
int devices = 2, version = 12040;
size_t in_use = 0, most = size_t{1} << 20;
int contexts = 0;      // pushed and not popped
int orders = 0;         // how often a stream was made to wait
uint64_t first_of = 0, second_of = 0;  // the streams of the last such order
struct {
  unsigned grid[3], block[3], shared;
} last;

int done() {
  const int now = failure;
  if (now != kIllegalAddress) failure = 0;  // an illegal address is for ever
  return contexts == 1 ? now : 201;         // CUDA_ERROR_INVALID_CONTEXT
}

}  // namespace

extern "C" {

void fake_fail(int code) { failure = code, later = 0; }
void fake_fail_later(int code) { later = code; }
void fake_hold(int on) { busy = on; }
void fake_devices(int count, int driver) { devices = count, version = driver; }
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
  orders++;
  first_of = *static_cast<uint64_t *>(event), second_of = reinterpret_cast<uint64_t>(stream);
  return contexts == 1 ? failure : 201;
}
int cuStreamSynchronize(void *) { return failure; }
int cuEventCreate(void **out, unsigned) { return *out = std::malloc(sizeof(uint64_t)), 0; }
int cuEventRecord(void *event, void *stream) {
  *static_cast<uint64_t *>(event) = reinterpret_cast<uint64_t>(stream);
  return 0;
}
int cuEventQuery(void *) { return failure == kIllegalAddress ? failure : busy ? kNotReady : 0; }
int cuEventSynchronize(void *) { return failure == kIllegalAddress ? failure : 0; }
int cuEventDestroy_v2(void *event) { return std::free(event), 0; }
int cuMemAlloc_v2(uint64_t *out, size_t size) {
  if (in_use + size > most) return kOutOfMemory;
  in_use += size;
  auto *memory = static_cast<uint64_t *>(std::malloc(size + 64));
  *memory = size;
  *out = reinterpret_cast<uint64_t>(memory) + 64;
  return done();
}
int cuMemFree_v2(uint64_t address) {
  auto *memory = reinterpret_cast<uint64_t *>(address - 64);
  in_use -= *memory;
  return std::free(memory), 0;
}
int cuMemHostAlloc(void **out, size_t size, unsigned) { return *out = std::malloc(size), 0; }
int cuMemFreeHost(void *memory) { return std::free(memory), 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *) {
  const int result = done();
  if (!result) std::memcpy(reinterpret_cast<void *>(to), from, size);
  return result;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *) {
  const int result = done();
  if (!result) std::memcpy(to, reinterpret_cast<void *>(from), size);
  return result;
}
int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t size, void *) {
  const int result = done();
  if (!result) std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from), size);
  return result;
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
  return *out = const_cast<char *>(name), std::strcmp(name, "scale") ? kNotFound : 0;
}
int cuFuncSetAttribute(void *, int, int) { return 0; }
// The one kernel: out[i] = factor * in[i] for each thread i.
int cuLaunchKernel(void *, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                   void *, void **arguments, void **) {
  last = {{gx, gy, gz}, {bx, by, bz}, shared};
  const int result = done();
  if (result) return result;
  failure = later;
  auto *in = *static_cast<float **>(arguments[0]), *out = *static_cast<float **>(arguments[1]);
  const float factor = *static_cast<float *>(arguments[2]);
  for (unsigned i = 0; i < gx * gy * gz * bx * by * bz; i++) out[i] = factor * in[i];
  return 0;
}
}
