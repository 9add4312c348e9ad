// What of the earlier work a launch or a copy has to wait for, by the bytes that each of them reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace mlirml {

// Bytes of the device's memory that a piece of work uses; of which nothing is known, all bytes, read and written.
struct Access {
  uint64_t begin, end;
  bool writes;
};

constexpr Access kAnything = {0, UINT64_MAX, true};

// Pieces of work, numbered from 0 in the order of the program.
class WorkOrder {
 public:
  // Adds a piece; the earlier ones that it waits for, the latest first, less those that others of them wait for.
  const std::vector<uint32_t> &add(const std::vector<Access> &accesses);
  uint32_t size() const { return static_cast<uint32_t>(before_.size()); }
  void clear();

 private:
  static constexpr int64_t kNobody = -1;
  struct Bytes {  // from the key of the map on
    uint64_t end;
    int64_t writer;                 // the last piece that writes them
    std::vector<uint32_t> readers;  // since then
  };
  using Map = std::map<uint64_t, Bytes>;

  void split(uint64_t at);
  Map::iterator covering(uint64_t begin, uint64_t end);
  void note(const Access &access, uint32_t piece, std::vector<uint32_t> &waits);
  void reduce(std::vector<uint32_t> &waits);

  Map memory_;
  std::vector<std::vector<uint64_t>> before_;  // for each piece a bit for each one that is done before it
  std::vector<uint32_t> waits_;
};

}  // namespace mlirml
