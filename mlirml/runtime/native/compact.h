// Compaction: the positions of the true elements of masks, and the elements at them side by side, for compiled code.
#pragma once

#include <cstdint>

extern "C" {
// A mask has `rows` rows of `n` bytes, of which those that are not zero are true.

// For each row the number of true elements before each chunk of `kCompactionChunk`, and before its end.
void mlirml_mask_counts(const uint8_t *mask, int64_t *counts, int64_t rows, int64_t n);

// For each row the positions of the true elements in order. The rest of `out` stays as it is.
void mlirml_positions(const uint8_t *mask, const int64_t *counts, int64_t *out, int64_t rows, int64_t n);

// For each row the elements of `values`, of `size` bytes, at those positions.
void mlirml_compress(const uint8_t *mask, const int64_t *counts, const char *values, char *out, int64_t rows, int64_t n,
                     int64_t size);
}

namespace mlirml {
constexpr int64_t kCompactionChunk = 1 << 14;  // `CHUNK` in ir/compactions.py
}  // namespace mlirml
