// Compaction in two passes: the true elements of each chunk are counted, and then chunks are filled in parallel.
#include "compact.h"

#include <cstddef>
#include <cstring>

#include "pool.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // vectorise the loops over the lanes of a block
#endif

#define MLIRML_INLINE inline __attribute__((always_inline))

namespace mlirml {
namespace {

constexpr int64_t kBlock = 64;  // bytes of a mask that are tested at once
constexpr int64_t kGrain = 8;   // chunks worth a piece of the pool
constexpr int kFew = 8;         // true elements of a block that are moved one by one

// For each set of eight bits the positions of those that are set, followed by the last of them.
struct Offsets {
  uint8_t of[256][8] = {};
  constexpr Offsets() {
    for (int bits = 0; bits < 256; bits++) {
      int count = 0;
      for (int bit = 0; bit < 8; bit++)
        if (bits >> bit & 1) of[bits][count++] = static_cast<uint8_t>(bit);
      for (int i = count; i < 8; i++) of[bits][i] = count ? of[bits][count - 1] : 0;
    }
  }
};
constexpr Offsets kOffsets;

namespace baseline {
// The bits of a block of bytes that are not zero.
MLIRML_INLINE uint64_t truths(const uint8_t *mask) {
  uint64_t bits = 0;
  for (int64_t lane = 0; lane < kBlock; lane += 8) {
    uint64_t word;
    std::memcpy(&word, mask + lane, sizeof word);
    word |= word >> 4 & 0x0F0F0F0F0F0F0F0Fu;
    word |= word >> 2 & 0x3333333333333333u;
    word |= word >> 1 & 0x5555555555555555u;
    // The product brings the low bits of the bytes together in the highest byte.
    bits |= ((word & 0x0101010101010101u) * 0x0102040810204080u) >> 56 << lane;
  }
  return bits;
}

#include "compact_loops.inc"
}  // namespace baseline

#ifdef MLIRML_VECTOR_CLONES
#pragma GCC push_options
#pragma GCC target("avx2,popcnt")
namespace avx2 {
MLIRML_INLINE uint64_t truths(const uint8_t *mask) {
  const __m256i zero = _mm256_setzero_si256();
  const auto low = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(mask)), zero);
  const auto high = _mm256_cmpeq_epi8(_mm256_loadu_si256(reinterpret_cast<const __m256i *>(mask + 32)), zero);
  const auto falses = static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32 |
                      static_cast<uint32_t>(_mm256_movemask_epi8(low));
  return ~falses;
}

#include "compact_loops.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,popcnt,prefer-vector-width=512")
namespace avx512 {
MLIRML_INLINE uint64_t truths(const uint8_t *mask) {
  const __m512i bytes = _mm512_loadu_si512(mask);
  return _mm512_test_epi8_mask(bytes, bytes);
}

#include "compact_loops.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

struct Loops {
  int64_t (*count)(const uint8_t *, int64_t);
  void (*positions)(const uint8_t *, int64_t, int64_t, int64_t *, const int64_t *);
  void (*bytes)(const uint8_t *, int64_t, const uint8_t *, uint8_t *, const uint8_t *);
  void (*halves)(const uint8_t *, int64_t, const uint16_t *, uint16_t *, const uint16_t *);
  void (*words)(const uint8_t *, int64_t, const uint32_t *, uint32_t *, const uint32_t *);
  void (*doubles)(const uint8_t *, int64_t, const uint64_t *, uint64_t *, const uint64_t *);
};

#define MLIRML_LOOPS(set)                                                                                     \
  Loops {                                                                                                     \
    set::count_true, set::fill_positions, set::fill_elements<uint8_t>, set::fill_elements<uint16_t>,          \
        set::fill_elements<uint32_t>, set::fill_elements<uint64_t>                                            \
  }

const Loops &loops() {
  static const Loops chosen = [] {
#ifdef MLIRML_VECTOR_CLONES
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      return MLIRML_LOOPS(avx512);
    if (__builtin_cpu_supports("avx2")) return MLIRML_LOOPS(avx2);
#endif
    return MLIRML_LOOPS(baseline);
  }();
  return chosen;
}

// The chunks of all rows in order. Each row has one more count than chunks.
class Chunks {
 public:
  Chunks(int64_t rows, int64_t n) : rows_(rows), n_(n), each_((n + kCompactionChunk - 1) / kCompactionChunk) {}

  // Calls `body(row, first, length, index of the first count)` for each of them, on the pool.
  template <class Body>
  void visit(Body body) const {
    struct Context {
      const Chunks &chunks;
      Body &body;
    } context{*this, body};
    parallel_for(
        [](int64_t begin, int64_t end, void *data) {
          const Context &all = *static_cast<Context *>(data);
          const int64_t each = all.chunks.each_, n = all.chunks.n_;
          for (int64_t i = begin; i < end; i++) {
            const int64_t row = i / each, first = i % each * kCompactionChunk;
            all.body(row, first, n - first < kCompactionChunk ? n - first : kCompactionChunk, row * (each + 1) + i % each);
          }
        },
        0, rows_ * each_, kGrain, &context);
  }

  int64_t each() const { return each_; }

 private:
  const int64_t rows_, n_, each_;
};

template <class Element, class Fill>
void compress(const Chunks &chunks, const uint8_t *mask, const int64_t *counts, const char *values, char *out, int64_t n,
              Fill fill) {
  const auto *from = reinterpret_cast<const Element *>(values);
  auto *to = reinterpret_cast<Element *>(out);
  chunks.visit([&](int64_t row, int64_t first, int64_t length, int64_t number) {
    if (counts[number] == counts[number + 1]) return;
    Element *begin = to + row * n;
    fill(mask + row * n + first, length, from + row * n + first, begin + counts[number], begin + counts[number + 1]);
  });
}

}  // namespace
}  // namespace mlirml

extern "C" void mlirml_mask_counts(const uint8_t *mask, int64_t *counts, int64_t rows, int64_t n) {
  const mlirml::Chunks chunks(rows, n);
  chunks.visit([&](int64_t row, int64_t first, int64_t length, int64_t number) {
    counts[number] = mlirml::loops().count(mask + row * n + first, length);
  });
  for (int64_t row = 0; row < rows; row++) {
    int64_t before = 0;
    for (int64_t i = 0; i <= chunks.each(); i++) {
      int64_t &count = counts[row * (chunks.each() + 1) + i];
      const int64_t own = i < chunks.each() ? count : 0;
      count = before;
      before += own;
    }
  }
}

extern "C" void mlirml_positions(const uint8_t *mask, const int64_t *counts, int64_t *out, int64_t rows, int64_t n) {
  mlirml::Chunks(rows, n).visit([&](int64_t row, int64_t first, int64_t length, int64_t number) {
    int64_t *begin = out + row * n;
    if (counts[number] == counts[number + 1]) return;
    mlirml::loops().positions(mask + row * n + first, first, length, begin + counts[number], begin + counts[number + 1]);
  });
}

extern "C" void mlirml_compress(const uint8_t *mask, const int64_t *counts, const char *values, char *out, int64_t rows,
                                int64_t n, int64_t size) {
  const mlirml::Chunks chunks(rows, n);
  const mlirml::Loops &loops = mlirml::loops();
  switch (size) {
    case 1: return mlirml::compress<uint8_t>(chunks, mask, counts, values, out, n, loops.bytes);
    case 2: return mlirml::compress<uint16_t>(chunks, mask, counts, values, out, n, loops.halves);
    case 4: return mlirml::compress<uint32_t>(chunks, mask, counts, values, out, n, loops.words);
    case 8: return mlirml::compress<uint64_t>(chunks, mask, counts, values, out, n, loops.doubles);
    default: break;
  }
  chunks.visit([&](int64_t row, int64_t first, int64_t length, int64_t number) {
    if (counts[number] == counts[number + 1]) return;
    char *to = out + (row * n + counts[number]) * size;
    for (int64_t i = first; i < first + length; i++) {
      if (!mask[row * n + i]) continue;
      std::memcpy(to, values + (row * n + i) * size, static_cast<size_t>(size));
      to += size;
    }
  });
}
