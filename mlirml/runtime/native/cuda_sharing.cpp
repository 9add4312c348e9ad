// Both ways follow the rules for streams of the array API standard: who gives memory makes the stream of who takes it
// wait for the work so far. Memory that comes back waits the other way round, before it is used again.
#include "cuda_sharing.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "cuda_device.h"
#include "dlpack_abi.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace mlirml {
namespace {

// What keeps memory alive that another library uses.
struct Lent {
  std::shared_ptr<CudaDevice> device;
  nb::object owner;
  std::vector<int64_t> shape;
  std::optional<uint64_t> stream;
  union {
    dlpack::OldManaged old;
    dlpack::Managed managed;
  };
};

void give_back(Lent *lent) {
  if (lent->stream) lent->device->wait_for(*lent->stream);
  if (!Py_IsInitialized()) return;  // the interpreter is gone, and the memory with it
  nb::gil_scoped_acquire acquire;
  delete lent;
}

template <typename Kind>
void drop_unused(PyObject *capsule, const char *name) {
  if (!PyCapsule_IsValid(capsule, name)) return;  // somebody took it
  auto *managed = static_cast<Kind *>(PyCapsule_GetPointer(capsule, name));
  if (managed->deleter) managed->deleter(managed);
}

nb::object lend(std::shared_ptr<CudaDevice> device, uint64_t address, std::vector<int64_t> shape,
                std::tuple<int, int> dtype, nb::object owner, std::optional<uint64_t> stream, bool versioned) {
  if (stream) device->make_wait(*stream);
  auto *lent = new Lent{device, std::move(owner), std::move(shape), stream, {}};
  const auto [code, bits] = dtype;
  const dlpack::Tensor tensor = {reinterpret_cast<void *>(address),
                                 {dlpack::kCuda, device->index()},
                                 static_cast<int32_t>(lent->shape.size()),
                                 {static_cast<uint8_t>(code), static_cast<uint8_t>(bits), 1},
                                 lent->shape.data(),
                                 nullptr,
                                 0};
  if (versioned) {
    lent->managed = {{1, 0}, lent, [](dlpack::Managed *m) { give_back(static_cast<Lent *>(m->context)); }, 0, tensor};
    return nb::steal(PyCapsule_New(&lent->managed, dlpack::kName,
                                   [](PyObject *c) { drop_unused<dlpack::Managed>(c, dlpack::kName); }));
  }
  lent->old = {tensor, lent, [](dlpack::OldManaged *m) { give_back(static_cast<Lent *>(m->context)); }};
  return nb::steal(PyCapsule_New(&lent->old, dlpack::kOldName,
                                 [](PyObject *c) { drop_unused<dlpack::OldManaged>(c, dlpack::kOldName); }));
}

// Memory of another library; given back when the work on it is done.
struct Borrowed {
  std::shared_ptr<CudaDevice> device;
  dlpack::OldManaged *old = nullptr;
  dlpack::Managed *managed = nullptr;

  Borrowed() = default;
  Borrowed(const Borrowed &) = delete;
  Borrowed &operator=(const Borrowed &) = delete;
  ~Borrowed() {
    {
      nb::gil_scoped_release release;
      device->finish();
      if (old || managed) device->give_back(address(), bytes());
    }
    if (old && old->deleter) old->deleter(old);
    if (managed && managed->deleter) managed->deleter(managed);
  }
  const dlpack::Tensor &tensor() const { return old ? old->tensor : managed->tensor; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(tensor().data) + tensor().byte_offset; }
  uint64_t bytes() const {
    uint64_t size = (uint64_t{tensor().dtype.bits} * tensor().dtype.lanes + 7) / 8;
    for (int i = 0; i < tensor().ndim; i++) size *= static_cast<uint64_t>(tensor().shape[i]);
    return size;
  }
};

Borrowed *borrow(std::shared_ptr<CudaDevice> device, nb::handle capsule) {
  auto borrowed = std::make_unique<Borrowed>();
  borrowed->device = std::move(device);
  if (PyCapsule_IsValid(capsule.ptr(), dlpack::kName)) {
    auto *found = static_cast<dlpack::Managed *>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kName));
    if (found->version.major != 1) throw nb::value_error("the capsule is of another version of DLPack");
    borrowed->managed = found;
    PyCapsule_SetName(capsule.ptr(), dlpack::kUsed);
  } else if (PyCapsule_IsValid(capsule.ptr(), dlpack::kOldName)) {
    borrowed->old = static_cast<dlpack::OldManaged *>(PyCapsule_GetPointer(capsule.ptr(), dlpack::kOldName));
    PyCapsule_SetName(capsule.ptr(), dlpack::kOldUsed);
  } else {
    throw nb::type_error("not a DLPack capsule, or one that was used already");
  }
  {
    nb::gil_scoped_release release;
    borrowed->device->follow();
    borrowed->device->take(borrowed->address(), borrowed->bytes());
  }
  return borrowed.release();
}

bool is_dense(const dlpack::Tensor &tensor) {
  int64_t expected = 1;
  if (!tensor.strides) return true;
  for (int i = tensor.ndim - 1; i >= 0; i--) {
    if (tensor.shape[i] == 0) return true;
    if (tensor.shape[i] != 1 && tensor.strides[i] != expected) return false;
    expected *= tensor.shape[i];
  }
  return true;
}

}  // namespace

void bind_sharing(nb::module_ &m, nb::class_<CudaDevice> &device) {
  nb::class_<Borrowed>(m, "BorrowedMemory", "Memory of another library, which gets it back with this object.")
      .def_prop_ro("address", &Borrowed::address)
      .def_prop_ro("shape",
                   [](const Borrowed &b) { return std::vector<int64_t>(b.tensor().shape, b.tensor().shape + b.tensor().ndim); })
      .def_prop_ro("dtype", [](const Borrowed &b) { return std::tuple(b.tensor().dtype.code, b.tensor().dtype.bits); })
      .def_prop_ro("lanes", [](const Borrowed &b) { return b.tensor().dtype.lanes; })
      .def_prop_ro("dense", [](const Borrowed &b) { return is_dense(b.tensor()); })
      .def_prop_ro("read_only", [](const Borrowed &b) { return b.managed && (b.managed->flags & dlpack::kReadOnly); });
  device.def_prop_ro("stream", &CudaDevice::stream, "The stream of all work, as a number.")
      .def("lend", &lend, "address"_a, "shape"_a, "dtype"_a, "owner"_a, "stream"_a.none(), "versioned"_a,
           "A DLPack capsule of memory; `stream` waits for the work so far, where given.")
      .def("borrow", &borrow, "capsule"_a, "The memory of a DLPack capsule, whose maker has made `stream` wait.");
}

}  // namespace mlirml
