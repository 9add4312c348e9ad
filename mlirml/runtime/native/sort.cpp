// Elements become signed integers in the same order. Short rows go through a sorting network, several rows in the lanes
// of vectors; long rows through NumPy's vectorised quicksort, or, where that is slow and where equal keys must keep their
// order, a radix sort, least significant byte first, which has no branches that depend on the data. Where few positions
// are asked for, the elements between two pivots are selected, and only these are put in order.
#include "sort.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>

#include "pool.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define MLIRML_VECTOR_CLONES 1
#include <immintrin.h>
#endif

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")  // vectorise the conversions between elements and keys
#endif

namespace mlirml {
namespace {

template <class Element>
constexpr Element kLargest = static_cast<Element>((uint64_t{1} << (8 * sizeof(Element) - 1)) - 1);

constexpr int64_t kNetworkRow = 1024;   // longest row for a network: its vectors stay in the second-level cache
constexpr int64_t kInsertionRow = 32;   // longest single row for insertion sort
constexpr int64_t kRadixRow = 1 << 12;  // shortest row whose numbers of bytes are few beside it
constexpr int64_t kSelectRow = 512;     // shortest row whose pivots from a sample are worth it
constexpr int64_t kFew = 256;           // undecided elements of a selection whose keys are sorted
constexpr double kDeviations = 2.5;     // of the position in a sample, to either side
constexpr int64_t kRadixCost = 1 << 13;  // elements worth a chunk of the pool

// The elements of one type. Key is signed and at least 32 bits wide.
template <class Bits, char Letter>
struct Type {
  using Element = Bits;
  using Key = std::conditional_t<sizeof(Bits) == 8, int64_t, int32_t>;
  using Signed = std::make_signed_t<Bits>;
  static constexpr bool is_float = Letter == 'f' || Letter == 'h';
  static constexpr int kMantissa = Letter == 'h' ? 7 : sizeof(Bits) == 2 ? 10 : sizeof(Bits) == 4 ? 23 : 52;
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  static constexpr Bits kInfinity = static_cast<Bits>(static_cast<Bits>(kSign - 1) >> kMantissa << kMantissa);

  static Key key(Bits x) {
    if constexpr (is_float) {
      const Bits magnitude = x & static_cast<Bits>(~kSign);
      const Signed order = static_cast<Signed>(x & kSign ? -static_cast<Signed>(magnitude) : magnitude);
      return magnitude > kInfinity ? static_cast<Key>(kSign - 1) : static_cast<Key>(order);
    } else if constexpr (Letter == 'i' || sizeof(Bits) < sizeof(Key)) {
      return Letter == 'i' ? static_cast<Key>(static_cast<Signed>(x)) : static_cast<Key>(x);
    } else {
      return static_cast<Key>(x ^ kSign);
    }
  }

  static Bits element(Key key) {
    if constexpr (is_float) {
      const Signed order = static_cast<Signed>(key);
      return order < 0 ? static_cast<Bits>(static_cast<Bits>(-order) | kSign) : static_cast<Bits>(order);
    } else if constexpr (Letter == 'i' || sizeof(Bits) < sizeof(Key)) {
      return static_cast<Bits>(key);
    } else {
      return static_cast<Bits>(key) ^ kSign;
    }
  }
};

namespace baseline {
constexpr int64_t kBytes = 16;
#include "sort_network.inc"
}  // namespace baseline

#ifdef MLIRML_VECTOR_CLONES
#pragma GCC push_options
#pragma GCC target("avx2,popcnt")
namespace avx2 {
constexpr int64_t kBytes = 32;
#include "sort_network.inc"
#include "sort_split.inc"
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512dq,avx512bw,avx512vl,prefer-vector-width=512")
namespace avx512 {
constexpr int64_t kBytes = 64;
#include "sort_network.inc"
}  // namespace avx512
#pragma GCC pop_options
#endif

struct Network {
  int64_t bytes;
  void (*narrow)(int32_t *rows, int64_t stride, int32_t *columns, int64_t n, int64_t padded);
  void (*wide)(int64_t *rows, int64_t stride, int64_t *columns, int64_t n, int64_t padded);
  void (*places)(int64_t *rows, int64_t stride, int64_t *columns, int64_t n, int64_t padded);
};

const Network &network() {
  static const Network chosen = [] {
#ifdef MLIRML_VECTOR_CLONES
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl"))
      return Network{64, avx512::sort_narrow, avx512::sort_wide, avx512::sort_places};
    if (__builtin_cpu_supports("avx2")) return Network{32, avx2::sort_narrow, avx2::sort_wide, avx2::sort_places};
#endif
    return Network{16, baseline::sort_narrow, baseline::sort_wide, baseline::sort_places};
  }();
  return chosen;
}

SortKeys narrow_sort = nullptr, wide_sort = nullptr;

// NumPy's sort of signed keys; null where it has no vectors for it.
template <class Key>
SortKeys key_sort() {
  return network().bytes < 32 ? nullptr : sizeof(Key) == 4 ? narrow_sort : wide_sort;
}

// Whether the quicksort is slow: AMD's processors compress vectors into memory in microcode, element by element.
bool compresses_slowly() {
#ifdef MLIRML_VECTOR_CLONES
  static const bool slow = network().bytes == 64 && __builtin_cpu_is("amd");
  return slow;
#else
  return false;
#endif
}

// NumPy's sort where it is the faster one for a row of n keys.
template <class Key>
SortKeys best_sort(int64_t n) {
  return n >= kRadixRow && compresses_slowly() ? nullptr : key_sort<Key>();
}

// The loops between elements and keys, for the same instruction set.
template <class T>
struct Conversions {
  using Element = typename T::Element;
  using Key = typename T::Key;
  void (*to_keys)(const Element *in, Key *keys, int64_t n, Key flip);
  void (*to_elements)(const Key *keys, Element *out, int64_t n, Key flip);
  void (*to_words)(const Element *in, int64_t *words, int64_t n, Key flip);
  bool (*contains)(const Element *in, int64_t n, Element x);
  int64_t (*split)(const Element *from, int64_t count, Key least, Key most, Key flip, Element *out, int64_t &low,
                   int64_t &high, Element *middle, int64_t &between);
};

// Does nothing: the processor has no vectors that are packed.
template <class T>
int64_t no_split(const typename T::Element *, int64_t, typename T::Key, typename T::Key, typename T::Key,
                 typename T::Element *, int64_t &, int64_t &, typename T::Element *, int64_t &) {
  return 0;
}

template <class T>
const Conversions<T> &conversions() {
  static const Conversions<T> chosen = [] {
#ifdef MLIRML_VECTOR_CLONES
    if (network().bytes == 64)
      return Conversions<T>{avx512::to_keys<T>, avx512::to_elements<T>, avx512::to_words<T>, avx512::contains<T>,
                            avx2::split<T>};
    if (network().bytes == 32)
      return Conversions<T>{avx2::to_keys<T>, avx2::to_elements<T>, avx2::to_words<T>, avx2::contains<T>,
                            avx2::split<T>};
#endif
    return Conversions<T>{baseline::to_keys<T>, baseline::to_elements<T>, baseline::to_words<T>, baseline::contains<T>,
                            no_split<T>};
  }();
  return chosen;
}

struct Pair {
  int64_t key;
  int64_t number;
};

struct Free {
  void operator()(void *p) const { std::free(p); }
};
using Scratch = std::unique_ptr<char, Free>;

Scratch allocate(int64_t bytes) {
  return Scratch(static_cast<char *>(std::aligned_alloc(64, static_cast<size_t>((bytes + 63) / 64 * 64))));
}

// Sorts by the bytes from `First` on of what `bits` gives; the result may lie in either array, and is returned.
template <int First, int Last, class T, class BitsOf>
T *radix_sort(T *from, T *to, int64_t n, BitsOf bits) {
  constexpr int kDigits = Last - First;
  int64_t counts[kDigits][256] = {};
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t word = bits(from[i]);
    for (int d = 0; d < kDigits; ++d) ++counts[d][word >> 8 * (First + d) & 255];
  }
  for (int d = 0; d < kDigits; ++d) {
    int64_t *count = counts[d];
    const int shift = 8 * (First + d);
    if (count[bits(from[0]) >> shift & 255] == n) continue;  // all alike
    int64_t start = 0;
    for (int b = 0; b < 256; ++b) start += std::exchange(count[b], start);
    for (int64_t i = 0; i < n; ++i) to[count[bits(from[i]) >> shift & 255]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

template <class T, class Less>
void insertion_sort(T *a, int64_t n, Less less) {
  for (int64_t i = 1; i < n; ++i) {
    const T x = a[i];
    int64_t j = i;
    for (; j > 0 && less(x, a[j - 1]); --j) a[j] = a[j - 1];
    a[j] = x;
  }
}

constexpr uint64_t kTop = uint64_t{1} << 63;

// Runs `rows_at_once` rows at a time over the pool.
template <class Body>
void for_rows(int64_t rows, int64_t n, int64_t group, Body body) {
  struct Context {
    Body *body;
    int64_t rows, group;
  } context{&body, rows, group};
  const int64_t groups = (rows + group - 1) / group;
  const int64_t grain = std::max<int64_t>(1, kRadixCost / std::max<int64_t>(1, group * n));
  parallel_for(
      [](int64_t lo, int64_t hi, void *opaque) {
        const Context &c = *static_cast<Context *>(opaque);
        (*c.body)(lo * c.group, std::min(c.rows, hi * c.group));
      },
      0, groups, grain, &context);
}

template <class T>
class Sorter {
 public:
  using Element = typename T::Element;
  using Key = typename T::Key;

  Sorter(const Element *in, int64_t n, bool descending, int64_t first, int64_t last)
      : in_(in), n_(n), flip_(descending ? -1 : 0), first_(first), last_(last) {}

  void values(Element *out, int64_t rows) {
    if (selects()) {
      for_rows(rows, n_, 1, [&](int64_t row, int64_t end) {
        const Scratch scratch = allocate(Values::bytes(n_));
        for (; row < end; ++row) select(out + row * n_, Values(*this, row, scratch.get()));
      });
      return;
    }
    const int64_t lanes = network().bytes / static_cast<int64_t>(sizeof(Key));
    const bool short_rows = n_ <= kNetworkRow && rows >= lanes;
    for_rows(rows, n_, short_rows ? lanes : 1, [&](int64_t first, int64_t last) {
      Scratch scratch = allocate((short_rows ? lanes * (stride(lanes) + height(lanes)) : 2 * n_) * static_cast<int64_t>(sizeof(Key)));
      int64_t row = first;
      if (scratch && short_rows)
        for (; row + lanes <= last; row += lanes)
          network_values(out, row, lanes, reinterpret_cast<Key *>(scratch.get()));
      const int64_t whole = row;  // their zeros are in order
      if (!short_rows)
        for (; row < last && scratch; ++row) row_values(out + row * n_, row, reinterpret_cast<Key *>(scratch.get()));
      for (; row < last; ++row) row_in_place(out + row * n_, row);
      if constexpr (T::is_float)
        for (row = short_rows ? whole : first; row < last; ++row) restore_zeros(out + row * n_, in_ + row * n_);
    });
  }

  void order(int64_t *out, int64_t rows, int64_t count) {
    if (selects() && count == n_) {
      for_rows(rows, n_, 1, [&](int64_t row, int64_t end) {
        const Scratch scratch = allocate(Positions::bytes(n_));
        for (; row < end; ++row) select(out + row * n_, Positions(*this, row, scratch.get()));
      });
      return;
    }
    const int64_t lanes = network().bytes / 8;
    const bool short_rows = n_ <= kNetworkRow && rows >= lanes;
    constexpr int64_t kWord = sizeof(Key) == 4 ? 8 : 16;  // a key with its position
    for_rows(rows, n_, short_rows ? lanes : 1, [&](int64_t first, int64_t last) {
      Scratch scratch = allocate(short_rows ? lanes * (stride(lanes) + 2 * height(lanes)) * 8 : 2 * n_ * kWord);
      int64_t row = first;
      if (scratch && short_rows)
        for (; row + lanes <= last; row += lanes)
          network_order(out, row, lanes, count, reinterpret_cast<int64_t *>(scratch.get()));
      if (!short_rows)
        for (; row < last && scratch; ++row) row_order(out + row * count, row, count, scratch.get());
      for (; row < last; ++row) order_without_scratch(out + row * count, row, count);
    });
  }

 private:
  Key key(int64_t row, int64_t i) const { return T::key(in_[row * n_ + i]) ^ static_cast<Key>(flip_); }

  // A range of many positions is no cheaper than the whole row.
  bool selects() const { return last_ >= 0 && n_ >= kSelectRow && last_ - first_ < n_ / 8; }

  // The undecided elements of a selection, and scratch memory for them and for keys to choose pivots from: elements of a
  // row, whose keys are computed as they are needed.
  class Values {
   public:
    using Word = Element;
    static int64_t bytes(int64_t n) { return line(n + kPadding) + n * static_cast<int64_t>(sizeof(Key)); }

    Values(const Sorter &sorter, int64_t row, char *scratch)
        : sorter_(sorter), words_(sorter.in_ + row * sorter.n_), middle_(reinterpret_cast<Element *>(scratch)) {}

    Key *sample() const {
      return reinterpret_cast<Key *>(reinterpret_cast<char *>(middle_) + line(sorter_.n_ + kPadding));
    }
    Word word(int64_t i) const { return words_[i]; }
    Key key_of(Element x) const { return T::key(x) ^ static_cast<Key>(sorter_.flip_); }
    Key key(int64_t i) const { return key_of(words_[i]); }
    void keys(Key *to, int64_t count) const {
      sorter_.convert_.to_keys(words_, to, count, static_cast<Key>(sorter_.flip_));
    }
    const Word *middle() const { return middle_; }

    void take(const Word *from, int64_t count) {
      std::copy(from, from + count, middle_);
      words_ = middle_;
    }

    int64_t split(int64_t count, Key least, Key most, Word *out, int64_t &low, int64_t &high) {
      int64_t between = 0;
      int64_t i = sorter_.convert_.split(words_, count, least, most, static_cast<Key>(sorter_.flip_), out, low, high,
                                         middle_, between);
      for (; i < count; ++i) {
        const Word x = words_[i];
        const Key key = key_of(x);
        const bool below = key < least, above = key > most;
        out[low] = out[high - 1] = middle_[between] = x;
        low += below;
        high -= above;
        between += !(below | above);
      }
      words_ = middle_;
      return between;
    }

   private:
    static constexpr int64_t kPadding = 64 / static_cast<int64_t>(sizeof(Element));  // whole vectors are stored
    static int64_t line(int64_t n) { return (n * static_cast<int64_t>(sizeof(Element)) + 63) / 64 * 64; }

    const Sorter &sorter_;
    const Element *words_;
    Element *middle_;
  };

  // The same of positions of a row, with their keys beside them.
  class Positions {
   public:
    using Word = int64_t;
    static int64_t bytes(int64_t n) { return n * (8 + 2 * static_cast<int64_t>(sizeof(Key))); }

    Positions(const Sorter &sorter, int64_t row, char *scratch)
        : sorter_(sorter), row_(row), middle_(reinterpret_cast<int64_t *>(scratch)),
          keys_(reinterpret_cast<Key *>(scratch + 8 * sorter.n_)) {
      const Element *const words = sorter.in_ + row * sorter.n_;
      if (scratch) sorter.convert_.to_keys(words, keys_, sorter.n_, static_cast<Key>(sorter.flip_));
    }

    Key *sample() const { return keys_ + sorter_.n_; }
    Word word(int64_t i) const { return whole_ ? i : middle_[i]; }
    Key key_of(int64_t i) const { return sorter_.key(row_, i); }
    Key key(int64_t i) const { return keys_[i]; }
    void keys(Key *to, int64_t count) const { std::copy(keys_, keys_ + count, to); }
    const Word *middle() const { return middle_; }

    void take(const Word *from, int64_t count) {
      for (int64_t i = 0; i < count; ++i) keys_[i] = key_of(middle_[i] = from[i]);
      whole_ = false;
    }

    int64_t split(int64_t count, Key least, Key most, Word *out, int64_t &low, int64_t &high) {
      const int64_t between = whole_ ? split_words([](int64_t i) { return i; }, count, least, most, out, low, high)
                                     : split_words([this](int64_t i) { return middle_[i]; }, count, least, most, out,
                                                   low, high);
      whole_ = false;
      return between;
    }

   private:
    template <class At>
    int64_t split_words(At at, int64_t count, Key least, Key most, Word *out, int64_t &low, int64_t &high) {
      int64_t between = 0;
      for (int64_t i = 0; i < count; ++i) {
        const Word x = at(i);
        const Key key = keys_[i];
        const bool below = key < least, above = key > most;
        out[low] = out[high - 1] = middle_[between] = x;
        keys_[between] = key;
        low += below;
        high -= above;
        between += !(below | above);
      }
      return between;
    }

    const Sorter &sorter_;
    const int64_t row_;
    int64_t *middle_;
    Key *keys_;
    bool whole_ = true;  // no split yet
  };

  // Two of `count` keys between which those at positions `first` to `last` in order lie, but in rare cases.
  template <class Words>
  static std::pair<Key, Key> pivots(const Words &words, int64_t count, int64_t first, int64_t last) {
    Key *const sample = words.sample();
    const double all = static_cast<double>(count);
    const int64_t size = static_cast<int64_t>(0.5 * std::pow(all, 2.0 / 3)), step = count / size;
    uint64_t state = 1;
    for (int64_t j = 0; j < size; ++j) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      sample[j] = words.key(j * step + static_cast<int64_t>((state >> 32) * static_cast<uint64_t>(step) >> 32));
    }
    const auto position = [&](int64_t k, double sign) {
      const double share = static_cast<double>(k) / all, mean = share * static_cast<double>(size);
      return static_cast<int64_t>(std::floor(mean + sign * (1 + kDeviations * std::sqrt(mean * (1 - share)))));
    };
    const int64_t from = position(first, -1), to = position(last, 1);
    order_keys(sample, size, std::clamp(from, int64_t{0}, size - 1), std::clamp(to, int64_t{0}, size - 1));
    return {from >= 0 ? sample[from] : std::numeric_limits<Key>::min(),
            to < size ? sample[to] : std::numeric_limits<Key>::max()};
  }

  // Puts the keys at two positions where they are in order.
  static void order_keys(Key *keys, int64_t n, int64_t first, int64_t last) {
    if (const SortKeys sort = n < kRadixRow ? key_sort<Key>() : nullptr) {
      sort(keys, n, nullptr);
      return;
    }
    std::nth_element(keys, keys + first, keys + n);
    if (last > first) std::nth_element(keys + first + 1, keys + last, keys + n);
  }

  // The positions from `first_` to `last_` in order, nothing larger before and nothing smaller after them. What is not
  // between two pivots goes to either end, without branches that depend on the data, until few elements are undecided.
  // R. Floyd, R. Rivest: Expected time bounds for selection. Communications of the ACM 18, 1975.
  template <class Words>
  void select(typename Words::Word *out, Words words) const {
    using Word = typename Words::Word;
    int64_t low = 0, high = n_;
    if (words.middle()) {
      for (int64_t before = 2 * n_;;) {
        const int64_t from = low, to = high, count = to - from, first = first_ - from;
        const bool exact = count <= kFew || count > before / 4 * 3;
        std::pair<Key, Key> ends;
        if (exact) {
          words.keys(words.sample(), count);
          order_keys(words.sample(), count, first, first);
          ends = {words.sample()[first], words.sample()[first]};
        } else {
          ends = pivots(words, count, first, last_ - from);
        }
        const int64_t between = words.split(count, ends.first, ends.second, out, low, high);
        const bool missed = first_ < low || last_ >= high;
        before = count;
        if (!missed && !exact && ends.first != ends.second) continue;
        std::copy(words.middle(), words.middle() + between, out + low);
        if (!missed) return;
        if (exact) {  // the positions after those of the first key
          low = high, high = to;
          break;
        }
        const bool below = last_ < low, above = first_ >= high;
        std::tie(low, high) = std::pair(above ? high : from, below ? low : to);
        if (!below && !above) break;
        words.take(out + low, high - low);
      }
    } else {
      for (int64_t i = 0; i < n_; ++i) out[i] = words.word(i);
    }
    const auto less = [&](Word x, Word y) { return words.key_of(x) < words.key_of(y); };
    if (low <= first_) std::nth_element(out + low, out + first_, out + high, less);
    low = std::max(low, first_ + 1);
    if (last_ < low) return;
    if (last_ == low) {
      std::iter_swap(out + low, std::min_element(out + low, out + high, less));
      return;
    }
    std::nth_element(out + low, out + last_, out + high, less);
    std::sort(out + low, out + last_, less);
  }

  // Rows of the scratch memory are whole vectors.
  int64_t stride(int64_t lanes) const { return (n_ + lanes - 1) / lanes * lanes; }

  // How long the columns are for the bitonic network; 0 where too much of them would be padding.
  int64_t padded() const {
    int64_t size = 16;
    while (size < n_) size *= 2;
    return 4 * n_ >= 3 * size ? size : 0;
  }
  int64_t height(int64_t lanes) const { return std::max(padded(), stride(lanes)); }

  void network_values(Element *out, int64_t row, int64_t lanes, Key *keys) const {
    const int64_t step = stride(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane)
      convert_.to_keys(in_ + (row + lane) * n_, keys + lane * step, n_, static_cast<Key>(flip_));
    if constexpr (sizeof(Key) == 4)
      network().narrow(keys, step, keys + lanes * step, n_, padded());
    else
      network().wide(keys, step, keys + lanes * step, n_, padded());
    for (int64_t lane = 0; lane < lanes; ++lane)
      convert_.to_elements(keys + lane * step, out + (row + lane) * n_, n_, static_cast<Key>(flip_));
    if constexpr (T::is_float)  // while the rows are in the cache
      if (convert_.contains(in_ + row * n_, lanes * n_, T::kSign))
        for (int64_t at = row * n_; at < (row + lanes) * n_; at += n_) restore_zeros(out + at, in_ + at, n_);
  }

  void row_values(Element *out, int64_t row, Key *keys) const {
    using Unsigned = std::make_unsigned_t<Key>;
    convert_.to_keys(in_ + row * n_, keys, n_, static_cast<Key>(flip_));
    const Key *sorted = keys;
    if (n_ <= kInsertionRow) {
      insertion_sort(keys, n_, [](Key x, Key y) { return x < y; });
    } else if (const SortKeys sort = best_sort<Key>(n_)) {
      sort(keys, n_, nullptr);
    } else {
      constexpr uint64_t top = uint64_t{1} << (8 * sizeof(Key) - 1);
      sorted = radix_sort<0, sizeof(Key)>(keys, keys + n_, n_,
                                          [](Key x) { return static_cast<uint64_t>(static_cast<Unsigned>(x)) ^ top; });
    }
    convert_.to_elements(sorted, out, n_, static_cast<Key>(flip_));
  }

  // For rows that are left over, and where there is no memory to spare.
  void row_in_place(Element *out, int64_t row) const {
    std::memmove(out, in_ + row * n_, static_cast<size_t>(n_) * sizeof(Element));
    const Key flip = static_cast<Key>(flip_);
    auto less = [flip](Element x, Element y) { return (T::key(x) ^ flip) < (T::key(y) ^ flip); };
    if (n_ <= kInsertionRow)
      insertion_sort(out, n_, less);
    else
      std::sort(out, out + n_, less);
  }

  // Keys do not tell the zeros apart: they are written again in the order that they came in.
  static void restore_zeros(Element *out, const Element *in, int64_t n) {
    int64_t i = 0;
    while (i < n && (out[i] & static_cast<Element>(~T::kSign)) != 0) ++i;
    for (int64_t j = 0; j < n; ++j)
      if ((in[j] & static_cast<Element>(~T::kSign)) == 0) out[i++] = in[j];
  }
  void restore_zeros(Element *out, const Element *in) const {
    if (convert_.contains(in, n_, T::kSign)) restore_zeros(out, in, n_);
  }

  void network_order(int64_t *out, int64_t row, int64_t lanes, int64_t count, int64_t *keys) const {
    const int64_t step = stride(lanes);
    for (int64_t lane = 0; lane < lanes; ++lane)
      convert_.to_words(in_ + (row + lane) * n_, keys + lane * step, n_, static_cast<Key>(flip_));
    (sizeof(Key) == 4 ? network().wide : network().places)(keys, step, keys + lanes * step, n_, padded());
    for (int64_t lane = 0; lane < lanes; ++lane)
      for (int64_t i = 0; i < count; ++i)
        out[(row + lane) * count + i] = keys[lane * step + i] & (sizeof(Key) == 4 ? 0xffffffff : ~int64_t{0});
  }

  void row_order(int64_t *out, int64_t row, int64_t count, char *scratch) const {
    if (sizeof(Key) == 4 && n_ < (int64_t{1} << 32)) {
      int64_t *words = reinterpret_cast<int64_t *>(scratch);
      for (int64_t i = 0; i < n_; ++i) words[i] = static_cast<int64_t>(key(row, i)) * (int64_t{1} << 32) + i;
      const int64_t *sorted = words;
      if (const SortKeys sort = n_ > kInsertionRow && count >= n_ / 8 ? best_sort<int64_t>(n_) : nullptr)
        sort(words, n_, nullptr);  // no two are alike
      else
        sorted = arranged<4, 8>(words, count, [](int64_t x) { return static_cast<uint64_t>(x) ^ kTop; },
                                [](int64_t x, int64_t y) { return x < y; });
      for (int64_t i = 0; i < count; ++i) out[i] = sorted[i] & 0xffffffff;
    } else if (sizeof(Key) == 8) {
      if (n_ > kInsertionRow && n_ < (int64_t{1} << 32) && count >= n_ / 8)
        if (order_by_leading_bits(out, row, count, reinterpret_cast<uint64_t *>(scratch))) return;
      Pair *pairs = reinterpret_cast<Pair *>(scratch);
      for (int64_t i = 0; i < n_; ++i) pairs[i] = {key(row, i), i};
      const Pair *sorted = arranged<0, 8>(
          pairs, count, [](const Pair &x) { return static_cast<uint64_t>(x.key) ^ kTop; },
          [](const Pair &x, const Pair &y) { return x.key != y.key ? x.key < y.key : x.number < y.number; });
      for (int64_t i = 0; i < count; ++i) out[i] = sorted[i].number;
    } else {
      order_without_scratch(out, row, count);
    }
  }

  // The order by those 32 bits that tell most keys apart, in words half as long as a key with its position; then of the
  // keys that are alike in them. False where these are too many.
  bool order_by_leading_bits(int64_t *out, int64_t row, int64_t count, uint64_t *words) const {
    const auto word = [&](int64_t i) { return static_cast<uint64_t>(key(row, i)) ^ kTop; };
    const uint64_t first = word(0);
    uint64_t differing = 0;
    for (int64_t i = 1; i < n_; ++i) differing |= word(i) ^ first;
    int shift = 0;
    while (differing >> shift >> 32 != 0) ++shift;
    for (int64_t i = 0; i < n_; ++i) words[i] = word(i) >> shift << 32 | static_cast<uint64_t>(i);
    uint64_t *sorted = radix_sort<4, 8>(words, words + n_, n_, [](uint64_t x) { return x; });
    if (shift > 0) {
      const auto end_of_run = [&](int64_t i) {
        int64_t end = i + 1;
        while (end < n_ && sorted[end] >> 32 == sorted[i] >> 32) ++end;
        return end;
      };
      int64_t many = 0;  // elements of long runs
      for (int64_t i = 0, end; i < n_; i = end)
        if ((end = end_of_run(i)) - i > kInsertionRow) many += end - i;
      if (many > n_ / 16) return false;
      const auto less = [&](uint64_t x, uint64_t y) {
        const int64_t i = x & 0xffffffff, j = y & 0xffffffff;
        const Key a = key(row, i), b = key(row, j);
        return a != b ? a < b : i < j;
      };
      for (int64_t i = 0, end; i < n_; i = end) {
        end = end_of_run(i);
        if (end - i > kInsertionRow)
          std::sort(sorted + i, sorted + end, less);
        else if (end - i > 1)
          insertion_sort(sorted + i, end - i, less);
      }
    }
    for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int64_t>(sorted[i] & 0xffffffff);
    return true;
  }

  template <int First, int Last, class W, class BitsOf, class Less>
  const W *arranged(W *words, int64_t count, BitsOf bits, Less less) const {
    if (count < n_ / 8 && count < n_)
      std::partial_sort(words, words + count, words + n_, less);
    else if (n_ <= kInsertionRow)
      insertion_sort(words, n_, less);
    else
      return radix_sort<First, Last>(words, words + n_, n_, bits);
    return words;
  }

  void order_without_scratch(int64_t *out, int64_t row, int64_t count) const {
    auto less = [&](int64_t i, int64_t j) {
      const Key x = key(row, i), y = key(row, j);
      return x != y ? x < y : i < j;
    };
    if (count == n_) {
      std::iota(out, out + n_, int64_t{0});
      std::sort(out, out + n_, less);
      return;
    }
    int64_t kept = 0;  // a heap of the best so far, the worst of them on top
    for (int64_t i = 0; i < n_; ++i) {
      if (kept < count) {
        out[kept++] = i;
        std::push_heap(out, out + kept, less);
      } else if (count && less(i, out[0])) {
        std::pop_heap(out, out + kept, less);
        out[kept - 1] = i;
        std::push_heap(out, out + kept, less);
      }
    }
    std::sort_heap(out, out + kept, less);
  }

  const Element *in_;
  const int64_t n_;
  const int64_t flip_;
  const int64_t first_, last_;
  const Conversions<T> &convert_ = conversions<T>();
};

// Calls `use` with the type of a kind.
template <class Use>
void with_type(int64_t kind, Use use) {
  switch (kind) {
    case 'b' | 1 << 8: return use(Type<uint8_t, 'u'>());
    case 'i' | 1 << 8: return use(Type<uint8_t, 'i'>());
    case 'i' | 2 << 8: return use(Type<uint16_t, 'i'>());
    case 'i' | 4 << 8: return use(Type<uint32_t, 'i'>());
    case 'i' | 8 << 8: return use(Type<uint64_t, 'i'>());
    case 'u' | 1 << 8: return use(Type<uint8_t, 'u'>());
    case 'u' | 2 << 8: return use(Type<uint16_t, 'u'>());
    case 'u' | 4 << 8: return use(Type<uint32_t, 'u'>());
    case 'u' | 8 << 8: return use(Type<uint64_t, 'u'>());
    case 'f' | 2 << 8: return use(Type<uint16_t, 'f'>());
    case 'h' | 2 << 8: return use(Type<uint16_t, 'h'>());
    case 'f' | 4 << 8: return use(Type<uint32_t, 'f'>());
    case 'f' | 8 << 8: return use(Type<uint64_t, 'f'>());
    default: std::abort();  // the compiler writes no other
  }
}

}  // namespace

void set_key_sorts(SortKeys narrow, SortKeys wide) {
  narrow_sort = narrow;
  wide_sort = wide;
}

}  // namespace mlirml

extern "C" void mlirml_sort(const void *in, void *out, int64_t rows, int64_t n, int64_t kind, int64_t descending,
                            int64_t first, int64_t last) {
  mlirml::with_type(kind, [&](auto type) {
    using T = decltype(type);
    using Element = typename T::Element;
    mlirml::Sorter<T>(static_cast<const Element *>(in), n, descending != 0, first, last)
        .values(static_cast<Element *>(out), rows);
  });
}

extern "C" void mlirml_argsort(const void *in, int64_t *out, int64_t rows, int64_t n, int64_t count, int64_t kind,
                               int64_t descending, int64_t first, int64_t last) {
  mlirml::with_type(kind, [&](auto type) {
    using T = decltype(type);
    using Element = typename T::Element;
    mlirml::Sorter<T>(static_cast<const Element *>(in), n, descending != 0, first, last)
        .order(out, rows, count);
  });
}
