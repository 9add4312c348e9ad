// Whether arrays share memory, for results that are written to arrays of the caller.
#pragma once

#include "numpy_api.h"

namespace mlirml {

// 1 if some byte belongs to both arrays, 0 if not, -1 with an exception set.
int share_memory(PyArrayObject *a, PyArrayObject *b);

// Do two different indices of the array name the same element? Also true for arrays whose dimensions interlace, which
// only `as_strided` makes.
bool repeats_elements(PyArrayObject *array);

}  // namespace mlirml
