#include "emulator/pcie/msix.h"

#include <algorithm>
#include <bit>

namespace orrery::emu {

bool MsixTable::covers(uint64_t offset) {
    return (offset >= ORR_MSIX_TABLE_OFFSET && offset - ORR_MSIX_TABLE_OFFSET < kVectorCount * kEntrySize) ||
           (offset >= ORR_MSIX_PBA_OFFSET && offset - ORR_MSIX_PBA_OFFSET < kPbaSize);
}

void MsixTable::read(uint64_t offset, std::span<std::byte> out) const {
    if (offset >= ORR_MSIX_PBA_OFFSET) {
        const auto pending = std::bit_cast<std::array<std::byte, kPbaSize>>(interrupts_.pending());
        std::ranges::copy(std::span(pending).subspan(offset - ORR_MSIX_PBA_OFFSET, out.size()), out.begin());
        return;
    }
    std::ranges::copy(std::span(table_).subspan(offset - ORR_MSIX_TABLE_OFFSET, out.size()), out.begin());
}

void MsixTable::write(uint64_t offset, std::span<const std::byte> in) {
    if (offset >= ORR_MSIX_PBA_OFFSET) return;  // read-only
    const size_t at = offset - ORR_MSIX_TABLE_OFFSET;
    for (size_t i = 0; i < in.size(); i++) {
        const size_t field = (at + i) % kEntrySize;
        std::byte value = in[i];
        if (field == 0) value &= std::byte{0xfc};  // messages go to whole words
        if (field == kControl) value &= std::byte{0x01};
        if (field > kControl) value = std::byte{0};
        table_[at + i] = value;
    }
}

void MsixTable::reset() {
    table_.fill(std::byte{0});
    for (size_t v = 0; v < kVectorCount; v++)
        table_[v * kEntrySize + kControl] = std::byte{1};
}

}  // namespace orrery::emu
