#include "stores.h"

#include <unordered_map>

#include "leaves.h"

namespace mlirml {
namespace {

bool is_container(PyObject *value) {
  return PyTuple_CheckExact(value) || PyList_CheckExact(value) || PyDict_CheckExact(value) || fields_of(value);
}

// A new reference, or null with an exception set.
PyObject *item_of(PyObject *output, Store::Form form) {
  if (form == Store::kArray) return Py_NewRef(output);
  if (!PyArray_Check(output))
    return form == Store::kNumber ? PyObject_CallMethod(output, "item", nullptr) : Py_NewRef(output);
  auto *array = reinterpret_cast<PyArrayObject *>(output);
  const auto *data = static_cast<const char *>(PyArray_DATA(array));
  return form == Store::kNumber ? PyArray_GETITEM(array, data)
                                : PyArray_ToScalar(PyArray_DATA(array), array);
}

}  // namespace

Slots::~Slots() {
  for (const Slot &slot : slots_) {
    Py_DECREF(slot.holder);
    Py_XDECREF(slot.key);
  }
}

void Slots::child(PyObject *holder, PyObject *key, Py_ssize_t index, PyObject *value) {
  if (value == Py_None) return;
  if (!PyArray_CheckExact(value) && is_container(value)) return visit(value);
  if (next_ < stores_.size() && stores_[next_].leaf == leaf_) {
    next_++;
    if (holder) slots_.push({Py_NewRef(holder), Py_XNewRef(key), index});
  }
  leaf_++;
}

void Slots::visit(PyObject *value) {
  const size_t first = next_;
  if (PyDict_CheckExact(value)) {
    PyObject *key, *item;
    for (Py_ssize_t position = 0; PyDict_Next(value, &position, &key, &item);) child(value, key, 0, item);
  } else if (PyTuple_Check(value) || PyList_CheckExact(value)) {
    PyObject *holder = PyList_CheckExact(value) ? value : nullptr;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); i++)
      child(holder, nullptr, i, PySequence_Fast_GET_ITEM(value, i));
  } else {
    PyObject *names = fields_of(value), *dict = PyObject_GenericGetDict(value, nullptr);
    for (Py_ssize_t i = 0; dict && i < PyTuple_GET_SIZE(names); i++) {
      PyObject *name = PyTuple_GET_ITEM(names, i);
      child(value, name, 0, PyDict_GetItemWithError(dict, name));
    }
    Py_XDECREF(dict);  // the object has it
  }
  if (!PyTuple_Check(value)) containers_.push({value, next_ > first});
}

bool Slots::has_shared() const {
  std::unordered_map<PyObject *, bool> seen;
  if (containers_.size() < 2) return false;
  for (const Container &one : containers_) {
    const auto [before, is_new] = seen.emplace(one.object, one.has_store);
    if (!is_new && (one.has_store || before->second)) return true;
  }
  return false;
}

bool Slots::find(PyObject *const *args, size_t count) {
  for (size_t i = 0; i < count; i++) child(nullptr, nullptr, 0, args[i]);
  return slots_.size() == stores_.size() && !has_shared();
}

bool Slots::fill(PyObject *const *outputs) const {
  for (size_t i = 0; i < slots_.size(); i++) {
    const Slot &slot = slots_[i];
    PyObject *item = item_of(outputs[stores_[i].output], stores_[i].form);
    if (!item) return false;
    int failed;
    if (PyList_CheckExact(slot.holder)) {
      failed = PyList_SetItem(slot.holder, slot.index, item);  // takes the reference
    } else {
      failed = PyDict_CheckExact(slot.holder) ? PyDict_SetItem(slot.holder, slot.key, item)
                                              : PyObject_GenericSetAttr(slot.holder, slot.key, item);
      Py_DECREF(item);
    }
    if (failed < 0) return false;
  }
  return true;
}

}  // namespace mlirml
