// Lists of Python numbers as arrays.
#pragma once

#include "numpy_api.h"

namespace mlirml {

// A list of bool, int, float or complex, all of one type, or of lists of lists of them that are as long as each other
// and distinct, as an array of bool, i64, f64 or c128. A new reference; None for other lists, for fewer than `fewest`
// numbers, and where an int has more than 64 bits. Runs no Python code. nullptr with an exception set if there is no
// memory.
PyObject *pack_numbers(PyObject *list, Py_ssize_t fewest);

}  // namespace mlirml
