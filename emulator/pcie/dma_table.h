// Which ranges of guest memory are mapped at this moment. It keeps addresses only; memory is the device's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace orrery::emu {

class DmaTable {
  public:
    struct Range {
        uint64_t address;
        uint64_t size;
    };

    // 0, or the errno for the client: EINVAL for an empty, wrapping or crooked range, EEXIST where it
    // overlaps another, ENOSPC when the table is full.
    int check_map(uint64_t address, uint64_t size) const;
    // Adds a range that check_map() found good.
    void add(uint64_t address, uint64_t size);

    // Finds the ranges that lie inside [address, address + size). 0, or EINVAL when the range is malformed or
    // would cut a mapped one in two. Finding none is no error: clients unmap what was never mapped.
    int find(uint64_t address, uint64_t size, std::vector<Range>& found) const;
    void remove(uint64_t address);

    std::vector<Range> all() const;
    size_t size() const { return ranges_.size(); }

  private:
    std::map<uint64_t, uint64_t> ranges_;  // address to size; disjoint
};

}  // namespace orrery::emu
