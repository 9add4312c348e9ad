// The part of CUDA's driver interface that is used, as the CUDA Driver API reference of version 12 gives it.
//
// The library comes with NVIDIA's driver and is opened at run time, so nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlirml::cuda {

using Result = int;
using Handle = void *;      // contexts, streams, events, modules and functions
using Address = uint64_t;   // CUdeviceptr

constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
// Refusals that leave the context as it was: image, no binary for the GPU, PTX, its version, handle, name, resources of
// a launch, what is not supported.
constexpr Result kRefusals[] = {kInvalidValue, 200, 209, 218, 222, 400, 500, 701, 801};

// CUdevice_attribute
constexpr int kThreadsPerBlock = 1, kSharedPerBlock = 8, kWarpSize = 10, kMultiprocessors = 16, kMajor = 75, kMinor = 76,
              kSharedOptIn = 97;
constexpr int kStaticShared = 1, kMaxDynamicShared = 8;  // CUfunction_attribute
constexpr unsigned kNonBlocking = 1;             // CUstream_flags
constexpr unsigned kDisableTiming = 2;           // CUevent_flags
constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // CUjit_option

#define MLIRML_CUDA_FUNCTIONS(X)                                                                                     \
  X(Init, cuInit, (unsigned))                                                                                        \
  X(DriverGetVersion, cuDriverGetVersion, (int *))                                                                   \
  X(GetErrorName, cuGetErrorName, (Result, const char **))                                                           \
  X(GetErrorString, cuGetErrorString, (Result, const char **))                                                       \
  X(DeviceGetCount, cuDeviceGetCount, (int *))                                                                       \
  X(DeviceGet, cuDeviceGet, (int *, int))                                                                            \
  X(DeviceGetName, cuDeviceGetName, (char *, int, int))                                                              \
  X(DeviceTotalMem, cuDeviceTotalMem_v2, (size_t *, int))                                                            \
  X(DeviceGetAttribute, cuDeviceGetAttribute, (int *, int, int))                                                     \
  X(DevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, (Handle *, int))                                               \
  X(DevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, (int))                                                    \
  X(CtxPushCurrent, cuCtxPushCurrent_v2, (Handle))                                                                   \
  X(CtxPopCurrent, cuCtxPopCurrent_v2, (Handle *))                                                                   \
  X(StreamCreate, cuStreamCreate, (Handle *, unsigned))                                                              \
  X(StreamDestroy, cuStreamDestroy_v2, (Handle))                                                                     \
  X(StreamSynchronize, cuStreamSynchronize, (Handle))                                                                \
  X(StreamWaitEvent, cuStreamWaitEvent, (Handle, Handle, unsigned))                                                  \
  X(EventCreate, cuEventCreate, (Handle *, unsigned))                                                                \
  X(EventRecord, cuEventRecord, (Handle, Handle))                                                                    \
  X(EventQuery, cuEventQuery, (Handle))                                                                              \
  X(EventSynchronize, cuEventSynchronize, (Handle))                                                                  \
  X(EventDestroy, cuEventDestroy_v2, (Handle))                                                                       \
  X(MemAlloc, cuMemAlloc_v2, (Address *, size_t))                                                                    \
  X(MemFree, cuMemFree_v2, (Address))                                                                                \
  X(MemHostAlloc, cuMemHostAlloc, (void **, size_t, unsigned))                                                       \
  X(MemFreeHost, cuMemFreeHost, (void *))                                                                            \
  X(MemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, (Address, const void *, size_t, Handle))                                  \
  X(MemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, (void *, Address, size_t, Handle))                                        \
  X(MemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, (Address, Address, size_t, Handle))                                       \
  X(ModuleLoadDataEx, cuModuleLoadDataEx, (Handle *, const void *, unsigned, int *, void **))                        \
  X(ModuleUnload, cuModuleUnload, (Handle))                                                                          \
  X(ModuleGetFunction, cuModuleGetFunction, (Handle *, Handle, const char *))                                        \
  X(FuncGetAttribute, cuFuncGetAttribute, (int *, int, Handle))                                                      \
  X(FuncSetAttribute, cuFuncSetAttribute, (Handle, int, int))                                                        \
  X(LaunchKernel, cuLaunchKernel,                                                                                    \
    (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **))

struct Functions {
#define MLIRML_DECLARE(name, symbol, arguments) Result(*name) arguments = nullptr;
  MLIRML_CUDA_FUNCTIONS(MLIRML_DECLARE)
#undef MLIRML_DECLARE
};

}  // namespace mlirml::cuda
