// A compiled program with everything that a call needs: the entry, specs of its arguments, constants, workspace size.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "numpy_api.h"

namespace mlirml {

// A dtype and a shape. `descr` is a counted reference held by the program.
struct Spec {
  PyArray_Descr *descr = nullptr;
  int type = -1;
  std::vector<npy_intp> dims;
  npy_intp nbytes = 0;
};

// The values a Python integer may have without changing when the program narrows it.
struct IntRange {
  __int128 min, max;
  std::string dtype;
};

struct Input : Spec {
  bool weak = false;  // takes a Python scalar, in 8 bytes or, for a complex one, 16
  std::vector<IntRange> ranges;
};

// An output that is stored into an argument after the run; `in_place` where the program itself works in its memory.
struct Writeback {
  size_t output, input;
  bool in_place = false;
};

using Entry = void (*)(void **);

struct Program {
  PyObject_HEAD
  Entry entry;
  bool polls;  // it has loops that ask for signals
  PyObject *code;
  PyObject *host;  // what it calls in Python, or null
  std::vector<Input> inputs;
  std::vector<Spec> outputs;
  std::vector<PyObject *> constants;
  std::vector<Writeback> writebacks;
  size_t workspace_bytes;
  int64_t remaining = -1;  // calls that the dispatcher makes before it asks `miss` again; -1 for no limit
};

extern PyTypeObject *program_type;

// Do dtype, shape and kind of a value fit the input? False with a TypeError set if not.
bool check_input(const Input &input, PyObject *value, size_t index);

// Runs the program. `leaves` are values that fit the inputs; `outs` is nullptr or holds an array or None for each
// output. Puts new references to the result arrays into `results`. False with an exception set on failure; `entered`
// says whether the program has run by then: before that nothing is stored, and afterwards it must not run again.
bool run_program(Program *program, PyObject *const *leaves, PyObject *const *outs, PyObject **results, bool &entered);

// Adds the type `Program` to the module; false with an exception set on failure.
bool init_program(PyObject *module);

}  // namespace mlirml
