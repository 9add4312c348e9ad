// The classes of devices in the Python module.
#pragma once

#include <nanobind/nanobind.h>

namespace mlirml {

void bind_devices(nanobind::module_ &m);

}  // namespace mlirml
