// 64-byte aligned memory for results and workspaces, and arrays that own such memory. Call with the GIL held.
#pragma once

#include "numpy_api.h"

namespace mlirml {

// A block of at least `size` bytes, aligned to 64; nullptr when memory is out. Freed blocks are kept for reuse: fresh
// pages cost more than many kernels.
void *block_allocate(size_t size);
void block_free(void *block);

// Bytes kept for reuse, and giving them back to the system.
size_t block_cached_bytes();
void block_release_cached();

// A new C-contiguous array that owns its memory; a new reference or nullptr with an exception set.
PyArrayObject *new_array(PyArray_Descr *descr, int ndim, const npy_intp *dims, npy_intp nbytes);

// Creates the allocator that NumPy asks to free such memory. False with an exception set on failure.
bool init_memory();

}  // namespace mlirml
