// Calls of Python functions by programs: `mlirml_host_word` and `mlirml_host_bytes` pass words, `mlirml_host_call` calls.
#pragma once

#include <cstdint>

#include "numpy_api.h"

extern "C" {
void mlirml_host_word(int64_t word);
// Passes the address of a copy of these bytes, which lasts for the next call.
void mlirml_host_bytes(int64_t address, int64_t size);
// Calls the function of the program that runs with a number and the list of words. Where it raises, the call of the
// program fails with its exception: at once, or for the host code of a device at its end.
void mlirml_host_call(int64_t number);
}

namespace mlirml {

// While it lives, programs that this thread runs call `function`, which may be null.
class HostScope {
 public:
  explicit HostScope(PyObject *function);
  ~HostScope();
  HostScope(const HostScope &) = delete;

 private:
  PyObject *outer_;
};

// Whether a function has raised since the last question, in host code of a device; its exception is set then.
bool raise_host_error();

}  // namespace mlirml
