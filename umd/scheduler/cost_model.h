// What tasks cost, from what the same kernel with the same grid and data sizes has cost before: model time
// between two time stamps of the card.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "umd/scheduler/machine.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

class CostModel {
  public:
    // A footprint's name has no white space.
    using Key = std::uint32_t;
    Key key(const std::string& footprint);
    // kNever: never measured.
    Ps expect(Key key) const;
    // True if the expectation is new, or has moved by more than a fifth since it was last said so.
    bool measured(Key key, Ps duration);
    // Of tasks that were never measured: something between those that were.
    Ps guess() const;

    // A line each: footprint, mean in picoseconds, count. A file that is not there is an empty one.
    Status load(const std::string& path);
    Status save(const std::string& path) const;

  private:
    struct Entry {
        double mean = 0;
        std::uint64_t count = 0;
        double told = 0;
    };
    std::map<std::string, Key> keys_;
    std::vector<Entry> entries_;
};

}  // namespace orrery::umd
