// Taking call arguments apart into leaves, and a signature of words that decides which compiled program fits.
#pragma once

#include <cstdint>

#include "numpy_api.h"
#include "small_buffer.h"

namespace mlirml {

enum class Leaf : uint8_t { kArray = 1, kWeakBool, kWeakInt, kWeakFloat, kWeakComplex, kString, kOther };

// `words` says everything about the structure, dtypes, shapes and kinds of leaves; `keys` are the dict keys and
// keyword names in order. All references are borrowed from the arguments.
struct Flat {
  SmallBuffer<uint64_t, 128> words;
  SmallBuffer<PyObject *, 32> leaves;
  SmallBuffer<PyObject *, 16> keys;

  // Takes apart the arguments of a vectorcall. False if a container is too deep or has keys other than str and int.
  // Runs no Python code.
  bool flatten_call(PyObject *const *args, size_t positional, PyObject *keyword_names);

  // The same for an argument tuple and a keyword dict (or nullptr), with the same words.
  bool flatten_call(PyObject *args, PyObject *kwargs);

  // Are words and keys the same?
  bool same_keys(PyObject *const *other) const;

 private:
  bool add(PyObject *value, int depth);
  bool add_dict(PyObject *dict, int depth);
  bool add_object(PyObject *object, PyObject *names, int depth);
  bool add_named_tuple(PyObject *tuple, int depth);
  bool add_key(PyObject *key);
  void add_leaf(PyObject *value);
};

// From now on objects of exactly this class are containers of the items of their `__dict__` that `names`, a tuple, has,
// or named tuples of these fields.
// False if there are too many such classes.
bool declare_fields(PyTypeObject *type, PyObject *names);

// The names of the fields of an object, borrowed, or nullptr if its class is not declared.
PyObject *fields_of(PyObject *object);

// The kind of one leaf.
Leaf leaf_kind(PyObject *value);

// One number for each dtype that programs may take, whatever its C name is on this platform; -1 for other dtypes.
int canonical_type(int type_num);

// The canonical type of an array in native byte order or of a NumPy scalar; -1 for what programs do not take.
int array_type(PyArrayObject *array);
int scalar_type(PyObject *scalar);

// Fills the table of NumPy's scalar types.
void init_leaves();

}  // namespace mlirml
