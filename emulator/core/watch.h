// Ranges of memory that a debugger watches. A bus that uses it answers kMmio for pages that are watched,
// serves their accesses itself and shows each of them to look().
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "emulator/api/watch_range.h"
#include "emulator/core/bus.h"

namespace orrery::emu {

class WatchSet {
  public:
    // Hart::flush_pages() belongs after it.
    void set(std::span<const WatchRange> ranges) {
        ranges_.assign(ranges.begin(), ranges.end());
        pages_.clear();
        for (const WatchRange& each : ranges_) {
            if (each.bytes == 0) continue;
            const std::uint64_t last = (each.address + each.bytes - 1) / kPageBytes;
            for (std::uint64_t page = each.address / kPageBytes; page <= last; ++page)
                pages_.push_back(page);
        }
        std::ranges::sort(pages_);
        on_ = !pages_.empty();
    }
    // For the one instruction that needs its page as it is.
    void suspend(bool suspended) { on_ = !suspended && !pages_.empty(); }

    bool on() const { return on_; }
    bool covers(std::uint64_t va) const { return on_ && std::ranges::binary_search(pages_, va / kPageBytes); }
    bool hit(std::uint64_t va, unsigned size, bool read) const {
        return std::ranges::any_of(ranges_, [&](const WatchRange& each) {
            return va + size > each.address && va < each.address + each.bytes &&
                   (read ? each.on_read : each.on_write);
        });
    }

  private:
    std::vector<WatchRange> ranges_;
    std::vector<std::uint64_t> pages_;  // sorted
    bool on_ = false;
};

}  // namespace orrery::emu
