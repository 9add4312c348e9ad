// Address ranges decide nearly always; interleaved arrays, such as two columns of one matrix, are left to NumPy.
#include "overlap.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <utility>

namespace mlirml {
namespace {

struct Extent {
  uintptr_t begin, end;
};

Extent extent_of(PyArrayObject *array) {
  auto begin = reinterpret_cast<uintptr_t>(PyArray_DATA(array));
  uintptr_t end = begin;
  if (PyArray_SIZE(array) == 0) return {begin, begin};
  for (int i = 0; i < PyArray_NDIM(array); i++) {
    const npy_intp reach = (PyArray_DIM(array, i) - 1) * PyArray_STRIDE(array, i);
    (reach < 0 ? begin : end) += static_cast<uintptr_t>(reach);
  }
  return {begin, end + static_cast<uintptr_t>(PyArray_ITEMSIZE(array))};
}

// The exact answer takes exponential time in the worst case; an array that needs more steps counts as shared.
int ask_numpy(PyArrayObject *a, PyArrayObject *b) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  if (!numpy) return -1;
  PyObject *answer = PyObject_CallMethod(numpy, "may_share_memory", "OOi", a, b, 100000);
  Py_DECREF(numpy);
  if (!answer) return -1;
  const int result = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return result;
}

}  // namespace

int share_memory(PyArrayObject *a, PyArrayObject *b) {
  const Extent x = extent_of(a), y = extent_of(b);
  if (x.begin >= y.end || y.begin >= x.end) return 0;
  if (PyArray_IS_C_CONTIGUOUS(a) && PyArray_IS_C_CONTIGUOUS(b)) return 1;
  return ask_numpy(a, b);
}

bool repeats_elements(PyArrayObject *array) {
  if (PyArray_IS_C_CONTIGUOUS(array) || PyArray_SIZE(array) == 0) return false;
  std::array<std::pair<npy_intp, npy_intp>, NPY_MAXDIMS> dims;  // stride and size
  size_t count = 0;
  for (int i = 0; i < PyArray_NDIM(array); i++)
    if (PyArray_DIM(array, i) > 1) dims[count++] = {std::abs(PyArray_STRIDE(array, i)), PyArray_DIM(array, i)};
  std::sort(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(count));
  npy_intp span = PyArray_ITEMSIZE(array);
  for (size_t i = 0; i < count; i++) {
    if (dims[i].first < span) return true;
    span += (dims[i].second - 1) * dims[i].first;
  }
  return false;
}

}  // namespace mlirml
