// The part of wgpu-native's C interface that the runtime calls, as version 29 has it: names and layouts of webgpu.h.
// The library is opened at run time, so that nothing of it is needed to build or to import.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mlirml::wgpu {

using Handle = struct Opaque *;  // an adapter, a buffer, a pipeline, ...
using Bool = uint32_t;
using Flags = uint64_t;

struct StringView {
  const char *data = nullptr;
  size_t length = SIZE_MAX;  // up to the terminating zero
};

struct Chained {
  Chained *next = nullptr;
  uint32_t type = 0;
};

constexpr uint32_t kShaderSourceSpirv = 1;
constexpr uint32_t kShaderSourceWgsl = 2;
constexpr uint32_t kInstanceExtras = 0x00030004;
constexpr uint32_t kAllowSpontaneous = 3;
constexpr uint32_t kSuccess = 1;
constexpr uint32_t kOutOfMemory = 3;
constexpr Flags kMapRead = 1, kCopySource = 4, kCopyTarget = 8, kStorage = 0x80;
constexpr Flags kMapForReading = 1;
constexpr Flags kComputeStage = 4;
constexpr Flags kBoundsChecks = 1;
constexpr uint32_t kStorageBinding = 3;

enum Feature : uint32_t {
  kShaderF16 = 0x0000000B,
  kShaderF64 = 0x0003001D,
  kShaderInt64 = 0x00030026,
  kSubgroup = 0x00030021,
  kFloat32Atomic = 0x00030027,
};

struct InstanceDescriptor {
  const Chained *next = nullptr;
  size_t feature_count = 0;
  const void *features = nullptr, *limits = nullptr;
};

struct InstanceExtras {
  Chained chain;
  Flags backends = 0, flags = 0;
  uint32_t dx12_compiler = 0, gles_version = 0, gl_fences = 0;
  StringView dxc_path = {nullptr, 0};
  uint32_t dxc_model = 0, dx12_presentation = 0;
  const uint8_t *creation_budget = nullptr, *loss_budget = nullptr;
  uint32_t display_kind = 0;
  uint64_t display[2] = {};
};

struct EnumerateOptions {
  const Chained *next = nullptr;
  Flags backends = 0;
};

struct AdapterInfo {
  Chained *next = nullptr;
  StringView vendor, architecture, device, description;
  uint32_t backend = 0, kind = 0, vendor_id = 0, device_id = 0, subgroup_min = 0, subgroup_max = 0;
};

struct Limits {
  Chained *next = nullptr;
  uint32_t texture_1d = 0, texture_2d = 0, texture_3d = 0, texture_layers = 0;
  uint32_t bind_groups = 0, bind_groups_and_vertex_buffers = 0, bindings_per_group = 0;
  uint32_t dynamic_uniform_buffers = 0, dynamic_storage_buffers = 0;
  uint32_t sampled_textures = 0, samplers = 0, storage_buffers = 0, storage_textures = 0, uniform_buffers = 0;
  uint64_t uniform_binding_bytes = 0, storage_binding_bytes = 0;
  uint32_t uniform_alignment = 0, storage_alignment = 0, vertex_buffers = 0;
  uint64_t buffer_bytes = 0;
  uint32_t vertex_attributes = 0, vertex_stride = 0, inter_stage_variables = 0;
  uint32_t color_attachments = 0, color_attachment_bytes = 0;
  uint32_t workgroup_bytes = 0, workgroup_threads = 0, workgroup_x = 0, workgroup_y = 0, workgroup_z = 0;
  uint32_t workgroups = 0, immediate_bytes = 0;
};

template <class Function>
struct Callback {
  Chained *next = nullptr;
  uint32_t mode = kAllowSpontaneous;
  Function function = nullptr;
  void *data1 = nullptr, *data2 = nullptr;
};

using DeviceLost = void (*)(const Handle *, uint32_t reason, StringView, void *, void *);
using UncapturedError = void (*)(const Handle *, uint32_t kind, StringView, void *, void *);
using GotDevice = void (*)(uint32_t status, Handle, StringView, void *, void *);
using Done = void (*)(uint32_t status, StringView, void *, void *);

struct UncapturedErrorInfo {  // has no mode
  Chained *next = nullptr;
  UncapturedError function = nullptr;
  void *data1 = nullptr, *data2 = nullptr;
};

struct QueueDescriptor {
  Chained *next = nullptr;
  StringView label;
};

struct DeviceDescriptor {
  Chained *next = nullptr;
  StringView label;
  size_t feature_count = 0;
  const uint32_t *features = nullptr;
  const Limits *limits = nullptr;
  QueueDescriptor queue;
  Callback<DeviceLost> lost;
  UncapturedErrorInfo error;
};

struct BufferDescriptor {
  Chained *next = nullptr;
  StringView label;
  Flags usage = 0;
  uint64_t size = 0;
  Bool mapped = 0;
};

struct ShaderSourceSpirv {
  Chained chain;
  uint32_t words = 0;
  const uint32_t *code = nullptr;
};

struct ShaderSourceWgsl {
  Chained chain;
  StringView code;
};

struct Described {  // of a shader module, an encoder, a pass, ...: a chain and a label come first
  const Chained *next = nullptr;
  StringView label;
};

struct ComputePassDescriptor : Described {
  const void *timestamps = nullptr;
};

struct ComputePipelineDescriptor : Described {
  Handle layout = nullptr;
  const Chained *stage_next = nullptr;
  Handle shader = nullptr;
  StringView entry;
  size_t constant_count = 0;
  const void *constants = nullptr;
};

struct BufferLayout {
  Chained *next = nullptr;
  uint32_t type = 0;
  Bool dynamic_offset = 0;
  uint64_t least_size = 0;
};

struct SamplerLayout {
  Chained *next = nullptr;
  uint32_t type = 0;
};

struct TextureLayout {
  Chained *next = nullptr;
  uint32_t sample_type = 0, dimension = 0;
  Bool multisampled = 0;
};

struct StorageTextureLayout {
  Chained *next = nullptr;
  uint32_t access = 0, format = 0, dimension = 0;
};

struct BindGroupLayoutEntry {
  Chained *next = nullptr;
  uint32_t binding = 0;
  Flags visibility = 0;
  uint32_t array_size = 0;
  BufferLayout buffer;
  SamplerLayout sampler;
  TextureLayout texture;
  StorageTextureLayout storage_texture;
};

struct BindGroupLayoutDescriptor : Described {
  size_t count = 0;
  const BindGroupLayoutEntry *entries = nullptr;
};

struct PipelineLayoutDescriptor : Described {
  size_t count = 0;
  const Handle *groups = nullptr;
  uint32_t immediate_bytes = 0;
};

struct BindGroupEntry {
  Chained *next = nullptr;
  uint32_t binding = 0;
  Handle buffer = nullptr;
  uint64_t offset = 0, size = 0;
  Handle sampler = nullptr, texture = nullptr;
};

struct BindGroupDescriptor : Described {
  Handle layout = nullptr;
  size_t count = 0;
  const BindGroupEntry *entries = nullptr;
};

struct Future {
  uint64_t id;
};

// Each function by its name without the prefix `wgpu`.
#define MLIRML_WGPU_FUNCTIONS(X)                                                                \
  X(uint32_t, GetVersion, (void))                                                               \
  X(Handle, CreateInstance, (const void *))                                                     \
  X(size_t, InstanceEnumerateAdapters, (Handle, const EnumerateOptions *, Handle *))            \
  X(uint32_t, AdapterGetInfo, (Handle, AdapterInfo *))                                          \
  X(void, AdapterInfoFreeMembers, (AdapterInfo))                                                \
  X(uint32_t, AdapterGetLimits, (Handle, Limits *))                                             \
  X(Bool, AdapterHasFeature, (Handle, uint32_t))                                                \
  X(Future, AdapterRequestDevice, (Handle, const DeviceDescriptor *, Callback<GotDevice>))      \
  X(void, AdapterRelease, (Handle))                                                             \
  X(Handle, DeviceGetQueue, (Handle))                                                           \
  X(Handle, DeviceCreateBuffer, (Handle, const BufferDescriptor *))                             \
  X(Handle, DeviceCreateShaderModuleTrusted, (Handle, const Described *, Flags checks))         \
  X(Handle, DeviceCreateComputePipeline, (Handle, const ComputePipelineDescriptor *))           \
  X(Handle, DeviceCreateBindGroup, (Handle, const BindGroupDescriptor *))                       \
  X(Handle, DeviceCreateCommandEncoder, (Handle, const Described *))                            \
  X(Bool, DevicePoll, (Handle, Bool, const void *))                                             \
  X(void, DeviceDestroy, (Handle))                                                              \
  X(void, DeviceRelease, (Handle))                                                              \
  X(void, BufferRelease, (Handle))                                                              \
  X(void, BufferDestroy, (Handle))                                                              \
  X(Future, BufferMapAsync, (Handle, Flags, size_t, size_t, Callback<Done>))                    \
  X(const void *, BufferGetConstMappedRange, (Handle, size_t, size_t))                          \
  X(void, BufferUnmap, (Handle))                                                                \
  X(void, QueueWriteBuffer, (Handle, Handle, uint64_t, const void *, size_t))                   \
  X(void, QueueSubmit, (Handle, size_t, const Handle *))                                        \
  X(Future, QueueOnSubmittedWorkDone, (Handle, Callback<Done>))                                 \
  X(Handle, CommandEncoderBeginComputePass, (Handle, const ComputePassDescriptor *))            \
  X(void, CommandEncoderCopyBufferToBuffer, (Handle, Handle, uint64_t, Handle, uint64_t, uint64_t)) \
  X(Handle, CommandEncoderFinish, (Handle, const void *))                                       \
  X(void, CommandEncoderRelease, (Handle))                                                      \
  X(void, CommandBufferRelease, (Handle))                                                       \
  X(void, ComputePassEncoderSetPipeline, (Handle, Handle))                                      \
  X(void, ComputePassEncoderSetBindGroup, (Handle, uint32_t, Handle, size_t, const uint32_t *)) \
  X(void, ComputePassEncoderDispatchWorkgroups, (Handle, uint32_t, uint32_t, uint32_t))         \
  X(void, ComputePassEncoderEnd, (Handle))                                                      \
  X(void, ComputePassEncoderRelease, (Handle))                                                  \
  X(Handle, DeviceCreateBindGroupLayout, (Handle, const BindGroupLayoutDescriptor *))           \
  X(Handle, DeviceCreatePipelineLayout, (Handle, const PipelineLayoutDescriptor *))             \
  X(void, PipelineLayoutRelease, (Handle))                                                      \
  X(void, ComputePipelineRelease, (Handle))                                                     \
  X(void, BindGroupLayoutRelease, (Handle))                                                     \
  X(void, BindGroupRelease, (Handle))                                                           \
  X(void, ShaderModuleRelease, (Handle))

struct Functions {
#define MLIRML_MEMBER(result, name, arguments) result(*name) arguments = nullptr;
  MLIRML_WGPU_FUNCTIONS(MLIRML_MEMBER)
#undef MLIRML_MEMBER
};

}  // namespace mlirml::wgpu
