// Comparisons run before each call, so they go by identity and run no Python code but that of an odd `__eq__` of keys.
#include "guards.h"

#include <nanobind/stl/tuple.h>

#include <cstring>
#include <tuple>

#include "numpy_api.h"

namespace nb = nanobind;

namespace mlirml {
namespace {

// The dict of a class, or the dict itself.
PyObject *entries_of(PyObject *object) {
  return PyType_Check(object) ? reinterpret_cast<PyTypeObject *>(object)->tp_dict : object;
}

bool is_value(PyObject *dict, const Guard &guard) {
  PyObject *now = PyDict_GetItemWithError(dict, guard.name.ptr());
  if (!now) PyErr_Clear();
  return now == guard.value.ptr();
}

bool slot_is(const Guard &guard) {
  PyObject *descriptor = guard.name.ptr();
  PyObject *now = Py_TYPE(descriptor)->tp_descr_get(descriptor, guard.holder.ptr(), nullptr);
  if (!now) PyErr_Clear();
  Py_XDECREF(now);
  return (now ? now : descriptor) == guard.value.ptr();  // the descriptor itself for a slot without a value
}

// Items that are inputs of the program may be anything.
bool fits(PyObject *now, PyObject *then) { return now == then || then == Py_NotImplemented; }

bool same_entries(PyObject *dict, PyObject *tuple) {
  if (2 * PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(tuple)) return false;
  PyObject *key, *value;
  Py_ssize_t i = 0;
  for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &key, &value); i += 2)
    if (key != PyTuple_GET_ITEM(tuple, i) || !fits(value, PyTuple_GET_ITEM(tuple, i + 1))) return false;
  return true;
}

bool same_list(PyObject *list, PyObject *tuple) {
  const Py_ssize_t size = PyTuple_GET_SIZE(tuple);
  if (PyList_GET_SIZE(list) != size) return false;
  for (Py_ssize_t i = 0; i < size; i++)
    if (!fits(PyList_GET_ITEM(list, i), PyTuple_GET_ITEM(tuple, i))) return false;
  return true;
}

bool same_items(PyObject *holder, PyObject *tuple) {
  nb::object iterator = nb::steal(PyObject_GetIter(holder));
  Py_ssize_t i = 0;
  bool same = iterator.is_valid();
  while (same) {
    nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
    if (!item.is_valid()) break;
    same = i < PyTuple_GET_SIZE(tuple) && item.ptr() == PyTuple_GET_ITEM(tuple, i);
    i++;
  }
  if (PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return same && i == PyTuple_GET_SIZE(tuple);
}

bool same_elements(PyObject *holder, PyObject *copy) {
  auto *array = reinterpret_cast<PyArrayObject *>(holder), *old = reinterpret_cast<PyArrayObject *>(copy);
  if (PyArray_NDIM(array) != PyArray_NDIM(old) || PyArray_TYPE(array) != PyArray_TYPE(old) ||
      !PyArray_CompareLists(PyArray_DIMS(array), PyArray_DIMS(old), PyArray_NDIM(array)))
    return false;
  nb::object now = PyArray_IS_C_CONTIGUOUS(array) ? nb::borrow(holder) : nb::steal(PyArray_NewCopy(array, NPY_CORDER));
  if (!now.is_valid()) {
    PyErr_Clear();
    return false;
  }
  const void *data = PyArray_DATA(reinterpret_cast<PyArrayObject *>(now.ptr()));
  return std::memcmp(data, PyArray_DATA(old), static_cast<size_t>(PyArray_NBYTES(old))) == 0;
}

bool same_function(PyObject *function, PyObject *parts) {
  PyObject *defaults = PyFunction_GET_DEFAULTS(function), *named = PyFunction_GET_KW_DEFAULTS(function);
  return PyFunction_GET_CODE(function) == PyTuple_GET_ITEM(parts, 0) &&
         (defaults ? defaults : Py_None) == PyTuple_GET_ITEM(parts, 1) &&
         (named ? named : Py_None) == PyTuple_GET_ITEM(parts, 2);
}

Guard::Kind kind_of(nb::handle holder, nb::handle name, nb::handle value) {
  PyObject *object = holder.ptr();
  if (PyCell_Check(object)) return Guard::kCell;
  if (Py_IS_TYPE(name.ptr(), &PyMemberDescr_Type)) return Guard::kSlot;
  if (!name.is_none()) {
    if (PyType_Check(object)) return Guard::kClass;
    if (PyDict_Check(object)) return Guard::kKey;
  } else if ((PyDict_Check(object) || PyType_Check(object)) && PyLong_CheckExact(value.ptr())) {
    return Guard::kSize;
  } else if (PyArray_Check(object) && PyArray_Check(value.ptr())) {
    return Guard::kArray;
  } else if (PyTuple_CheckExact(value.ptr())) {
    if (PyFunction_Check(object) && PyTuple_GET_SIZE(value.ptr()) == 3) return Guard::kFunction;
    return PyDict_Check(object) ? Guard::kDict : PyList_Check(object) ? Guard::kList : Guard::kItems;
  }
  throw nb::type_error("guards: not a binding, a container or an array, and what it holds");
}

}  // namespace

bool Guard::holds() const {
  PyObject *object = holder.ptr();
  switch (kind) {
    case kCell:
      return PyCell_GET(object) == value.ptr();
    case kKey:
      return is_value(object, *this);
    case kClass:
      return is_value(entries_of(object), *this);
    case kSlot:
      return slot_is(*this);
    case kDict:
      return same_entries(object, value.ptr());
    case kSize:
      return static_cast<size_t>(PyDict_GET_SIZE(entries_of(object))) == size;
    case kList:
      return same_list(object, value.ptr());
    case kItems:
      return same_items(object, value.ptr());
    case kArray:
      return same_elements(object, value.ptr());
    case kFunction:
      return same_function(object, value.ptr());
  }
  return false;
}

std::vector<Guard> parse_guards(nb::handle guards) {
  std::vector<Guard> result;
  for (nb::handle item : guards) {
    auto [holder, name, value] = nb::cast<std::tuple<nb::object, nb::object, nb::object>>(item);
    const Guard::Kind kind = kind_of(holder, name, value);
    const size_t size = kind == Guard::kSize ? nb::cast<size_t>(value) : 0;
    result.push_back({kind, holder, name, value, size});
  }
  return result;
}

}  // namespace mlirml
