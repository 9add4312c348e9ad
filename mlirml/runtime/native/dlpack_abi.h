// The part of DLPack that is used, as its specification gives it (versions before 1, and 1).
#pragma once

#include <cstdint>

namespace mlirml::dlpack {

constexpr int32_t kCuda = 2;                   // DLDeviceType
constexpr uint64_t kReadOnly = 1;              // DLPACK_FLAG_BITMASK_READ_ONLY
constexpr const char *kOldName = "dltensor", *kName = "dltensor_versioned";
constexpr const char *kOldUsed = "used_dltensor", *kUsed = "used_dltensor_versioned";

struct Device {
  int32_t type, index;
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t *shape, *strides;  // strides in elements; none where the elements lie densely in C order
  uint64_t byte_offset;
};

struct OldManaged {
  Tensor tensor;
  void *context;
  void (*deleter)(OldManaged *);
};

struct Managed {
  struct {
    uint32_t major, minor;
  } version;
  void *context;
  void (*deleter)(Managed *);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace mlirml::dlpack
