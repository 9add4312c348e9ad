#include "work_order.h"

#include <algorithm>
#include <functional>
#include <iterator>

namespace mlirml {

void WorkOrder::clear() {
  memory_.clear();
  before_.clear();
}

// Lets an entry begin at an address that lies within one.
void WorkOrder::split(uint64_t at) {
  const auto next = memory_.upper_bound(at);
  if (next == memory_.begin()) return;
  const auto entry = std::prev(next);
  if (entry->first == at || entry->second.end <= at) return;
  memory_.emplace_hint(next, at, entry->second);
  entry->second.end = at;
}

// The first of the entries that cover exactly these bytes, without gaps.
WorkOrder::Map::iterator WorkOrder::covering(uint64_t begin, uint64_t end) {
  split(begin);
  split(end);
  uint64_t at = begin;
  for (auto entry = memory_.lower_bound(begin); at < end; ++entry) {
    const uint64_t next = entry == memory_.end() ? end : std::min(entry->first, end);
    if (at < next) entry = memory_.emplace_hint(entry, at, Bytes{next, kNobody, {}});
    at = entry->second.end;
  }
  return memory_.lower_bound(begin);
}

void WorkOrder::note(const Access &access, uint32_t piece, std::vector<uint32_t> &waits) {
  for (auto entry = covering(access.begin, access.end); entry != memory_.end() && entry->first < access.end;) {
    Bytes &bytes = entry->second;
    if (bytes.writer != kNobody && bytes.writer != piece) waits.push_back(static_cast<uint32_t>(bytes.writer));
    if (!access.writes) {
      if (bytes.writer != piece && (bytes.readers.empty() || bytes.readers.back() != piece)) bytes.readers.push_back(piece);
      ++entry;
      continue;
    }
    for (uint32_t reader : bytes.readers)
      if (reader != piece) waits.push_back(reader);
    entry = memory_.erase(entry);
  }
  if (access.writes) memory_[access.begin] = {access.end, piece, {}};
}

// Leaves out what is done before another piece that is waited for.
void WorkOrder::reduce(std::vector<uint32_t> &waits) {
  std::sort(waits.begin(), waits.end(), std::greater<>());
  waits.erase(std::unique(waits.begin(), waits.end()), waits.end());
  std::vector<uint64_t> done(before_.size() / 64 + 1);
  auto bit = [](uint32_t piece) { return uint64_t{1} << piece % 64; };
  size_t kept = 0;
  for (uint32_t piece : waits) {
    if (done[piece / 64] & bit(piece)) continue;
    waits[kept++] = piece;
    for (size_t i = 0; i < before_[piece].size(); i++) done[i] |= before_[piece][i];
    done[piece / 64] |= bit(piece);
  }
  waits.resize(kept);
  before_.push_back(std::move(done));
}

const std::vector<uint32_t> &WorkOrder::add(const std::vector<Access> &accesses) {
  const uint32_t piece = size();
  waits_.clear();
  for (const Access &access : accesses)
    if (access.begin < access.end) note(access, piece, waits_);
  reduce(waits_);
  return waits_;
}

}  // namespace mlirml
