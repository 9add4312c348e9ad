#include "device.h"

#include "clock.h"

void mgpuLaunchKernel(void *kernel, intptr_t grid_x, intptr_t grid_y, intptr_t grid_z, intptr_t block_x,
                      intptr_t block_y, intptr_t block_z, int32_t shared_bytes, void *stream, void **arguments, void **,
                      size_t count) {
  auto number = [](intptr_t value) { return static_cast<uint32_t>(value); };
  const mlirml::Launch launch = {{number(grid_x), number(grid_y), number(grid_z)},
                                 {number(block_x), number(block_y), number(block_z)},
                                 static_cast<uint32_t>(shared_bytes)};
  auto *launched = static_cast<mlirml::Kernel *>(kernel);
  mlirml_kernel_begins(launched->number);
  static_cast<mlirml::Device *>(stream)->launch(launched, launch, arguments, count);
  mlirml_kernel_ends(launched->number);
}

void mgpuMemcpy(void *target, void *source, size_t size, void *stream) {
  static_cast<mlirml::Device *>(stream)->copy_any(reinterpret_cast<uint64_t>(target), reinterpret_cast<uint64_t>(source),
                                                  size);
}
