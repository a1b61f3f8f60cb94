// The MSI-X table and pending bits, which sit in BAR 0.
//
// QEMU keeps the table of the guest itself and masks by what it does with eventfds, so this copy decides
// nothing; it is there because hardware has one and any other client may read back what it wrote.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/pcie/device.h"
#include "emulator/pcie/interrupts.h"

namespace orrery::emu {

class MsixTable {
  public:
    explicit MsixTable(const Interrupts& interrupts) : interrupts_(interrupts) { reset(); }

    // Whether the byte at `offset` of BAR kMsixBar belongs here.
    static bool covers(uint64_t offset);
    // Naturally aligned, at most 8 bytes, all of it covered.
    void read(uint64_t offset, std::span<std::byte> out) const;
    void write(uint64_t offset, std::span<const std::byte> in);
    // Empty entries, all masked.
    void reset();

  private:
    static constexpr size_t kEntrySize = 16;
    static constexpr size_t kControl = 12;  // in an entry; bit 0 masks the vector, the rest is reserved
    static constexpr size_t kPbaSize = 8;

    const Interrupts& interrupts_;
    std::array<std::byte, kVectorCount * kEntrySize> table_{};
};

}  // namespace orrery::emu
