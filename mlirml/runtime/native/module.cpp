// The Python module `mlirml.runtime._native`.
#define MLIRML_IMPORT_NUMPY
#include "numpy_api.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bind_devices.h"
#include "census.h"
#include "clock.h"
#include "dispatch.h"
#include "blas.h"
#include "lapack.h"
#include "leaves.h"
#include "lists.h"
#include "loader.h"
#include "memory.h"
#include "pool.h"
#include "program.h"
#include "sort.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

void require(bool done) {
  if (!done) throw nb::python_error();
}

mlirml::SortKeys numpy_sort(int type) {
  PyArray_Descr *descr = PyArray_DescrFromType(type);
  if (!descr) throw nb::python_error();
  PyArray_SortFunc *sort = PyDataType_GetArrFuncs(descr)->sort[NPY_QUICKSORT];
  Py_DECREF(descr);
  return sort;
}

void set_threads(int threads) {
  if (threads < 0) throw nb::value_error("the number of threads is negative");
  nb::gil_scoped_release release;  // a loop that runs must end first
  mlirml::pool_set_threads(threads);
}

void stop_threads() {
  nb::gil_scoped_release release;
  mlirml::pool_stop();
}

void bind_loader(nb::module_ &m) {
  nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
    try {
      std::rethrow_exception(pointer);
    } catch (const mlirml::BadObject &error) {
      PyErr_SetString(PyExc_ValueError, error.what());
    } catch (const mlirml::MissingSymbol &error) {
      PyErr_SetString(PyExc_LookupError, error.what());
    }
  });
  nb::class_<mlirml::Code>(m, "Code", "Machine code in memory; unmapped when the last reference goes.")
      .def("address", &mlirml::Code::address, "symbol"_a, "The address of a symbol; LookupError if it is not defined.")
      .def_prop_ro("size", &mlirml::Code::size, "Bytes mapped.")
      .def_prop_ro("polls", &mlirml::Code::polls, "Whether it asks for signals in its loops.");
  m.def(
      "load_object", [](nb::bytes object) { return new mlirml::Code({object.c_str(), object.size()}); }, "object"_a,
      "Place an ELF x86-64 relocatable object in memory; ValueError for a bad one, LookupError for a missing symbol.");
}

void start_kernel_record(int64_t kernels, int64_t capacity) {
  if (kernels < 0 || capacity < 0) throw nb::value_error("the size of a record is negative");
  mlirml::start_kernel_record(kernels, capacity);
}

nb::tuple end_kernel_record() {
  const mlirml::KernelRecord record = mlirml::end_kernel_record();
  nb::list totals, events;
  for (const mlirml::KernelTotals &each : record.totals) totals.append(nb::make_tuple(each.calls, each.nanoseconds));
  for (const mlirml::KernelEvent &each : record.events) {
    events.append(nb::make_tuple(each.kernel, each.begin, each.end));
  }
  return nb::make_tuple(totals, events);
}

void bind_clock(nb::module_ &m) {
  m.def("clock_nanoseconds", &mlirml::clock_nanoseconds, "The clock of kernel records.");
  m.def("start_kernel_record", &start_kernel_record, "kernels"_a, "capacity"_a,
        "Record the kernels of programs that this thread runs from now on, with this many events.");
  m.def("end_kernel_record", &end_kernel_record,
        "End the record: (calls, nanoseconds) of each kernel, and the first events (kernel, begin, end).");
}

void connect_mlir(nb::tuple addresses) {
  if (addresses.size() != mlirml::kMlirFunctions.size()) throw nb::value_error("one address a function of the C API");
  std::vector<uintptr_t> functions;
  for (nb::handle each : addresses) functions.push_back(nb::cast<uintptr_t>(each));
  mlirml::connect_mlir(functions);
}

nb::dict census(uintptr_t operation) {
  std::vector<std::string_view> attributes;
  nb::dict found;
  for (const auto &[name, count] : mlirml::take_census(reinterpret_cast<const void *>(operation), attributes)) {
    found[nb::str(name.data(), name.size())] = count;
  }
  for (std::string_view name : attributes) found[nb::str(("#" + std::string(name)).c_str())] = 1;
  return found;
}

bool has_captures(uintptr_t operation) { return mlirml::has_captures(reinterpret_cast<const void *>(operation)); }

void bind_census(nb::module_ &m) {
  nb::list names;
  for (const char *name : mlirml::kMlirFunctions) names.append(name);
  m.attr("MLIR_FUNCTIONS") = nb::tuple(names);
  m.def("connect_mlir", &connect_mlir, "functions"_a, "Have the next two use the functions at these addresses.");
  m.def("census", &census, "operation"_a,
        "The operations in the one at an address by name, and 1 for each name of an attribute after a '#'.");
  m.def("has_captures", &has_captures, "operation"_a,
        "Whether the regions of the operation at an address use values from outside that are no constants.");
}

}  // namespace

NB_MODULE(_native, m) {
  if (_import_array() < 0) throw nb::python_error();
#ifdef NDEBUG
  nb::set_leak_warnings(false);  // what other threads hold at the exit of the interpreter is no leak
#endif
  mlirml::init_leaves();
  mlirml::set_key_sorts(numpy_sort(NPY_INT32), numpy_sort(NPY_INT64));
  require(mlirml::init_memory());
  require(mlirml::init_program(m.ptr()));
  require(mlirml::init_dispatch(m.ptr()));
  bind_loader(m);
  bind_clock(m);
  bind_census(m);
  mlirml::bind_devices(m);
  m.def("set_threads", &set_threads, "threads"_a, "Cap the threads of parallel loops; 0 for every CPU of this process.");
  m.def("get_threads", &mlirml::pool_threads, "The number of threads that a parallel loop may use.");
  m.def("find_lapack", &mlirml::find_lapack, "path"_a,
        "Use the LAPACK that a shared object is linked to; False where it has none.");
  m.def("find_blas", &mlirml::find_blas, "path"_a,
        "Use the OpenBLAS that a shared object is linked to; False where it has none. `find_lapack` goes before.");
  m.def("worker_count", &mlirml::pool_workers, "Worker threads that live now.");
  m.def("cached_bytes", &mlirml::block_cached_bytes, "Bytes of freed results and workspaces kept for reuse.");
  m.def("release_cached", &mlirml::block_release_cached, "Give memory kept for reuse back to the system.");
  m.def(
      "number_leaves",
      [](nb::tuple args, nb::dict kwargs) { return nb::steal(mlirml::number_leaves(args.ptr(), kwargs.ptr())); },
      "args"_a, "kwargs"_a, "(args, kwargs) with each leaf replaced by the number a Dispatcher gives it, or None.");
  m.def(
      "pack_numbers",
      [](nb::list list, Py_ssize_t fewest) { return nb::steal(mlirml::pack_numbers(list.ptr(), fewest)); }, "list"_a,
      "fewest"_a, "The numbers of a list of at least `fewest`, or of lists of lists, as an array; None for other lists.");
  m.def(
      "declare_fields",
      [](nb::type_object type, nb::tuple names) {
        return mlirml::declare_fields(reinterpret_cast<PyTypeObject *>(type.ptr()), names.ptr());
      },
      "type"_a, "names"_a,
      "Let Dispatchers take apart objects of a class into these items of their __dict__; False for too many classes.");
  m.attr("parallel_for_address") = reinterpret_cast<uintptr_t>(&mlirml_parallel_for);
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&stop_threads));
}
