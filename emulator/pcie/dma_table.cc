#include "emulator/pcie/dma_table.h"

#include <cerrno>
#include <iterator>

#include "emulator/pcie/protocol.h"

namespace orrery::emu {
namespace {

bool is_sound(uint64_t address, uint64_t size) {
    constexpr uint64_t low_bits = wire::kDmaPageSize - 1;
    return size != 0 && ((address | size) & low_bits) == 0 && address + (size - 1) >= address;
}

}  // namespace

int DmaTable::check_map(uint64_t address, uint64_t size) const {
    if (!is_sound(address, size)) return EINVAL;
    const uint64_t last = address + (size - 1);
    const auto next = ranges_.lower_bound(address);
    if (next != ranges_.end() && next->first <= last) return EEXIST;
    if (next != ranges_.begin()) {
        const auto& [before, before_size] = *std::prev(next);
        if (before + (before_size - 1) >= address) return EEXIST;
    }
    return ranges_.size() < wire::kMaxDmaMaps ? 0 : ENOSPC;
}

void DmaTable::add(uint64_t address, uint64_t size) {
    ranges_.emplace(address, size);
}

int DmaTable::find(uint64_t address, uint64_t size, std::vector<Range>& found) const {
    found.clear();
    if (!is_sound(address, size)) return EINVAL;
    const uint64_t last = address + (size - 1);
    auto it = ranges_.lower_bound(address);
    if (it != ranges_.begin()) {
        const auto& [before, before_size] = *std::prev(it);
        if (before + (before_size - 1) >= address) return EINVAL;
    }
    for (; it != ranges_.end() && it->first <= last; ++it) {
        if (it->first + (it->second - 1) > last) {
            found.clear();
            return EINVAL;
        }
        found.push_back({it->first, it->second});
    }
    return 0;
}

void DmaTable::remove(uint64_t address) {
    ranges_.erase(address);
}

std::vector<DmaTable::Range> DmaTable::all() const {
    std::vector<Range> ranges;
    ranges.reserve(ranges_.size());
    for (const auto& [address, size] : ranges_)
        ranges.push_back({address, size});
    return ranges;
}

}  // namespace orrery::emu
