#include "bind_devices.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "checks.h"
#include "cuda_device.h"
#include "cuda_sharing.h"
#include "host.h"
#include "numpy_api.h"
#include "wgpu_device.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace mlirml {
namespace {

using Bytes = nb::ndarray<uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ReadOnlyBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void raise(const char *name, const char *message, const char *help) {
  nb::object type = nb::module_::import_("mlirml.errors").attr(name);
  nb::object error = help ? type(message, "help"_a = help) : type(message);
  PyErr_SetObject(type.ptr(), error.ptr());
}

std::vector<KernelEntry> entries_of(const nb::list &entries) {
  std::vector<KernelEntry> found;
  for (nb::handle item : entries) {
    const auto parts = nb::cast<nb::tuple>(item);
    found.push_back({nb::cast<std::string>(parts[0]), nb::cast<std::vector<uint32_t>>(parts[1]), {}});
    if (parts.size() > 2) {
      const auto image = nb::cast<nb::bytes>(parts[2]);
      found.back().image.assign(image.c_str(), image.size());
    }
    if (parts.size() > 3) found.back().accesses = nb::cast<std::vector<int64_t>>(parts[3]);
  }
  return found;
}

nb::dict limits_of(const WgpuDevice &device) {
  nb::dict found;
  found["storage_buffers"] = device.limits.storage_buffers;
  found["binding_bytes"] = device.limits.storage_binding_bytes;
  found["buffer_bytes"] = device.limits.buffer_bytes;
  found["workgroup_bytes"] = device.limits.workgroup_bytes;
  found["workgroup_threads"] = device.limits.workgroup_threads;
  found["workgroups"] = device.limits.workgroups;
  found["offset_alignment"] = device.limits.storage_alignment;
  found["subgroup_min"] = device.subgroup_min;
  found["subgroup_max"] = device.subgroup_max;
  return found;
}

template <typename Held, typename Module>
void run(Held &device, uintptr_t entry, const std::vector<uint64_t> &pointers, Module *module, bool waits,
         nb::object host, bool graphs, uint32_t streams) {
  const HostScope scope(host.is_none() ? nullptr : host.ptr());
  std::vector<void *> values;
  for (uint64_t pointer : pointers) values.push_back(reinterpret_cast<void *>(pointer));
  {
    nb::gil_scoped_release release;
    device.run(reinterpret_cast<void (*)(void **)>(entry), values, module, {waits, graphs, streams});
  }
  const std::string warning = device.take_warning();
  if (raise_host_error()) {
    forget_failed_check();
    throw nb::python_error();
  }
  if (raise_failed_check()) throw nb::python_error();
  if (!warning.empty() && PyErr_WarnEx(PyExc_RuntimeWarning, warning.c_str(), 1)) throw nb::python_error();
}

// What all devices have.
template <typename Held, typename Module, typename Library, typename Index>
nb::class_<Held> bind_device(nb::module_ &m, const char *name, const char *module_name, const char *about) {
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<Module>(m, module_name, "Kernels that are loaded on a device.");
  return nb::class_<Held>(m, name, about)
      .def(nb::init<std::shared_ptr<Library>, Index>(), "library"_a, "index"_a, unlocked)
      .def_ro("name", &Held::name)
      .def_ro("launches", &Held::launches)
      .def_ro("bytes_in", &Held::bytes_in)
      .def_ro("bytes_out", &Held::bytes_out)
      .def("alloc", &Held::alloc, "nbytes"_a, unlocked)
      .def("free", &Held::free, "address"_a, unlocked)
      .def("copy", &Held::copy, "target"_a, "source"_a, "nbytes"_a, unlocked)
      .def("mark", &Held::mark, unlocked)
      .def(
          "wait",
          [](Held &device, uint64_t mark, nb::object timeout) {
            const double seconds = timeout.is_none() ? -1.0 : std::max(0.0, nb::cast<double>(timeout));
            nb::gil_scoped_release release;
            return device.wait(mark, seconds);
          },
          "mark"_a, "timeout"_a = nb::none())
      .def(
          "load",
          [](std::shared_ptr<Held> device, nb::bytes code, nb::list entries, nb::bytes cubin) {
            const std::vector<KernelEntry> found = entries_of(entries);
            auto module = std::make_unique<Module>();
            module->device = device;
            nb::gil_scoped_release release;
            device->load({code.c_str(), code.size()}, {cubin.c_str(), cubin.size()}, found, *module);
            return module.release();
          },
          "code"_a, "entries"_a, "cubin"_a = nb::bytes("", 0), "Load code with its kernels, each a name and the bytes of its arguments, 0 for buffers, and on CUDA devices a "
          "third item where it has an image of its own, with the symbol `kernel`, "
          "and a fourth one that says how it uses its arguments: 0 for a number, four times the bytes of an array with 1 "
          "added where it is read and 2 where it is written, -1 for an array of which nothing is known. CUDA devices take the `cubin` in place of the code where it is for them.")
      .def("run", &run<Held, Module>, "entry"_a, "pointers"_a, "module"_a.none(), "waits"_a = false,
           "host"_a = nb::none(), "graphs"_a = true, "streams"_a = 1,
           "Run host code at an address, with its pointers; `waits` for each kernel, to tell which one fails. `host` is "
           "what it calls in Python. CUDA devices get many launches as `graphs`, and run up to `streams` side by side.");
}

// Copies; with `After`, a mark, those that may be made beside kernels behind the work up to it.
template <typename... After, typename Held, typename... Extra>
void bind_copies(nb::class_<Held> &device, const Extra &...extra) {
  device
      .def(
          "copy_in",
          [](Held &held, uint64_t address, ReadOnlyBytes source, After... after) {
            nb::gil_scoped_release release;
            held.copy_in(address, source.data(), source.size(), after...);
          },
          "address"_a, "source"_a, extra...)
      .def(
          "copy_out",
          [](Held &held, Bytes target, uint64_t address, After... after) {
            nb::gil_scoped_release release;
            held.copy_out(target.data(), address, target.size(), after...);
          },
          "target"_a, "address"_a, extra...);
}

}  // namespace

void bind_devices(nb::module_ &m) {
  nb::register_exception_translator([](const std::exception_ptr &pointer, void *) {
    try {
      std::rethrow_exception(pointer);
    } catch (const NoDevice &error) {
      raise("TargetError", error.what(), error.help.c_str());
    } catch (const DeviceError &error) {
      raise("LaunchError", error.what(), error.help.empty() ? nullptr : error.help.c_str());
    }
  });
  const auto unlocked = nb::call_guard<nb::gil_scoped_release>();
  nb::class_<WgpuLibrary>(m, "WgpuLibrary", "wgpu-native, opened by its path; TargetError where it cannot be.")
      .def(nb::init<const std::string &, uint64_t>(), "path"_a, "backend"_a = 1, unlocked)
      .def_prop_ro("count", &WgpuLibrary::count, "The number of devices of the backend: 1 is Vulkan, 4 Metal.");
  auto vulkan = bind_device<WgpuDevice, WgpuModule, WgpuLibrary, size_t>(m, "WgpuDevice", "WgpuModule", "An open Vulkan device.");
  bind_copies(vulkan);
  vulkan.def_ro("driver", &WgpuDevice::driver)
      .def_ro("features", &WgpuDevice::features)
      .def_prop_ro("emulated", [](const WgpuDevice &device) { return device.kind == 3; })
      .def_prop_ro("limits", &limits_of)
      .def_ro("submissions", &WgpuDevice::submissions)
      .def("lose", &WgpuDevice::lose, unlocked);
  nb::class_<CudaLibrary>(m, "CudaLibrary", "NVIDIA's driver, opened by the name of its library; TargetError where it cannot be.")
      .def(nb::init<const std::string &>(), "path"_a, unlocked)
      .def_prop_ro("count", &CudaLibrary::count, "The number of CUDA devices.")
      .def_prop_ro("version", &CudaLibrary::version, "The version of CUDA that the driver is for, 13000 for 13.0.");
  auto cuda = bind_device<CudaDevice, CudaModule, CudaLibrary, int>(m, "CudaDevice", "CudaModule", "An open CUDA device.");
  bind_copies<std::optional<uint64_t>>(cuda, "after"_a = nb::none());
  cuda.def_ro("memory", &CudaDevice::memory)
      .def_ro("cubins", &CudaDevice::cubins, "How often code for the processor was loaded in place of PTX.")
      .def_ro("graphs", &CudaDevice::graphs, "How often a graph was launched.")
      .def_rw("graph_commands", &CudaDevice::graph_commands, "Fewer launches and copies in a row are no graph.")
      .def_rw("side_bytes", &CudaDevice::side_bytes, "Kernels that move fewer bytes are not launched side by side.")
      .def("attribute", &CudaDevice::attribute, "number"_a, "A `CUdevice_attribute` by its number.");
  bind_sharing(m, cuda);
}

}  // namespace mlirml
