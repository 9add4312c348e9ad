// Binding arguments to `void *[]` and running the entry without the GIL.
#include "program.h"

#include <nanobind/nanobind.h>
#include <structmember.h>

#include <cstring>
#include <new>

#include "checks.h"
#include "host.h"
#include "interrupts.h"
#include "leaves.h"
#include "memory.h"
#include "overlap.h"
#include "small_buffer.h"

namespace nb = nanobind;

namespace mlirml {

PyTypeObject *program_type = nullptr;

namespace {

constexpr int kReadable = NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED;

PyArrayObject *as_array(PyObject *object) { return reinterpret_cast<PyArrayObject *>(object); }

bool readable(PyArrayObject *array) { return (PyArray_FLAGS(array) & kReadable) == kReadable; }

nb::object descr_name(const Spec &spec) { return nb::steal(PyObject_Str(reinterpret_cast<PyObject *>(spec.descr))); }

bool same_shape(const Spec &spec, PyArrayObject *array) {
  return PyArray_NDIM(array) == static_cast<int>(spec.dims.size()) &&
         PyArray_CompareLists(PyArray_DIMS(array), spec.dims.data(), PyArray_NDIM(array));
}

std::string describe(const Spec &spec) {
  nb::object name = descr_name(spec);
  std::string text = name.is_valid() ? nb::str(name).c_str() : "?";
  text += "[";
  for (size_t i = 0; i < spec.dims.size(); i++) text += (i ? "," : "") + std::to_string(spec.dims[i]);
  return text + "]";
}

bool fail_mismatch(const char *what, size_t index, const Spec &spec, PyObject *value) {
  if (PyArray_Check(value)) {
    nb::object shape = nb::steal(PyObject_GetAttrString(value, "shape"));
    PyErr_Format(PyExc_TypeError, "%s %zu: expected %s, got an array of dtype %S and shape %S", what, index,
                 describe(spec).c_str(), PyArray_DESCR(as_array(value)), shape.ptr());
  } else {
    PyErr_Format(PyExc_TypeError, "%s %zu: expected %s, got %s", what, index, describe(spec).c_str(),
                 Py_TYPE(value)->tp_name);
  }
  return false;
}

union alignas(16) Slot {
  double real;
  int64_t integer;
  uint64_t bits;
  unsigned char boolean;
  Py_complex complex;
  char bytes[16];  // the largest NumPy scalar that programs take is complex128
};

bool out_of_bounds(PyObject *value, const char *dtype) {
  PyErr_Format(PyExc_OverflowError, "Python integer %S out of bounds for %s", value, dtype);
  return false;
}

// Values beyond int64 are written as uint64 where a range allows them: the bits are what the program wants then.
bool write_integer(const Input &input, PyObject *value, Slot &slot) {
  int overflow;
  __int128 number = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(value);
    if (large == static_cast<unsigned long long>(-1) && PyErr_Occurred()) PyErr_Clear();
    else overflow = 0;
    number = large;
  }
  for (const IntRange &range : input.ranges)
    if (overflow || number < range.min || number > range.max) return out_of_bounds(value, range.dtype.c_str());
  if (overflow || (number > INT64_MAX && input.ranges.empty())) return out_of_bounds(value, "int64");
  slot.bits = static_cast<uint64_t>(number);
  return true;
}

bool write_weak(const Input &input, PyObject *value, Slot &slot) {
  if (input.type == NPY_DOUBLE) {
    slot.real = PyFloat_CheckExact(value) ? PyFloat_AS_DOUBLE(value) : PyFloat_AsDouble(value);
    return !(slot.real == -1.0 && PyErr_Occurred());
  }
  if (input.type == NPY_CDOUBLE) {
    slot.complex = PyComplex_AsCComplex(value);
    return !(slot.complex.real == -1.0 && PyErr_Occurred());
  }
  if (input.type == NPY_BOOL) {
    slot.bits = value == Py_True;
    return true;
  }
  return write_integer(input, value, slot);
}

// One run of a program: what it holds is let go at the end, on failure too.
class Call {
 public:
  Call(Program *program, PyObject *const *leaves, PyObject *const *outs, PyObject **results)
      : program_(program), leaves_(leaves), outs_(outs), results_(results) {
    // First of all: anything later may run Python code that takes the arguments apart.
    const size_t count = program->inputs.size();
    slots_.reserve(count);
    pointers_.reserve(count + program->constants.size() + program->outputs.size() + 1);
    for (size_t i = 0; i < count; i++) hold(Py_NewRef(leaves[i]));
  }

  ~Call() {
    for (PyObject *object : held_) Py_DECREF(object);
    block_free(workspace_);
    for (size_t i = 0; i < bound_results_ && !done_; i++) Py_DECREF(results_[i]);
  }

  bool run(bool &entered) {
    for (size_t i = 0; i < program_->inputs.size(); i++)
      if (!bind_input(i)) return false;
    for (PyObject *constant : program_->constants)
      if (!bind_array(as_array(constant))) return false;
    for (const Writeback &writeback : program_->writebacks)
      if (!check_writeback(writeback.input)) return false;
    for (size_t i = 0; i < program_->outputs.size(); i++)
      if (!bind_output(i)) return false;
    if (!bind_workspace()) return false;

    entered = true;
    const HostScope scope(program_->host);
    const bool finished = run_entry_point(program_->entry, pointers_.data(), program_->polls);
    if (!finished) forget_failed_check();
    if (!finished || raise_failed_check()) return false;

    done_ = copy_results();
    return done_;
  }

 private:
  struct Copy {
    PyArrayObject *to, *from;
  };

  void hold(PyObject *object) { held_.push(object); }

  bool bind_array(PyArrayObject *array) {
    if (!readable(array)) {
      array = as_array(PyArray_NewCopy(array, NPY_CORDER));
      if (!array) return false;
      hold(reinterpret_cast<PyObject *>(array));
    }
    pointers_.push(PyArray_DATA(array));
    return true;
  }

  bool bind_input(size_t i) {
    const Input &input = program_->inputs[i];
    PyObject *value = leaves_[i];
    if (PyArray_CheckExact(value)) return bind_array(as_array(value));
    slots_.push(Slot());
    Slot &slot = slots_[slots_.size() - 1];
    pointers_.push(&slot);
    if (input.weak) return write_weak(input, value, slot);
    if (!PyTypeNum_ISUSERDEF(input.type)) {
      PyArray_ScalarAsCtype(value, &slot);
      return true;
    }
    PyObject *array = PyArray_FromScalar(value, nullptr);
    if (!array) return false;
    std::memcpy(&slot, PyArray_DATA(as_array(array)), static_cast<size_t>(input.nbytes));
    Py_DECREF(array);
    return true;
  }

  // The argument and everything else that the program reads must be apart, or the result would depend on the order.
  bool check_writeback(size_t target) {
    PyArrayObject *array = as_array(leaves_[target]);
    if (!PyArray_CheckExact(leaves_[target])) {
      PyErr_Format(PyExc_TypeError, "argument %zu is assigned to, so it must be an array", target);
      return false;
    }
    if (!PyArray_ISWRITEABLE(array)) {
      PyErr_Format(PyExc_ValueError, "assignment destination is read-only: argument %zu", target);
      return false;
    }
    if (repeats_elements(array)) {
      PyErr_Format(PyExc_ValueError, "argument %zu is assigned to, but its elements share memory", target);
      return false;
    }
    for (size_t i = 0; i < program_->inputs.size(); i++) {
      if (i == target || !PyArray_CheckExact(leaves_[i])) continue;
      const int shared = share_memory(array, as_array(leaves_[i]));
      if (shared > 0) PyErr_Format(PyExc_ValueError, "argument %zu is assigned to and shares memory with argument %zu", target, i);
      if (shared) return false;
    }
    for (size_t i = 0; i < program_->constants.size(); i++) {
      const int shared = share_memory(array, as_array(program_->constants[i]));
      if (shared > 0) PyErr_Format(PyExc_ValueError, "argument %zu is assigned to and shares memory with a captured array", target);
      if (shared) return false;
    }
    return true;
  }

  const Writeback *in_place(size_t output) {
    for (const Writeback &writeback : program_->writebacks)
      if (writeback.in_place && writeback.output == output) return &writeback;
    return nullptr;
  }

  bool bind_output(size_t i) {
    const Spec &spec = program_->outputs[i];
    if (const Writeback *writeback = in_place(i)) {
      // The argument's own memory, or that of its contiguous copy.
      void *memory = pointers_[writeback->input];
      pointers_.push(memory);
      PyObject *array = leaves_[writeback->input];
      if (!readable(as_array(array)))
        for (PyObject *held : held_)
          if (PyArray_CheckExact(held) && PyArray_DATA(as_array(held)) == memory) array = held;
      bind_result(i, Py_NewRef(array));
      return true;
    }
    PyArrayObject *target = nullptr;
    if (outs_ && outs_[i] != Py_None) {
      target = as_array(outs_[i]);
      const int direct = check_out(spec, i);
      if (direct < 0) return false;
      if (direct) {
        bind_result(i, Py_NewRef(outs_[i]));
        pointers_.push(PyArray_DATA(target));
        return true;
      }
    }
    PyArrayObject *fresh = new_array(spec.descr, static_cast<int>(spec.dims.size()), spec.dims.data(), spec.nbytes);
    if (!fresh) return false;
    pointers_.push(PyArray_DATA(fresh));
    if (!target) {
      bind_result(i, reinterpret_cast<PyObject *>(fresh));
      return true;
    }
    hold(reinterpret_cast<PyObject *>(fresh));
    bind_result(i, Py_NewRef(outs_[i]));
    copies_.push({target, fresh});
    return true;
  }

  void bind_result(size_t i, PyObject *result) {
    results_[i] = result;
    bound_results_ = i + 1;
  }

  // 1 if the program may write straight to the array, 0 if a copy must follow, -1 with an exception set.
  int check_out(const Spec &spec, size_t i) {
    PyObject *out = outs_[i];
    if (!PyArray_Check(out) || array_type(as_array(out)) != spec.type || !same_shape(spec, as_array(out)))
      return fail_mismatch("output", i, spec, out) ? 1 : -1;
    PyArrayObject *array = as_array(out);
    if (!PyArray_ISWRITEABLE(array)) {
      PyErr_Format(PyExc_ValueError, "output %zu is read-only", i);
      return -1;
    }
    for (size_t other = 0; other < program_->outputs.size(); other++) {
      if (other == i || outs_[other] == Py_None || !PyArray_Check(outs_[other])) continue;
      const int shared = share_memory(array, as_array(outs_[other]));
      if (shared > 0) PyErr_Format(PyExc_ValueError, "outputs %zu and %zu share memory", i, other);
      if (shared) return -1;
    }
    if (!readable(array)) return 0;
    const size_t inputs = program_->inputs.size();
    for (size_t k = 0; k < inputs + program_->constants.size(); k++) {
      PyObject *read = k < inputs ? leaves_[k] : program_->constants[k - inputs];
      const int shared = PyArray_CheckExact(read) ? share_memory(array, as_array(read)) : 0;
      if (shared) return shared < 0 ? -1 : 0;
    }
    return 1;
  }

  bool bind_workspace() {
    if (!program_->workspace_bytes) return true;
    workspace_ = block_allocate(program_->workspace_bytes);
    if (!workspace_) {
      PyErr_Format(PyExc_MemoryError, "the program's workspace takes %zu bytes, which cannot be allocated",
                   program_->workspace_bytes);
      return false;
    }
    pointers_.push(workspace_);
    return true;
  }

  bool copy_results() {
    for (const Copy &copy : copies_)
      if (PyArray_CopyInto(copy.to, copy.from) < 0) return false;
    for (const Writeback &writeback : program_->writebacks) {
      PyObject *to = leaves_[writeback.input], *from = results_[writeback.output];
      if (to != from && PyArray_CopyInto(as_array(to), as_array(from)) < 0) return false;
    }
    return true;
  }

  Program *program_;
  PyObject *const *leaves_;
  PyObject *const *outs_;
  PyObject **results_;
  SmallBuffer<PyObject *, 32> held_;
  SmallBuffer<Slot, 8> slots_;  // reserved before use, so that pointers to slots stay good
  SmallBuffer<void *, 32> pointers_;
  SmallBuffer<Copy, 4> copies_;
  void *workspace_ = nullptr;
  size_t bound_results_ = 0;
  bool done_ = false;
};

bool fits_weak(int type, PyObject *value) {
  if (PyBool_Check(value)) return true;
  if (PyLong_CheckExact(value)) return type != NPY_BOOL;
  if (PyFloat_CheckExact(value)) return type == NPY_DOUBLE || type == NPY_CDOUBLE;
  return PyComplex_CheckExact(value) && type == NPY_CDOUBLE;
}

Spec parse_spec(nb::handle pair) {
  Spec spec;
  if (PySequence_Size(pair.ptr()) != 2) throw nb::value_error("a spec is a pair of dtype and shape");
  if (PyArray_DescrConverter(nb::object(pair[0]).ptr(), &spec.descr) != NPY_SUCCEED) throw nb::python_error();
  spec.type = PyArray_ISNBO(spec.descr->byteorder) ? canonical_type(spec.descr->type_num) : -1;
  spec.nbytes = PyDataType_ELSIZE(spec.descr);
  if (spec.type < 0) {
    Py_DECREF(spec.descr);
    throw nb::type_error("programs take no arrays of this dtype");
  }
  try {
    for (nb::handle dim : nb::object(pair[1])) {
      const npy_intp size = nb::cast<npy_intp>(dim);
      if (size < 0 || __builtin_mul_overflow(spec.nbytes, std::max<npy_intp>(size, 1), &spec.nbytes))
        throw nb::value_error("a shape is negative or too large");
      spec.dims.push_back(size);
    }
    if (spec.dims.size() > NPY_MAXDIMS) throw nb::value_error("too many dimensions");
  } catch (...) {
    Py_DECREF(spec.descr);
    throw;
  }
  for (npy_intp size : spec.dims)
    if (size == 0) spec.nbytes = 0;
  return spec;
}

__int128 parse_bound(nb::handle value) {
  int overflow;
  __int128 result = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
  if (overflow > 0) result = PyLong_AsUnsignedLongLong(value.ptr());
  if (overflow < 0) throw nb::value_error("int_ranges: a bound is below int64");
  if (PyErr_Occurred()) throw nb::python_error();
  return result;
}

size_t parse_index(nb::handle value, size_t count, const char *what) {
  const auto index = nb::cast<int64_t>(value);
  if (index < 0 || static_cast<size_t>(index) >= count) throw nb::value_error(what);
  return static_cast<size_t>(index);
}

void parse_inputs(Program *self, nb::handle inputs, nb::handle weak, nb::handle ranges) {
  for (nb::handle pair : inputs) {
    Input input;
    static_cast<Spec &>(input) = parse_spec(pair);
    self->inputs.push_back(std::move(input));
  }
  size_t i = 0;
  for (nb::handle flag : weak) {
    if (i >= self->inputs.size()) throw nb::value_error("weak is longer than inputs");
    Input &input = self->inputs[i++];
    input.weak = nb::cast<bool>(flag);
    if (input.weak && (!input.dims.empty() || (input.type != NPY_DOUBLE && input.type != NPY_LONG && input.type != NPY_BOOL &&
                                                  input.type != NPY_CDOUBLE)))
      throw nb::type_error("a weak input is a float64, int64, bool or complex128 of shape ()");
  }
  for (nb::handle range : ranges) {
    const size_t index = parse_index(nb::object(range[0]), self->inputs.size(), "int_ranges: no such input");
    self->inputs[index].ranges.push_back({parse_bound(nb::object(range[1])), parse_bound(nb::object(range[2])),
                                          nb::str(nb::object(range[3])).c_str()});
  }
}

void parse_constants(Program *self, nb::handle constants) {
  for (nb::handle constant : constants) {
    if (!PyArray_Check(constant.ptr()) || array_type(as_array(constant.ptr())) < 0)
      throw nb::type_error("constants: not an array of a supported dtype");
    // A view of our own: later changes of the values are seen, changes of shape or dtype in place are not.
    PyObject *view = PyArray_View(as_array(constant.ptr()), nullptr, &PyArray_Type);
    if (!view) throw nb::python_error();
    self->constants.push_back(view);
  }
}

void parse_writebacks(Program *self, nb::handle writebacks) {
  for (nb::handle pair : writebacks) {
    const size_t output = parse_index(nb::object(pair[0]), self->outputs.size(), "writebacks: no such output");
    const size_t input = parse_index(nb::object(pair[1]), self->inputs.size(), "writebacks: no such input");
    const Input &target = self->inputs[input];
    const Spec &source = self->outputs[output];
    if (target.weak || target.type != source.type || target.dims != source.dims)
      throw nb::value_error("writebacks: output and input differ in dtype or shape");
    self->writebacks.push_back({output, input});
  }
}

void parse_in_place(Program *self, nb::handle outputs) {
  for (nb::handle item : outputs) {
    const size_t output = parse_index(item, self->outputs.size(), "in_place: no such output");
    bool found = false;
    for (Writeback &writeback : self->writebacks)
      if (writeback.output == output) found = writeback.in_place = true;
    if (!found) throw nb::value_error("in_place: the output is not written back");
  }
}

PyObject *program_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"code",       "entry_name", "inputs", "outputs", "constants", "workspace_bytes",
                                "writebacks", "int_ranges", "weak",   "in_place", "host",    nullptr};
  PyObject *code, *name, *inputs, *outputs;
  nb::object empty = nb::steal(PyTuple_New(0));
  PyObject *constants = empty.ptr(), *writebacks = empty.ptr(), *ranges = empty.ptr(), *weak = empty.ptr(),
           *in_place = empty.ptr(), *host = Py_None;
  Py_ssize_t workspace_bytes = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OUOO|OnOOOOO:Program", const_cast<char **>(names), &code, &name, &inputs,
                                   &outputs, &constants, &workspace_bytes, &writebacks, &ranges, &weak, &in_place, &host))
    return nullptr;
  if (workspace_bytes < 0) {
    PyErr_SetString(PyExc_ValueError, "workspace_bytes is negative");
    return nullptr;
  }
  nb::object address = nb::steal(PyObject_CallMethod(code, "address", "O", name));
  if (!address.is_valid()) return nullptr;
  void *entry = PyLong_AsVoidPtr(address.ptr());
  if (!entry) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the entry has address 0");
    return nullptr;
  }
  nb::object calls_poll = nb::steal(PyObject_GetAttrString(code, "polls"));
  if (!calls_poll.is_valid()) PyErr_Clear();  // code of another kind, which only has addresses
  const bool polls = calls_poll.ptr() == Py_True;
  auto *self = reinterpret_cast<Program *>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  new (&self->inputs) std::vector<Input>();
  new (&self->outputs) std::vector<Spec>();
  new (&self->constants) std::vector<PyObject *>();
  new (&self->writebacks) std::vector<Writeback>();
  self->entry = reinterpret_cast<Entry>(entry);
  self->polls = polls;
  self->code = Py_NewRef(code);
  self->host = host == Py_None ? nullptr : Py_NewRef(host);
  self->workspace_bytes = static_cast<size_t>(workspace_bytes);
  self->remaining = -1;
  try {
    parse_inputs(self, inputs, weak, ranges);
    for (nb::handle pair : nb::handle(outputs)) self->outputs.push_back(parse_spec(pair));
    parse_constants(self, constants);
    parse_writebacks(self, writebacks);
    parse_in_place(self, in_place);
  } catch (nb::python_error &error) {
    error.restore();
    Py_DECREF(self);
    return nullptr;
  } catch (const nb::builtin_exception &error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, error.what());
    Py_DECREF(self);
    return nullptr;
  } catch (const std::exception &error) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_TypeError, "Program: %s", error.what());
    Py_DECREF(self);
    return nullptr;
  }
  return reinterpret_cast<PyObject *>(self);
}

void program_dealloc(PyObject *object) {
  auto *self = reinterpret_cast<Program *>(object);
  PyTypeObject *type = Py_TYPE(object);
  for (const Spec &spec : self->inputs) Py_XDECREF(spec.descr);
  for (const Spec &spec : self->outputs) Py_XDECREF(spec.descr);
  for (PyObject *constant : self->constants) Py_DECREF(constant);
  Py_XDECREF(self->code);
  Py_XDECREF(self->host);
  using Inputs = std::vector<Input>;
  using Specs = std::vector<Spec>;
  using Objects = std::vector<PyObject *>;
  using Writebacks = std::vector<Writeback>;
  self->inputs.~Inputs();
  self->outputs.~Specs();
  self->constants.~Objects();
  self->writebacks.~Writebacks();
  type->tp_free(object);
  Py_DECREF(type);
}

bool check_counts(Program *self, Py_ssize_t leaves, PyObject *outs) {
  if (static_cast<size_t>(leaves) != self->inputs.size()) {
    PyErr_Format(PyExc_TypeError, "the program takes %zu arguments, got %zd", self->inputs.size(), leaves);
    return false;
  }
  if (outs && static_cast<size_t>(PySequence_Fast_GET_SIZE(outs)) != self->outputs.size()) {
    PyErr_Format(PyExc_TypeError, "the program has %zu outputs, outs has %zd", self->outputs.size(),
                 PySequence_Fast_GET_SIZE(outs));
    return false;
  }
  return true;
}

PyObject *program_call(PyObject *object, PyObject *args, PyObject *kwargs) {
  auto *self = reinterpret_cast<Program *>(object);
  static const char *names[] = {"leaves", "outs", nullptr};
  PyObject *leaves_argument, *outs_argument = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:Program", const_cast<char **>(names), &leaves_argument, &outs_argument))
    return nullptr;
  // Tuples: a list could change while the program runs.
  nb::object leaves = nb::steal(PySequence_Tuple(leaves_argument));
  if (!leaves.is_valid()) return nullptr;
  nb::object outs;
  if (outs_argument != Py_None) {
    outs = nb::steal(PySequence_Tuple(outs_argument));
    if (!outs.is_valid()) return nullptr;
  }
  if (!check_counts(self, PyTuple_GET_SIZE(leaves.ptr()), outs.ptr())) return nullptr;
  PyObject *const *values = PySequence_Fast_ITEMS(leaves.ptr());
  for (size_t i = 0; i < self->inputs.size(); i++)
    if (!check_input(self->inputs[i], values[i], i)) return nullptr;
  try {
    SmallBuffer<PyObject *, 16> results;
    results.reserve(self->outputs.size());
    bool entered = false;
    if (!run_program(self, values, outs.is_valid() ? PySequence_Fast_ITEMS(outs.ptr()) : nullptr, results.data(), entered))
      return nullptr;
    PyObject *list = PyList_New(static_cast<Py_ssize_t>(self->outputs.size()));
    for (size_t i = 0; i < self->outputs.size(); i++) {
      if (list) PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), results.data()[i]);
      else Py_DECREF(results.data()[i]);
    }
    return list;
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
}

PyObject *get_remaining(PyObject *object, void *) {
  const int64_t remaining = reinterpret_cast<Program *>(object)->remaining;
  if (remaining < 0) Py_RETURN_NONE;
  return PyLong_FromLongLong(remaining);
}

int set_remaining(PyObject *object, PyObject *value, void *) {
  if (!value) {
    PyErr_SetString(PyExc_AttributeError, "remaining cannot be deleted");
    return -1;
  }
  long long remaining = -1;
  if (value != Py_None) {
    remaining = PyLong_AsLongLong(value);
    if (remaining == -1 && PyErr_Occurred()) return -1;
    if (remaining < 0) {
      PyErr_SetString(PyExc_ValueError, "remaining is negative");
      return -1;
    }
  }
  reinterpret_cast<Program *>(object)->remaining = remaining;
  return 0;
}

PyGetSetDef properties[] = {
    {"remaining", get_remaining, set_remaining, "The calls that a dispatcher still makes by itself; None for all.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyDoc_STRVAR(program_doc,
             "Program(code, entry_name, inputs, outputs, constants=(), workspace_bytes=0, writebacks=(), int_ranges=(), "
             "weak=(), in_place=(), host=None)\n--\n\nA compiled entry `void entry(void **)` with what a call of it needs.");

}  // namespace

bool check_input(const Input &input, PyObject *value, size_t index) {
  bool fits;
  if (PyArray_CheckExact(value))
    fits = array_type(as_array(value)) == input.type && same_shape(input, as_array(value));
  else if (input.weak)
    fits = fits_weak(input.type, value);
  else
    fits = input.dims.empty() && scalar_type(value) == input.type;
  return fits || fail_mismatch("argument", index, input, value);
}

bool run_program(Program *program, PyObject *const *leaves, PyObject *const *outs, PyObject **results, bool &entered) {
  if (program->remaining > 0) program->remaining--;
  return Call(program, leaves, outs, results).run(entered);
}

bool init_program(PyObject *module) {
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(program_new)},
                                {Py_tp_dealloc, reinterpret_cast<void *>(program_dealloc)},
                                {Py_tp_call, reinterpret_cast<void *>(program_call)},
                                {Py_tp_getset, properties},
                                {Py_tp_doc, const_cast<char *>(program_doc)},
                                {0, nullptr}};
  static PyType_Spec spec = {"mlirml.runtime._native.Program", sizeof(Program), 0, Py_TPFLAGS_DEFAULT, slots};
  program_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
  return program_type && PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject *>(program_type)) == 0;
}

}  // namespace mlirml
