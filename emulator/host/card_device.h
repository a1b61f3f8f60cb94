// The card behind its PCIe function: turns the server's callbacks into posted commands and register reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "emulator/card/card.h"
#include "emulator/host/host_registers.h"
#include "emulator/pcie/device.h"

namespace orrery::emu {

// I/O thread only.
class CardDevice final : public PciDevice {
  public:
    explicit CardDevice(Card& card) : card_(card), registers_(card) {}

    // BARs and identity of this card's function.
    static PciDescription describe(Card& card, InterruptMode mode);

    void bar_read(unsigned bar, std::uint64_t offset, std::span<std::byte> out) override;
    void bar_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> in) override;
    [[nodiscard]] int dma_map(DmaMap map) override;
    void dma_unmap(std::uint64_t address, std::uint64_t size) override;
    void reset(ResetKind kind) override;
    void bus_master(bool enabled) override;
    void atomics(bool enabled) override;
    void client_attached() override;
    void client_gone() override;

  private:
    Card& card_;
    HostRegisters registers_;
};

}  // namespace orrery::emu
