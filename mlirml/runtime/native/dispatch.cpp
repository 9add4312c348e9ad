// From a Python call to a compiled program without a Python frame: flatten, compare with the known signatures, run.
#include "dispatch.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/tuple.h>
#include <structmember.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "checks.h"
#include "guards.h"
#include "leaves.h"
#include "program.h"
#include "stores.h"

namespace nb = nanobind;

namespace mlirml {
namespace {

// How to build the result: a container, None, or the output with a number.
struct OutTree {
  enum Kind { kOutput, kNone, kTuple, kList, kDict } kind = kNone;
  size_t output = 0;
  std::vector<OutTree> children;
  std::vector<nb::object> keys;
};

struct StaticLeaf {
  size_t leaf;
  nb::object value;
};

struct Entry {
  size_t users = 1;  // the dispatcher's list and calls that run
  std::vector<uint64_t> words;
  std::vector<nb::object> keys;
  std::vector<StaticLeaf> statics;
  std::vector<Guard> guards;
  std::vector<size_t> order;  // leaf number of each input
  std::vector<Store> stores;  // in the order of their leaves
  nb::object program;
  OutTree tree;
  nb::object builder;  // called with the list of outputs, instead of `tree`
  nb::object explain;  // the exception for a check that failed, or None

  Program *native() const { return reinterpret_cast<Program *>(program.ptr()); }
};

using Leaves = std::vector<size_t>;

// The entries by a key of their words and static values. Which leaves are static depends on the words.
struct Table {
  std::unordered_map<uint64_t, std::vector<Entry *>> entries;  // of one key: the latest first
  std::unordered_map<uint64_t, std::vector<Leaves>> statics;   // by the hash of the words
  Entry *last = nullptr;                                        // that was found
  size_t count = 0;
};

struct Dispatcher {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject *miss;
  Table *table;
  bool takes_out;  // an argument `out`, which is none of the function's: arrays for the results
};

// The arguments of a call, and `out` apart.
struct Arguments {
  PyObject *const *values;
  PyObject *names;  // of the last ones, or null
  PyObject *out = nullptr;
  SmallBuffer<PyObject *, 16> rest;
  nb::object rest_names;

  Arguments(PyObject *const *args, size_t positional, PyObject *keywords, bool takes_out) : values(args), names(keywords) {
    const Py_ssize_t count = takes_out && names ? PyTuple_GET_SIZE(names) : 0;
    for (Py_ssize_t k = 0; k < count; k++)
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, k), "out") == 0) out = args[positional + static_cast<size_t>(k)];
    if (!out) return;
    if (count == 1) {
      names = nullptr;
      return;
    }
    rest_names = nb::steal(PyTuple_New(count - 1));
    if (!rest_names.is_valid()) throw std::bad_alloc();
    for (size_t i = 0; i < positional; i++) rest.push(args[i]);
    Py_ssize_t next = 0;
    for (Py_ssize_t k = 0; k < count; k++) {
      PyObject *name = PyTuple_GET_ITEM(names, k);
      if (PyUnicode_CompareWithASCIIString(name, "out") == 0) continue;
      rest.push(args[positional + static_cast<size_t>(k)]);
      PyTuple_SET_ITEM(rest_names.ptr(), next++, Py_NewRef(name));
    }
    values = rest.data();
    names = rest_names.ptr();
  }
};

void drop(Entry *entry) {
  if (--entry->users == 0) delete entry;
}

// A call's share in an entry: `clear` or another thread may drop it from the list meanwhile.
class EntryUse {
 public:
  explicit EntryUse(Entry *entry) : entry_(entry) { entry->users++; }
  ~EntryUse() { drop(entry_); }
  EntryUse(const EntryUse &) = delete;
  EntryUse &operator=(const EntryUse &) = delete;

 private:
  Entry *entry_;
};

// Exact types whose comparison runs no Python code are compared by value, floats by their bits; others by identity.
bool same_static(PyObject *a, PyObject *b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyFloat_CheckExact(a)) {
    const double x = PyFloat_AS_DOUBLE(a), y = PyFloat_AS_DOUBLE(b);
    return std::memcmp(&x, &y, sizeof x) == 0;
  }
  if (!PyLong_CheckExact(a) && !PyUnicode_CheckExact(a)) return false;
  const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
  if (equal < 0) PyErr_Clear();
  return equal > 0;
}

bool matches(const Entry &entry, const Flat &flat) {
  if (entry.words.size() != flat.words.size()) return false;
  if (std::memcmp(entry.words.data(), flat.words.data(), flat.words.size() * sizeof(uint64_t)) != 0) return false;
  static_assert(sizeof(nb::object) == sizeof(PyObject *), "an nb::object is one pointer");
  if (!flat.same_keys(reinterpret_cast<PyObject *const *>(entry.keys.data()))) return false;
  for (const StaticLeaf &leaf : entry.statics)
    if (!same_static(leaf.value.ptr(), flat.leaves[leaf.leaf])) return false;
  for (const Guard &guard : entry.guards)
    if (!guard.holds()) return false;
  return true;
}

uint64_t mixed(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

uint64_t hash_of_words(const uint64_t *words, size_t count) {
  uint64_t hash = count;
  for (size_t i = 0; i < count; i++) hash = mixed(hash, words[i]);
  return hash;
}

// Equal for values that `same_static` takes for the same; runs no Python code.
uint64_t hash_of_static(PyObject *value) {
  if (PyFloat_CheckExact(value)) {
    const double number = PyFloat_AS_DOUBLE(value);
    uint64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits;
  }
  if (!PyLong_CheckExact(value) && !PyUnicode_CheckExact(value)) return reinterpret_cast<uintptr_t>(value);
  const Py_hash_t hash = PyObject_Hash(value);
  if (hash == -1) PyErr_Clear();
  return static_cast<uint64_t>(hash);
}

uint64_t key_of(uint64_t hash, const Leaves &statics, const Flat &flat) {
  for (size_t leaf : statics) hash = mixed(hash, hash_of_static(flat.leaves[leaf]));
  return hash;
}

// Guards may run Python code that changes the table: what is found is looked up in it first.
Entry *find_with_key(Table &table, uint64_t key, const Flat &flat) {
  for (size_t i = 0;; i++) {
    const auto found = table.entries.find(key);
    if (found == table.entries.end() || i >= found->second.size()) return nullptr;
    Entry *entry = found->second[i];
    EntryUse use(entry);
    if (!matches(*entry, flat)) continue;
    const auto now = table.entries.find(key);
    const bool is_there = now != table.entries.end() && i < now->second.size() && now->second[i] == entry;
    return is_there ? entry : nullptr;
  }
}

Entry *find(Dispatcher *self, const Flat &flat) {
  Table &table = *self->table;
  if (Entry *last = table.last) {
    EntryUse use(last);
    if (matches(*last, flat)) return table.last == last ? last : nullptr;
  }
  const uint64_t hash = hash_of_words(flat.words.data(), flat.words.size());
  const auto statics = table.statics.find(hash);
  if (statics == table.statics.end()) return nullptr;
  SmallBuffer<uint64_t, 8> keys;
  for (const Leaves &leaves : statics->second)
    if (leaves.empty() || leaves.back() < flat.leaves.size()) keys.push(key_of(hash, leaves, flat));
  for (uint64_t key : keys)
    if (Entry *entry = find_with_key(table, key, flat)) return table.last = entry;
  return nullptr;
}

void insert_entry(Table &table, std::unique_ptr<Entry> entry, const Flat &flat) {
  Leaves leaves;
  for (const StaticLeaf &leaf : entry->statics) leaves.push_back(leaf.leaf);
  std::sort(leaves.begin(), leaves.end());
  const uint64_t hash = hash_of_words(flat.words.data(), flat.words.size());
  std::vector<Leaves> &known = table.statics[hash];
  if (std::find(known.begin(), known.end(), leaves) == known.end()) known.push_back(leaves);
  std::vector<Entry *> &same = table.entries[key_of(hash, leaves, flat)];
  same.insert(same.begin(), entry.get());
  table.last = entry.release();
  table.count++;
}

PyObject *build(const OutTree &tree, PyObject *const *outputs) {
  switch (tree.kind) {
    case OutTree::kOutput:
      return Py_NewRef(outputs[tree.output]);
    case OutTree::kNone:
      return Py_NewRef(Py_None);
    default:
      break;
  }
  const auto size = static_cast<Py_ssize_t>(tree.children.size());
  PyObject *result = tree.kind == OutTree::kTuple  ? PyTuple_New(size)
                     : tree.kind == OutTree::kList ? PyList_New(size)
                                                   : PyDict_New();
  for (Py_ssize_t i = 0; result && i < size; i++) {
    PyObject *child = build(tree.children[static_cast<size_t>(i)], outputs);
    if (child && tree.kind == OutTree::kTuple) {
      PyTuple_SET_ITEM(result, i, child);
    } else if (child && tree.kind == OutTree::kList) {
      PyList_SET_ITEM(result, i, child);
    } else {
      const bool failed = !child || PyDict_SetItem(result, tree.keys[static_cast<size_t>(i)].ptr(), child) < 0;
      Py_XDECREF(child);
      if (failed) Py_CLEAR(result);
    }
  }
  return result;
}

PyObject *call_builder(PyObject *builder, PyObject *const *outputs, size_t count) {
  nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(count)));
  if (!list.is_valid()) return nullptr;
  for (size_t i = 0; i < count; i++) PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(outputs[i]));
  return PyObject_CallOneArg(builder, list.ptr());
}

// Replaces the exception of a failed check by the one that users see. True if `explain` returned None instead: the call
// is to be repeated by `miss`.
bool explain_failure(PyObject *explain) {
  if (!explain || explain == Py_None || !is_failed_check()) return false;
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  nb::object error = nb::steal(PyObject_CallOneArg(explain, value));
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  if (error.is_valid() && error.ptr() != Py_None)
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
  return error.ptr() == Py_None;
}

// The arrays for the outputs, None for those that nobody gave; false if `miss` must find out.
bool give_outputs(const Entry &entry, PyObject *out, PyObject **outs) {
  const Program &program = *entry.native();
  if (entry.builder.is_valid() || !entry.stores.empty() || !program.writebacks.empty()) return false;
  std::fill_n(outs, program.outputs.size(), Py_None);
  const OutTree &tree = entry.tree;
  if (tree.kind == OutTree::kOutput) {
    outs[tree.output] = out;
    return true;
  }
  if (tree.kind != OutTree::kTuple || !PyTuple_CheckExact(out)) return false;
  if (static_cast<size_t>(PyTuple_GET_SIZE(out)) != tree.children.size()) return false;
  for (size_t i = 0; i < tree.children.size(); i++) {
    PyObject *&slot = outs[tree.children[i].output];
    if (tree.children[i].kind != OutTree::kOutput || slot != Py_None) return false;
    slot = PyTuple_GET_ITEM(out, static_cast<Py_ssize_t>(i));
    if (slot == Py_None) return false;
  }
  return true;
}

// `refused` says that the program does not take these arguments: it has not run, or has changed nothing.
PyObject *run_entry(Entry *entry, const Flat &flat, const Arguments &given, size_t count, bool &refused) {
  EntryUse use(entry);
  Slots slots(entry->stores);
  refused = !entry->stores.empty() && !slots.find(given.values, count);
  if (refused) return nullptr;
  Program *program = entry->native();
  SmallBuffer<PyObject *, 32> leaves;
  for (size_t leaf : entry->order) leaves.push(flat.leaves[leaf]);
  SmallBuffer<PyObject *, 16> buffer;
  const size_t made = program->outputs.size();
  buffer.reserve(made);
  PyObject **outputs = buffer.data();
  SmallBuffer<PyObject *, 16> outs;
  if (given.out) {
    outs.reserve(made);
    refused = !give_outputs(*entry, given.out, outs.data());
    if (refused) return nullptr;
  }
  bool entered = false;
  if (!run_program(program, leaves.data(), given.out ? outs.data() : nullptr, outputs, entered)) {
    refused = !entered && (PyErr_ExceptionMatches(PyExc_ValueError) || PyErr_ExceptionMatches(PyExc_OverflowError) ||
                           (given.out && PyErr_ExceptionMatches(PyExc_TypeError)));
    refused = explain_failure(entry->explain.ptr()) || refused;
    return nullptr;
  }
  if (!entry->builder.is_valid() && entry->tree.kind == OutTree::kOutput && made == 1 && entry->stores.empty())
    return outputs[0];
  PyObject *result = nullptr;
  if (slots.fill(outputs))
    result = entry->builder.is_valid() ? call_builder(entry->builder.ptr(), outputs, made) : build(entry->tree, outputs);
  for (size_t i = 0; i < made; i++) Py_DECREF(outputs[i]);
  return result;
}

PyObject *call_miss(Dispatcher *self, PyObject *const *args, size_t positional, PyObject *names) {
  if (!self->miss) {
    PyErr_SetString(PyExc_RuntimeError, "Dispatcher.__init__ was not called");
    return nullptr;
  }
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(positional)));
  nb::object kwargs = nb::steal(PyDict_New());
  if (!tuple.is_valid() || !kwargs.is_valid()) return nullptr;
  for (size_t i = 0; i < positional; i++) PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++)
    if (PyDict_SetItem(kwargs.ptr(), PyTuple_GET_ITEM(names, i), args[positional + static_cast<size_t>(i)]) < 0) return nullptr;
  nb::object miss = nb::borrow(self->miss);
  PyObject *arguments[] = {tuple.ptr(), kwargs.ptr()};
  return PyObject_Vectorcall(miss.ptr(), arguments, 2, nullptr);
}

PyObject *dispatcher_vectorcall(PyObject *object, PyObject *const *args, size_t nargsf, PyObject *names) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  const auto positional = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
  try {
    Flat flat;
    Entry *entry = nullptr;
    const Arguments given(args, positional, names, self->takes_out);
    if (self->table->count && flat.flatten_call(given.values, positional, given.names)) entry = find(self, flat);
    if (entry && entry->native()->remaining != 0) {
      bool refused = false;
      const size_t named = given.names ? static_cast<size_t>(PyTuple_GET_SIZE(given.names)) : 0;
      PyObject *result = run_entry(entry, flat, given, positional + named, refused);
      if (!refused) return result;
      PyErr_Clear();  // `miss` knows the names of the arguments
    }
  } catch (const std::bad_alloc &) {
    return PyErr_NoMemory();
  }
  return call_miss(self, args, positional, names);
}

OutTree parse_tree(nb::handle tree, size_t outputs) {
  OutTree result;
  if (tree.is_none()) return result;
  if (PyLong_CheckExact(tree.ptr())) {
    const auto index = nb::cast<int64_t>(tree);
    if (index < 0 || static_cast<size_t>(index) >= outputs) throw nb::value_error("out_tree: no such output");
    result.kind = OutTree::kOutput;
    result.output = static_cast<size_t>(index);
  } else if (PyDict_CheckExact(tree.ptr())) {
    result.kind = OutTree::kDict;
    for (auto [key, value] : nb::borrow<nb::dict>(tree)) {
      result.keys.push_back(nb::borrow(key));
      result.children.push_back(parse_tree(value, outputs));
    }
  } else if (PyTuple_CheckExact(tree.ptr()) || PyList_CheckExact(tree.ptr())) {
    result.kind = PyTuple_CheckExact(tree.ptr()) ? OutTree::kTuple : OutTree::kList;
    for (nb::handle child : tree) result.children.push_back(parse_tree(child, outputs));
  } else {
    throw nb::type_error("out_tree: not a tuple, list, dict, None, output number or callable");
  }
  return result;
}

std::vector<size_t> parse_leaf_numbers(nb::handle numbers, size_t count, const char *error) {
  std::vector<size_t> result;
  for (nb::handle number : numbers) {
    const auto leaf = nb::cast<int64_t>(number);
    if (leaf < 0 || static_cast<size_t>(leaf) >= count) throw nb::value_error(error);
    result.push_back(static_cast<size_t>(leaf));
  }
  return result;
}

// Fills the entry from example arguments; false if a leaf that is not static cannot be recognised again.
bool fill_entry(Entry &entry, const Flat &flat, nb::handle order, nb::handle statics) {
  std::vector<bool> is_static(flat.leaves.size());
  for (size_t leaf : parse_leaf_numbers(statics, flat.leaves.size(), "statics: no such leaf")) {
    is_static[leaf] = true;
    entry.statics.push_back({leaf, nb::borrow(flat.leaves[leaf])});
  }
  for (size_t i = 0; i < flat.leaves.size(); i++) {
    const Leaf kind = leaf_kind(flat.leaves[i]);
    if ((kind == Leaf::kOther || kind == Leaf::kString) && !is_static[i]) return false;
  }
  if (order.is_none()) {
    for (size_t i = 0; i < flat.leaves.size(); i++)
      if (!is_static[i]) entry.order.push_back(i);
  } else {
    entry.order = parse_leaf_numbers(order, flat.leaves.size(), "order: no such leaf");
  }
  entry.words.assign(flat.words.begin(), flat.words.end());
  for (PyObject *key : flat.keys) entry.keys.push_back(nb::borrow(key));
  return true;
}

std::vector<Store> parse_stores(nb::handle stores, size_t leaves, size_t outputs) {
  std::vector<Store> result;
  for (nb::handle one : stores) {
    const auto [leaf, output, form] = nb::cast<std::tuple<size_t, size_t, int>>(one);
    if (leaf >= leaves || output >= outputs) throw nb::value_error("stores: no such leaf or output");
    if (form < Store::kArray || form > Store::kScalar) throw nb::value_error("stores: no such form");
    if (!result.empty() && result.back().leaf >= leaf) throw nb::value_error("stores: not in the order of leaves");
    result.push_back({leaf, output, static_cast<Store::Form>(form)});
  }
  return result;
}

// Throws nb::python_error if the program cannot take the example.
void check_program(const Entry &entry, const Flat &flat) {
  const std::vector<Input> &inputs = entry.native()->inputs;
  if (entry.order.size() != inputs.size()) throw nb::value_error("the program does not take as many inputs as there are leaves");
  for (size_t i = 0; i < inputs.size(); i++)
    if (!check_input(inputs[i], flat.leaves[entry.order[i]], i)) throw nb::python_error();
}

bool add_entry(Dispatcher *self, nb::handle args, nb::handle kwargs, nb::handle program, nb::handle out_tree,
               nb::handle order, nb::handle statics, nb::handle guards, nb::handle explain, nb::handle stores) {
  Flat flat;
  if (!flat.flatten_call(args.ptr(), kwargs.is_none() ? nullptr : kwargs.ptr())) return false;
  auto entry = std::make_unique<Entry>();
  if (!fill_entry(*entry, flat, order, statics)) return false;
  entry->guards = parse_guards(guards);
  entry->program = nb::borrow(program);
  entry->explain = nb::borrow(explain);
  if (PyCallable_Check(out_tree.ptr()))
    entry->builder = nb::borrow(out_tree);
  else
    entry->tree = parse_tree(out_tree, entry->native()->outputs.size());
  entry->stores = parse_stores(stores, flat.leaves.size(), entry->native()->outputs.size());
  check_program(*entry, flat);
  insert_entry(*self->table, std::move(entry), flat);
  return true;
}

// Runs `body`, whose C++ exceptions become Python's.
template <class Body>
PyObject *guarded(Body body) {
  try {
    return body();
  } catch (nb::python_error &error) {
    error.restore();
  } catch (const nb::builtin_exception &error) {
    PyErr_SetString(error.type() == nb::exception_type::type_error ? PyExc_TypeError : PyExc_ValueError, error.what());
  } catch (const std::bad_alloc &) {
    PyErr_NoMemory();
  } catch (const std::exception &error) {
    PyErr_Format(PyExc_TypeError, "Dispatcher: %s", error.what());
  }
  return nullptr;
}

PyObject *dispatcher_add(PyObject *object, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"example_args", "example_kwargs", "program", "out_tree", "order",
                                "statics",      "guards",         "explain", "stores",   nullptr};
  PyObject *example, *named, *program, *out_tree, *order = Py_None, *statics = nullptr, *guards = nullptr,
                                                  *explain = Py_None, *stores = nullptr;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!OO!O|OOOOO:add", const_cast<char **>(names), &PyTuple_Type, &example,
                                   &named, program_type, &program, &out_tree, &order, &statics, &guards, &explain,
                                   &stores))
    return nullptr;
  if (named != Py_None && !PyDict_CheckExact(named)) {
    PyErr_SetString(PyExc_TypeError, "example_kwargs is a dict or None");
    return nullptr;
  }
  return guarded([&] {
    nb::object none = nb::make_tuple();
    return PyBool_FromLong(add_entry(reinterpret_cast<Dispatcher *>(object), example, named, program, out_tree, order,
                                     statics ? nb::handle(statics) : nb::handle(none),
                                     guards ? nb::handle(guards) : nb::handle(none), explain,
                                     stores ? nb::handle(stores) : nb::handle(none)));
  });
}

PyObject *dispatcher_find(PyObject *object, PyObject *args) {
  PyObject *example, *named = nullptr;
  if (!PyArg_ParseTuple(args, "O!|O!:find", &PyTuple_Type, &example, &PyDict_Type, &named)) return nullptr;
  return guarded([&]() -> PyObject * {
    Flat flat;
    Entry *entry = nullptr;
    if (flat.flatten_call(example, named)) entry = find(reinterpret_cast<Dispatcher *>(object), flat);
    return Py_NewRef(entry ? entry->program.ptr() : Py_None);
  });
}

void clear_entries(Dispatcher *self) {
  Table old;
  std::swap(old, *self->table);  // dropping may run Python code, which must find a whole table
  for (auto &[key, entries] : old.entries)
    for (Entry *entry : entries) drop(entry);
}

PyObject *dispatcher_clear_entries(PyObject *object, PyObject *) {
  clear_entries(reinterpret_cast<Dispatcher *>(object));
  Py_RETURN_NONE;
}

PyObject *dispatcher_entries(PyObject *object, void *) {
  return PyLong_FromSize_t(reinterpret_cast<Dispatcher *>(object)->table->count);
}

PyObject *dispatcher_new(PyTypeObject *type, PyObject *, PyObject *) {
  auto *self = reinterpret_cast<Dispatcher *>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = dispatcher_vectorcall;
  self->table = new (std::nothrow) Table;
  if (!self->table) {
    Py_DECREF(self);
    return PyErr_NoMemory();
  }
  return reinterpret_cast<PyObject *>(self);
}

int dispatcher_init(PyObject *object, PyObject *args, PyObject *kwargs) {
  static const char *names[] = {"miss", "takes_out", nullptr};
  PyObject *miss;
  int takes_out = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|p:Dispatcher", const_cast<char **>(names), &miss, &takes_out))
    return -1;
  Py_XSETREF(reinterpret_cast<Dispatcher *>(object)->miss, Py_NewRef(miss));
  reinterpret_cast<Dispatcher *>(object)->takes_out = takes_out != 0;
  return 0;
}

int traverse_tree(const OutTree &tree, visitproc visit, void *arg) {
  for (const nb::object &key : tree.keys) Py_VISIT(key.ptr());
  for (const OutTree &child : tree.children)
    if (int stop = traverse_tree(child, visit, arg)) return stop;
  return 0;
}

int traverse_entry(const Entry &entry, visitproc visit, void *arg) {
  Py_VISIT(entry.program.ptr());
  Py_VISIT(entry.builder.ptr());
  Py_VISIT(entry.explain.ptr());
  for (const StaticLeaf &leaf : entry.statics) Py_VISIT(leaf.value.ptr());
  for (const Guard &guard : entry.guards) {
    Py_VISIT(guard.holder.ptr());
    Py_VISIT(guard.name.ptr());
    Py_VISIT(guard.value.ptr());
  }
  return traverse_tree(entry.tree, visit, arg);
}

int dispatcher_traverse(PyObject *object, visitproc visit, void *arg) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_VISIT(Py_TYPE(object));
  Py_VISIT(self->miss);
  if (!self->table) return 0;
  for (const auto &[key, entries] : self->table->entries)
    for (const Entry *entry : entries) {
      // A running call holds its entry's objects too, which the collector would otherwise count as garbage.
      if (entry->users != 1) continue;
      if (int stop = traverse_entry(*entry, visit, arg)) return stop;
    }
  return 0;
}

int dispatcher_gc_clear(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  Py_CLEAR(self->miss);
  if (self->table) clear_entries(self);
  return 0;
}

void dispatcher_dealloc(PyObject *object) {
  auto *self = reinterpret_cast<Dispatcher *>(object);
  PyTypeObject *type = Py_TYPE(object);
  PyObject_GC_UnTrack(object);
  dispatcher_gc_clear(object);
  delete self->table;
  type->tp_free(object);
  Py_DECREF(type);
}

PyMethodDef methods[] = {
    {"add", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(dispatcher_add)), METH_VARARGS | METH_KEYWORDS,
     "Make calls like the example run the program; False if they cannot be recognised natively."},
    {"find", dispatcher_find, METH_VARARGS, "The program that these arguments would run, or None."},
    {"clear", dispatcher_clear_entries, METH_NOARGS, "Forget all programs."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef properties[] = {{"entries", dispatcher_entries, nullptr, "The number of known signatures.", nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(Dispatcher, vectorcall), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};

PyDoc_STRVAR(dispatcher_doc,
             "Dispatcher(miss, takes_out=False)\n--\n\n"
             "A callable that runs the program of a known signature, or `miss(args, kwargs)`; with `takes_out` an array, or\n"
             "a tuple of them, that is passed as `out` gets the result.");

PyObject *number(PyObject *value, Py_ssize_t &next);

PyObject *number_items(PyObject *sequence, bool tuple, Py_ssize_t &next) {
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  nb::object result = nb::steal(tuple ? PyTuple_New(size) : PyList_New(size));
  for (Py_ssize_t i = 0; result.is_valid() && i < size; i++) {
    PyObject *item = number(PySequence_Fast_GET_ITEM(sequence, i), next);
    if (!item) return nullptr;
    if (tuple) PyTuple_SET_ITEM(result.ptr(), i, item);
    else PyList_SET_ITEM(result.ptr(), i, item);
  }
  return result.release().ptr();
}

// An object of the same class with numbers in the place of its fields; no code of the class runs.
PyObject *number_object(PyObject *object, PyObject *names, Py_ssize_t &next) {
  nb::object nothing = nb::steal(PyTuple_New(0)), dict = nb::steal(PyObject_GenericGetDict(object, nullptr));
  if (!nothing.is_valid() || !dict.is_valid()) return nullptr;
  nb::object result = nb::steal(PyBaseObject_Type.tp_new(Py_TYPE(object), nothing.ptr(), nullptr));
  for (Py_ssize_t i = 0; result.is_valid() && i < PyTuple_GET_SIZE(names); i++) {
    PyObject *name = PyTuple_GET_ITEM(names, i);
    PyObject *value = PyDict_GetItemWithError(dict.ptr(), name);
    nb::object numbered = nb::steal(value ? number(value, next) : nullptr);
    if (!numbered.is_valid() || PyObject_GenericSetAttr(result.ptr(), name, numbered.ptr()) < 0) return nullptr;
  }
  return result.release().ptr();
}

PyObject *number(PyObject *value, Py_ssize_t &next) {
  if (value == Py_None) return Py_NewRef(Py_None);
  if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) return number_items(value, PyTuple_CheckExact(value), next);
  if (!PyDict_CheckExact(value)) {
    PyObject *names = fields_of(value);
    if (names && PyTuple_Check(value)) return number_items(value, true, next);  // in its order, which is all that counts
    return names ? number_object(value, names, next) : PyLong_FromSsize_t(next++);
  }
  nb::object result = nb::steal(PyDict_New());
  PyObject *key, *item;
  for (Py_ssize_t position = 0; result.is_valid() && PyDict_Next(value, &position, &key, &item);) {
    nb::object numbered = nb::steal(number(item, next));
    if (!numbered.is_valid() || PyDict_SetItem(result.ptr(), key, numbered.ptr()) < 0) return nullptr;
  }
  return result.release().ptr();
}

}  // namespace

PyObject *number_leaves(PyObject *args, PyObject *kwargs) {
  Flat flat;
  if (!flat.flatten_call(args, kwargs)) Py_RETURN_NONE;
  Py_ssize_t next = 0;
  nb::object numbered_args = nb::steal(number(args, next));
  if (!numbered_args.is_valid()) return nullptr;
  nb::object numbered_kwargs = nb::steal(kwargs ? number(kwargs, next) : PyDict_New());
  if (!numbered_kwargs.is_valid()) return nullptr;
  return PyTuple_Pack(2, numbered_args.ptr(), numbered_kwargs.ptr());
}

bool init_dispatch(PyObject *module) {
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void *>(dispatcher_new)},
                                {Py_tp_init, reinterpret_cast<void *>(dispatcher_init)},
                                {Py_tp_dealloc, reinterpret_cast<void *>(dispatcher_dealloc)},
                                {Py_tp_traverse, reinterpret_cast<void *>(dispatcher_traverse)},
                                {Py_tp_clear, reinterpret_cast<void *>(dispatcher_gc_clear)},
                                {Py_tp_call, reinterpret_cast<void *>(PyVectorcall_Call)},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {Py_tp_members, members},
                                {Py_tp_doc, const_cast<char *>(dispatcher_doc)},
                                {0, nullptr}};
  static PyType_Spec spec = {"mlirml.runtime._native.Dispatcher", sizeof(Dispatcher), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL, slots};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  return type.is_valid() && PyModule_AddObjectRef(module, "Dispatcher", type.ptr()) == 0;
}

}  // namespace mlirml
