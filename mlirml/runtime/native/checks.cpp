// The first failed check of each thread.
#include "checks.h"

#include "numpy_api.h"

namespace {

constexpr int64_t kNone = INT64_MIN;
thread_local int64_t first_failed = kNone;
PyObject *error_type = nullptr;  // since the first failure

}  // namespace

void mlirml_check_failed(int64_t number) {
  if (first_failed == kNone) first_failed = number;
}

namespace mlirml {

bool raise_failed_check() {
  if (__builtin_expect(first_failed == kNone, 1)) return false;
  const auto number = static_cast<long long>(first_failed);
  first_failed = kNone;
  if (!error_type) {
    PyObject *module = PyImport_ImportModule("mlirml.errors");
    if (!module) return true;
    error_type = PyObject_GetAttrString(module, "CheckFailed");
    Py_DECREF(module);
    if (!error_type) return true;
  }
  if (PyObject *argument = PyLong_FromLongLong(number)) {
    PyErr_SetObject(error_type, argument);
    Py_DECREF(argument);
  }
  return true;
}

void forget_failed_check() { first_failed = kNone; }

bool is_failed_check() { return error_type && PyErr_ExceptionMatches(error_type); }

}  // namespace mlirml
