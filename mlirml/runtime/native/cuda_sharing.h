// Memory of CUDA devices shared with other libraries by DLPack.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>

namespace mlirml {

class CudaDevice;

void bind_sharing(nanobind::module_ &m, nanobind::class_<CudaDevice> &device);

}  // namespace mlirml
