// New items of the lists, dicts and objects among the arguments of a call: outputs of the program.
#pragma once

#include <cstddef>
#include <vector>

#include "numpy_api.h"
#include "small_buffer.h"

namespace mlirml {

struct Store {
  enum Form { kArray, kNumber, kScalar };  // of the item: as it is, a Python number, a NumPy scalar
  size_t leaf, output;
  Form form;
};

// Where the items are: found before the program runs, as the containers may change meanwhile.
class Slots {
 public:
  explicit Slots(const std::vector<Store> &stores) : stores_(stores) {}
  ~Slots();
  Slots(const Slots &) = delete;
  Slots &operator=(const Slots &) = delete;

  // Takes the arguments of a vectorcall apart as `Flat` has; the stores are in the order of their leaves. False if an
  // item is none of a list, dict or object, or if a container with a new item is passed twice.
  bool find(PyObject *const *args, size_t count);

  // Puts the outputs there. False with an exception set on failure.
  bool fill(PyObject *const *outputs) const;

 private:
  struct Slot {
    PyObject *holder, *key;  // counted references; no key for an item of a list
    Py_ssize_t index;
  };
  struct Container {
    PyObject *object;
    bool has_store;
  };

  void visit(PyObject *value);
  void child(PyObject *holder, PyObject *key, Py_ssize_t index, PyObject *value);
  bool has_shared() const;

  const std::vector<Store> &stores_;
  SmallBuffer<Slot, 8> slots_;
  SmallBuffer<Container, 16> containers_;
  size_t leaf_ = 0, next_ = 0;
};

}  // namespace mlirml
