// The callable in front of compiled programs.
#pragma once

#include "numpy_api.h"

namespace mlirml {

// Adds the type `Dispatcher` to the module; false with an exception set on failure.
bool init_dispatch(PyObject *module);

// A copy of (args, kwargs) with each leaf replaced by its number; a new reference to the pair, None if some container
// cannot be handled here, or nullptr with an exception set.
PyObject *number_leaves(PyObject *args, PyObject *kwargs);

}  // namespace mlirml
