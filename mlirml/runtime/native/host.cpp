#include "host.h"

#include <cstring>
#include <memory>
#include <vector>

#include "interrupts.h"
#include "pool.h"

namespace mlirml {
namespace {

thread_local PyObject *function = nullptr;
thread_local std::vector<int64_t> words;
thread_local std::vector<std::unique_ptr<char[]>> copies;
thread_local PyObject *first_error = nullptr;  // of host code of a device

// False with an exception set where the function raises. The GIL is held.
bool call(int64_t number) {
  // The function may run another program, which calls on its own.
  const std::vector<std::unique_ptr<char[]>> held = std::move(copies);
  copies.clear();
  PyObject *list = PyList_New(static_cast<Py_ssize_t>(words.size()));
  for (size_t i = 0; list && i < words.size(); i++)
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(words[i]));
  words.clear();
  if (!list) return false;
  if (!function) {
    Py_DECREF(list);
    PyErr_SetString(PyExc_RuntimeError, "a program calls a Python function that it was not given");
    return false;
  }
  PyObject *result = PyObject_CallFunction(function, "LN", static_cast<long long>(number), list);
  Py_XDECREF(result);
  return result != nullptr;
}

void keep_error() {
  PyObject *kind, *value, *traceback;
  PyErr_Fetch(&kind, &value, &traceback);
  PyErr_NormalizeException(&kind, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_XDECREF(kind);
  Py_XDECREF(traceback);
  if (first_error)
    Py_XDECREF(value);
  else
    first_error = value;
}

}  // namespace

HostScope::HostScope(PyObject *next) : outer_(function) { function = next; }
HostScope::~HostScope() { function = outer_; }

bool raise_host_error() {
  if (!first_error) return false;
  PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(first_error)), first_error);
  Py_CLEAR(first_error);
  return true;
}

}  // namespace mlirml

void mlirml_host_word(int64_t word) { mlirml::words.push_back(word); }

void mlirml_host_bytes(int64_t address, int64_t size) {
  mlirml::copies.push_back(std::make_unique<char[]>(static_cast<size_t>(size) + 1));
  char *copy = mlirml::copies.back().get();
  std::memcpy(copy, reinterpret_cast<const void *>(address), static_cast<size_t>(size));
  mlirml_host_word(reinterpret_cast<int64_t>(copy));
}

void mlirml_host_call(int64_t number) {
  using namespace mlirml;
  const unsigned control = float_control();
  if (program_polls()) {
    call_or_leave(call, number);
  } else if (first_error) {
    words.clear();
    copies.clear();
  } else {
    const PyGILState_STATE state = PyGILState_Ensure();
    if (!call(number)) keep_error();
    PyGILState_Release(state);
  }
  set_float_control(control);
}
