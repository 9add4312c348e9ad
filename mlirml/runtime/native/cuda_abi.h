// The part of CUDA's driver interface that is used, as the CUDA Driver API reference of version 12 gives it.
//
// The library comes with NVIDIA's driver and is opened at run time, so nothing of CUDA is needed to build.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlirml::cuda {

using Result = int;
using Handle = void *;      // contexts, streams, events, modules, functions, graphs and their nodes
using Address = uint64_t;   // CUdeviceptr

constexpr Result kSuccess = 0, kInvalidValue = 1, kOutOfMemory = 2, kNoDevice = 100, kNotReady = 600;
// Refusals that leave the context as it was: no memory, image, no binary for the GPU, PTX, its version, handle, name,
// resources of a launch, what is not supported, what a stream that is being captured does not allow (900 to 908), an
// update of a graph.
constexpr Result kRefusals[] = {kInvalidValue, kOutOfMemory, 200, 209, 218, 222, 400, 500, 701, 801, 900,
                                901,           902,          903, 904, 905, 906, 907, 908, 910};

inline bool is_refusal(Result result) {
  for (Result each : kRefusals)
    if (each == result) return true;
  return false;
}

// CUdevice_attribute
constexpr int kThreadsPerBlock = 1, kSharedPerBlock = 8, kWarpSize = 10, kMultiprocessors = 16, kMajor = 75, kMinor = 76,
              kSharedOptIn = 97;
constexpr int kStaticShared = 1, kMaxDynamicShared = 8;  // CUfunction_attribute
constexpr unsigned kNonBlocking = 1;             // CUstream_flags
constexpr unsigned kDisableTiming = 2;           // CUevent_flags
constexpr int kErrorLog = 5, kErrorLogBytes = 6;  // CUjit_option

// CUDA_KERNEL_NODE_PARAMS_v2. The values of the arguments are copied when a node is made or changed.
struct KernelNode {
  Handle function;
  unsigned grid[3], block[3], shared_bytes;
  void **arguments;
  void **extra;
  Handle kernel;   // where there is no function
  Handle context;  // the same
};
static_assert(sizeof(KernelNode) == 72, "CUDA_KERNEL_NODE_PARAMS_v2");

// One side of a CUDA_MEMCPY3D_v2.
struct CopySide {
  size_t x, y, z, level;
  int memory_type;
  void *host;
  Address device;
  Handle array;
  void *reserved;
  size_t pitch, height;
};

// CUDA_MEMCPY3D_v2
struct CopyNode {
  CopySide source, target;
  size_t width, height, depth;
};
static_assert(sizeof(CopyNode) == 200, "CUDA_MEMCPY3D_v2");
constexpr int kDeviceMemory = 2;  // CUmemorytype

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

// Those of graphs; a driver may lack them.
#define MLIRML_CUDA_GRAPH_FUNCTIONS(X)                                                                               \
  X(GraphCreate, cuGraphCreate, (Handle *, unsigned))                                                                \
  X(GraphDestroy, cuGraphDestroy, (Handle))                                                                          \
  X(GraphAddKernelNode, cuGraphAddKernelNode_v2, (Handle *, Handle, const Handle *, size_t, const KernelNode *))     \
  X(GraphAddMemcpyNode, cuGraphAddMemcpyNode,                                                                        \
    (Handle *, Handle, const Handle *, size_t, const CopyNode *, Handle))                                            \
  X(GraphInstantiate, cuGraphInstantiateWithFlags, (Handle *, Handle, unsigned long long))                           \
  X(GraphExecKernelNodeSetParams, cuGraphExecKernelNodeSetParams_v2, (Handle, Handle, const KernelNode *))           \
  X(GraphExecMemcpyNodeSetParams, cuGraphExecMemcpyNodeSetParams, (Handle, Handle, const CopyNode *, Handle))        \
  X(GraphExecDestroy, cuGraphExecDestroy, (Handle))                                                                  \
  X(GraphLaunch, cuGraphLaunch, (Handle, Handle))

struct Functions {
#define MLIRML_DECLARE(name, symbol, arguments) Result(*name) arguments = nullptr;
  MLIRML_CUDA_FUNCTIONS(MLIRML_DECLARE)
  MLIRML_CUDA_GRAPH_FUNCTIONS(MLIRML_DECLARE)
#undef MLIRML_DECLARE
};

}  // namespace mlirml::cuda
