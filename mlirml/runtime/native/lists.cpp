#include "lists.h"

#include <algorithm>
#include <new>
#include <vector>

#include "memory.h"

namespace mlirml {
namespace {

// The lists of one depth, in order: those of the whole are `{list}`.
using Lists = std::vector<PyObject *>;

// The lists in `lists`; false if these have other items, differ in length or contain a list twice.
bool inner_lists(const Lists &lists, Lists &inner) {
  const Py_ssize_t length = PyList_GET_SIZE(PyList_GET_ITEM(lists[0], 0));
  for (PyObject *list : lists)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++) {
      PyObject *item = PyList_GET_ITEM(list, i);
      if (!PyList_CheckExact(item) || PyList_GET_SIZE(item) != length) return false;
      inner.push_back(item);
    }
  Lists sorted(inner);
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

bool put_number(PyObject *item, bool *to) {
  *to = item == Py_True;
  return true;
}

bool put_number(PyObject *item, npy_int64 *to) {
  int overflow = 0;
  *to = PyLong_AsLongLongAndOverflow(item, &overflow);
  return overflow == 0;
}

bool put_number(PyObject *item, double *to) {
  *to = PyFloat_AS_DOUBLE(item);
  return true;
}

bool put_number(PyObject *item, Py_complex *to) {
  *to = PyComplex_AsCComplex(item);
  return true;
}

// False if a number is of another type, or does not fit.
template <class T>
bool put_numbers(const Lists &rows, PyTypeObject *type, void *memory) {
  T *to = static_cast<T *>(memory);
  for (PyObject *row : rows)
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(row); i++, to++) {
      PyObject *item = PyList_GET_ITEM(row, i);
      if (Py_TYPE(item) != type || !put_number(item, to)) return false;
    }
  return true;
}

bool put_numbers(const Lists &rows, PyTypeObject *type, void *memory) {
  if (type == &PyBool_Type) return put_numbers<bool>(rows, type, memory);
  if (type == &PyLong_Type) return put_numbers<npy_int64>(rows, type, memory);
  if (type == &PyFloat_Type) return put_numbers<double>(rows, type, memory);
  return put_numbers<Py_complex>(rows, type, memory);
}

int dtype_of(PyTypeObject *type) {
  if (type == &PyBool_Type) return NPY_BOOL;
  if (type == &PyLong_Type) return NPY_INT64;
  if (type == &PyFloat_Type) return NPY_DOUBLE;
  return type == &PyComplex_Type ? NPY_CDOUBLE : NPY_NOTYPE;
}

PyObject *pack(PyObject *list, Py_ssize_t fewest) {
  Lists rows = {list};
  std::vector<npy_intp> dims;
  npy_intp count = 1;
  for (;;) {
    const Py_ssize_t length = PyList_GET_SIZE(rows[0]);
    if (length == 0 || dims.size() == NPY_MAXDIMS) Py_RETURN_NONE;
    dims.push_back(length);
    count *= length;
    if (!PyList_CheckExact(PyList_GET_ITEM(rows[0], 0))) break;
    Lists inner;
    if (!inner_lists(rows, inner)) Py_RETURN_NONE;
    rows.swap(inner);
  }
  PyTypeObject *type = Py_TYPE(PyList_GET_ITEM(rows[0], 0));
  const int dtype = dtype_of(type);
  if (count < fewest || dtype == NPY_NOTYPE) Py_RETURN_NONE;
  PyArray_Descr *descr = PyArray_DescrFromType(dtype);
  if (!descr) return nullptr;
  const npy_intp bytes = count * PyDataType_ELSIZE(descr);
  PyArrayObject *array = new_array(descr, static_cast<int>(dims.size()), dims.data(), bytes);
  Py_DECREF(descr);
  if (!array) return nullptr;
  if (put_numbers(rows, type, PyArray_DATA(array))) return reinterpret_cast<PyObject *>(array);
  Py_DECREF(array);
  Py_RETURN_NONE;
}

}  // namespace

PyObject *pack_numbers(PyObject *list, Py_ssize_t fewest) {
  try {
    return pack(list, fewest);
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
}

}  // namespace mlirml
