// Blocks come in size classes, eight to a power of two. The GIL guards the free lists; a fork therefore never
// finds them half changed. Each block knows its class, so that nothing rests on the size NumPy passes when it frees.
#include "memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace mlirml {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallest = 1024;  // below it NumPy's own cache of small blocks is as good
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = size_t{4} << 20;
constexpr int kClasses = 8 * 64;

struct alignas(kAlignment) Header {
  size_t capacity;
  int size_class;
};
static_assert(sizeof(Header) == kAlignment, "the payload stays aligned");

struct Cache {
  std::vector<Header *> free[kClasses];
  size_t bytes = 0, limit = 0;
};

// Never destroyed: arrays may be freed after static destructors have run.
Cache &cache() {
  static Cache *const instance = new Cache;
  return *instance;
}

PyObject *handler_capsule = nullptr;

// The class of the smallest capacity 2^k * (8 + m) / 8 that holds `size`.
int class_of(size_t size, size_t &capacity) {
  size = std::max(size, kSmallest);
  const int power = 63 - __builtin_clzll(size - 1 ? size - 1 : 1);  // 2^power < size <= 2^(power + 1)
  const size_t step = size_t{1} << (power - 3);
  const size_t steps = (size - (size_t{1} << power) + step - 1) / step;
  capacity = (size_t{1} << power) + steps * step;
  return power * 8 + static_cast<int>(steps) - 1;
}

size_t cache_limit() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const size_t physical = pages > 0 && page > 0 ? static_cast<size_t>(pages) * static_cast<size_t>(page) : 0;
  return std::min(physical / 16, size_t{512} << 20);
}

Header *header_of(void *block) { return reinterpret_cast<Header *>(static_cast<char *>(block) - sizeof(Header)); }

void *allocate(void *, size_t size) { return block_allocate(size); }

void *allocate_zeroed(void *, size_t count, size_t size) {
  if (size && count > SIZE_MAX / size) return nullptr;
  void *block = block_allocate(count * size);
  if (block) std::memset(block, 0, count * size);
  return block;
}

void *reallocate(void *, void *block, size_t size) {
  void *grown = block_allocate(size);
  if (grown && block) {
    std::memcpy(grown, block, std::min(size, header_of(block)->capacity));
    block_free(block);
  }
  return grown;
}

void release(void *, void *block, size_t) { block_free(block); }

PyDataMem_Handler handler = {"mlirml", 1, {nullptr, allocate, allocate_zeroed, reallocate, release}};

}  // namespace

void *block_allocate(size_t size) {
  if (size > SIZE_MAX / 4) return nullptr;
  size_t capacity;
  const int size_class = class_of(size, capacity);
  Cache &blocks = cache();
  std::vector<Header *> &free = blocks.free[size_class];
  if (!free.empty()) {
    Header *header = free.back();
    free.pop_back();
    blocks.bytes -= capacity;
    return header + 1;
  }
  const bool huge = capacity >= kHugeFrom;
  void *memory = nullptr;
  if (posix_memalign(&memory, huge ? kHugePage : kAlignment, capacity + sizeof(Header)) != 0) {
    block_release_cached();
    if (posix_memalign(&memory, kAlignment, capacity + sizeof(Header)) != 0) return nullptr;
  }
  if (huge) madvise(memory, (capacity + sizeof(Header)) & ~(kHugePage - 1), MADV_HUGEPAGE);
  Header *header = new (memory) Header{capacity, size_class};
  return header + 1;
}

void block_free(void *block) {
  if (!block) return;
  Header *header = header_of(block);
  Cache &blocks = cache();
  if (!blocks.limit) blocks.limit = cache_limit();
  // Sizes in use change over time: a full cache starts anew rather than keep what nobody asks for.
  if (blocks.bytes + header->capacity > blocks.limit) block_release_cached();
  if (header->capacity > blocks.limit) {
    std::free(header);
    return;
  }
  try {
    blocks.free[header->size_class].push_back(header);
    blocks.bytes += header->capacity;
  } catch (const std::bad_alloc &) {
    std::free(header);
  }
}

size_t block_cached_bytes() { return cache().bytes; }

void block_release_cached() {
  Cache &blocks = cache();
  for (std::vector<Header *> &free : blocks.free) {
    for (Header *header : free) std::free(header);
    free.clear();
  }
  blocks.bytes = 0;
}

PyArrayObject *new_array(PyArray_Descr *descr, int ndim, const npy_intp *dims, npy_intp nbytes) {
  void *block = nullptr;
  if (static_cast<size_t>(nbytes) >= kSmallest) {
    block = block_allocate(static_cast<size_t>(nbytes));
    if (!block) {
      PyErr_Format(PyExc_MemoryError, "a result takes %zd bytes, which cannot be allocated", nbytes);
      return nullptr;
    }
  }
  Py_INCREF(descr);
  auto *array = reinterpret_cast<PyArrayObject *>(PyArray_NewFromDescr(
      &PyArray_Type, descr, ndim, dims, nullptr, block, block ? NPY_ARRAY_CARRAY : 0, nullptr));
  if (!block) return array;
  if (!array) {
    block_free(block);
    return nullptr;
  }
  Py_INCREF(handler_capsule);
  reinterpret_cast<PyArrayObject_fields *>(array)->mem_handler = handler_capsule;
  PyArray_ENABLEFLAGS(array, NPY_ARRAY_OWNDATA);
  return array;
}

bool init_memory() {
  handler_capsule = PyCapsule_New(&handler, "mem_handler", nullptr);
  return handler_capsule != nullptr;
}

}  // namespace mlirml
