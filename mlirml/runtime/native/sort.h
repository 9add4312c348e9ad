// Sorting of the rows of a matrix, for compiled code.
#pragma once

#include <cstdint>

namespace mlirml {

// Functions of NumPy's that sort integers: where the processor has wide vectors they are ahead of a radix sort.
using SortKeys = int (*)(void *keys, intptr_t n, void *array);
void set_key_sorts(SortKeys narrow, SortKeys wide);

}  // namespace mlirml

extern "C" {
// `kind` is the letter of the element type as NumPy has it ('b'ool, 'i'nt, 'u'nsigned, 'f'loat, 'h' for bfloat16) in the
// low byte, and its size in bytes above it. Floats sort with NaN behind everything else and -0.0 equal to 0.0;
// `descending` reverses the whole order. Equal elements keep their order. Where `last` is not
// negative, only the positions from `first` to `last` need be in order, with nothing larger before and nothing smaller
// after them: equal elements may then change their order.

// The rows of `in`, each in order.
void mlirml_sort(const void *in, void *out, int64_t rows, int64_t n, int64_t kind, int64_t descending, int64_t first,
                 int64_t last);

// For each row the positions of its first `count` elements in that order.
void mlirml_argsort(const void *in, int64_t *out, int64_t rows, int64_t n, int64_t count, int64_t kind,
                    int64_t descending, int64_t first, int64_t last);
}
