// Exact types only: a subclass may mean something else, and asking it would run Python code.
#include "leaves.h"

#include <unordered_map>

namespace mlirml {
namespace {

constexpr int kMaxDepth = 48;
// Declared classes are never freed, so that no other class gets the address of one.
constexpr size_t kMaxClasses = 1024;
// Instead of a number of dimensions: programs that store into an array of none must not get a scalar.
constexpr uint64_t kScalarRank = 255;

enum Tag : uint64_t { kTuple = 16, kList, kDict, kNone, kStringKey, kIntKey, kCall, kKeywords, kObject };

PyTypeObject *scalar_types[NPY_CLONGDOUBLE + 1];
PyTypeObject *half_type;

std::unordered_map<PyTypeObject *, PyObject *> &declared() {
  static auto *classes = new std::unordered_map<PyTypeObject *, PyObject *>;
  return *classes;
}

uint64_t word(uint64_t tag, uint64_t value) { return tag << 56 | value; }

}  // namespace

int canonical_type(int type_num) {
  switch (type_num) {
    case NPY_LONGLONG:
      return sizeof(long) == 8 ? NPY_LONG : NPY_LONGLONG;
    case NPY_ULONGLONG:
      return sizeof(long) == 8 ? NPY_ULONG : NPY_ULONGLONG;
    case NPY_BOOL:
    case NPY_BYTE:
    case NPY_UBYTE:
    case NPY_SHORT:
    case NPY_USHORT:
    case NPY_INT:
    case NPY_UINT:
    case NPY_LONG:
    case NPY_ULONG:
    case NPY_HALF:
    case NPY_FLOAT:
    case NPY_DOUBLE:
    case NPY_CFLOAT:
    case NPY_CDOUBLE:
      return type_num;
    default:
      return PyTypeNum_ISUSERDEF(type_num) ? type_num : -1;
  }
}

int array_type(PyArrayObject *array) {
  PyArray_Descr *descr = PyArray_DESCR(array);
  return PyArray_ISNBO(descr->byteorder) ? canonical_type(descr->type_num) : -1;
}

int scalar_type(PyObject *scalar) {
  PyTypeObject *type = Py_TYPE(scalar);
  for (int i = 0; i <= NPY_CLONGDOUBLE; i++)
    if (scalar_types[i] == type) return canonical_type(i);
  if (type == half_type) return NPY_HALF;
  if (!PyArray_IsScalar(scalar, Generic) || PyArray_IsScalar(scalar, Flexible)) return -1;
  PyArray_Descr *descr = PyArray_DescrFromScalar(scalar);
  if (!descr) {
    PyErr_Clear();
    return -1;
  }
  const int result = PyTypeNum_ISUSERDEF(descr->type_num) ? descr->type_num : -1;
  Py_DECREF(descr);
  return result;
}

void init_leaves() {
  for (int i = 0; i <= NPY_CLONGDOUBLE; i++)
    scalar_types[i] = reinterpret_cast<PyTypeObject *>(PyArray_TypeObjectFromType(i));
  half_type = reinterpret_cast<PyTypeObject *>(PyArray_TypeObjectFromType(NPY_HALF));
}

bool declare_fields(PyTypeObject *type, PyObject *names) {
  auto &classes = declared();
  if (classes.count(type)) return true;
  if (classes.size() >= kMaxClasses) return false;
  Py_INCREF(type);
  classes.emplace(type, Py_NewRef(names));
  return true;
}

PyObject *fields_of(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  if (!PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) return nullptr;
  const auto found = declared().find(type);
  return found == declared().end() ? nullptr : found->second;
}

Leaf leaf_kind(PyObject *value) {
  if (PyArray_CheckExact(value)) return array_type(reinterpret_cast<PyArrayObject *>(value)) >= 0 ? Leaf::kArray : Leaf::kOther;
  if (PyFloat_CheckExact(value)) return Leaf::kWeakFloat;
  if (PyLong_CheckExact(value)) return Leaf::kWeakInt;
  if (PyBool_Check(value)) return Leaf::kWeakBool;
  if (PyComplex_CheckExact(value)) return Leaf::kWeakComplex;
  if (PyUnicode_CheckExact(value)) return Leaf::kString;
  return scalar_type(value) >= 0 ? Leaf::kArray : Leaf::kOther;
}

void Flat::add_leaf(PyObject *value) {
  leaves.push(value);
  const Leaf kind = leaf_kind(value);
  const auto tag = static_cast<uint64_t>(kind);
  if (kind != Leaf::kArray) {
    words.push(word(tag, 0));
    return;
  }
  if (!PyArray_CheckExact(value)) {
    words.push(word(tag, static_cast<uint64_t>(scalar_type(value)) << 8 | kScalarRank));
    return;
  }
  auto *array = reinterpret_cast<PyArrayObject *>(value);
  const int ndim = PyArray_NDIM(array);
  words.push(word(tag, static_cast<uint64_t>(array_type(array)) << 8 | static_cast<uint64_t>(ndim)));
  for (int i = 0; i < ndim; i++) words.push(static_cast<uint64_t>(PyArray_DIM(array, i)));
}

bool Flat::add_key(PyObject *key) {
  Tag tag;
  if (PyUnicode_CheckExact(key))
    tag = kStringKey;
  else if (PyLong_CheckExact(key))
    tag = kIntKey;
  else
    return false;
  const Py_hash_t hash = PyObject_Hash(key);
  if (hash == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  words.push(word(tag, static_cast<uint64_t>(hash) >> 8));
  keys.push(key);
  return true;
}

bool Flat::add_dict(PyObject *dict, int depth) {
  words.push(word(kDict, static_cast<uint64_t>(PyDict_GET_SIZE(dict))));
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(dict, &position, &key, &value);)
    if (!add_key(key) || !add(value, depth + 1)) return false;
  return true;
}

bool Flat::add_object(PyObject *object, PyObject *names, int depth) {
  if (depth >= kMaxDepth) return false;
  PyObject *dict = PyObject_GenericGetDict(object, nullptr);
  if (!dict) {
    PyErr_Clear();
    return false;
  }
  words.push(word(kObject, reinterpret_cast<uintptr_t>(Py_TYPE(object))));
  bool whole = true;
  for (Py_ssize_t i = 0; whole && i < PyTuple_GET_SIZE(names); i++) {
    PyObject *value = PyDict_GetItemWithError(dict, PyTuple_GET_ITEM(names, i));
    if (!value) PyErr_Clear();
    whole = value && add(value, depth + 1);
  }
  Py_DECREF(dict);  // the object has it
  return whole;
}

bool Flat::add_named_tuple(PyObject *tuple, int depth) {
  if (depth >= kMaxDepth) return false;
  words.push(word(kObject, reinterpret_cast<uintptr_t>(Py_TYPE(tuple))));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++)
    if (!add(PyTuple_GET_ITEM(tuple, i), depth + 1)) return false;
  return true;
}

bool Flat::add(PyObject *value, int depth) {
  if (PyArray_CheckExact(value)) {
    add_leaf(value);
    return true;
  }
  if (value == Py_None) {
    words.push(word(kNone, 0));
    return true;
  }
  const bool tuple = PyTuple_CheckExact(value);
  if (!tuple && !PyList_CheckExact(value) && !PyDict_CheckExact(value)) {
    if (PyObject *names = fields_of(value))
      return PyTuple_Check(value) ? add_named_tuple(value, depth) : add_object(value, names, depth);
    add_leaf(value);
    return true;
  }
  if (depth >= kMaxDepth) return false;
  if (PyDict_CheckExact(value)) return add_dict(value, depth);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
  words.push(word(tuple ? kTuple : kList, static_cast<uint64_t>(size)));
  for (Py_ssize_t i = 0; i < size; i++)
    if (!add(PySequence_Fast_GET_ITEM(value, i), depth + 1)) return false;
  return true;
}

bool Flat::flatten_call(PyObject *const *args, size_t positional, PyObject *keyword_names) {
  words.push(word(kCall, positional));
  for (size_t i = 0; i < positional; i++)
    if (!add(args[i], 0)) return false;
  if (!keyword_names || PyTuple_GET_SIZE(keyword_names) == 0) return true;
  const Py_ssize_t named = PyTuple_GET_SIZE(keyword_names);
  words.push(word(kKeywords, static_cast<uint64_t>(named)));
  for (Py_ssize_t i = 0; i < named; i++)
    if (!add_key(PyTuple_GET_ITEM(keyword_names, i)) || !add(args[positional + static_cast<size_t>(i)], 0)) return false;
  return true;
}

bool Flat::flatten_call(PyObject *args, PyObject *kwargs) {
  const Py_ssize_t positional = PyTuple_GET_SIZE(args);
  words.push(word(kCall, static_cast<uint64_t>(positional)));
  for (Py_ssize_t i = 0; i < positional; i++)
    if (!add(PyTuple_GET_ITEM(args, i), 0)) return false;
  if (!kwargs || PyDict_GET_SIZE(kwargs) == 0) return true;
  words.push(word(kKeywords, static_cast<uint64_t>(PyDict_GET_SIZE(kwargs))));
  PyObject *key, *value;
  for (Py_ssize_t position = 0; PyDict_Next(kwargs, &position, &key, &value);)
    if (!add_key(key) || !add(value, 0)) return false;
  return true;
}

bool Flat::same_keys(PyObject *const *other) const {
  for (size_t i = 0; i < keys.size(); i++) {
    if (keys[i] == other[i]) continue;
    // Equal words have equal kinds of keys: exact str or int, whose comparison runs no Python code.
    const int equal = Py_TYPE(keys[i]) == Py_TYPE(other[i]) ? PyObject_RichCompareBool(keys[i], other[i], Py_EQ) : 0;
    if (equal < 0) PyErr_Clear();
    if (equal <= 0) return false;
  }
  return true;
}

}  // namespace mlirml
