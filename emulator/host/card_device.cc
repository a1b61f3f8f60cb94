#include "emulator/host/card_device.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <orrery/hw/doorbell.h>
#include <orrery/hw/pci.h>

namespace orrery::emu {

namespace {
constexpr std::uint64_t kDoorbellBarBytes = 2 * Doorbells::kBytes;
static_assert(ORR_DB_KICK_OFFSET == Doorbells::kBytes);
}  // namespace

PciDescription CardDevice::describe(Card& card, InterruptMode mode) {
    PciDescription description;
    description.interrupts = mode;
    description.serial = card.config().uid;
    description.bars[ORR_BAR_REGS].size = ORR_BAR_REGS_SIZE;
    description.bars[ORR_BAR_VRAM] = {.size = card.vram().size(),
                                      .is_64bit = true,
                                      .prefetchable = true,
                                      .fd = card.vram().fd(),
                                      .mapped = {{0, card.vram().size()}}};
    description.bars[ORR_BAR_DOORBELL] = {
        .size = kDoorbellBarBytes, .fd = card.doorbells().fd(), .mapped = {{0, Doorbells::kBytes}}};
    return description;
}

void CardDevice::bar_read(unsigned bar, std::uint64_t offset, std::span<std::byte> out) {
    if (bar == ORR_BAR_REGS) return registers_.read(offset, out);
    // Kick pages read as zero.
    std::ranges::fill(out, std::byte{0});
}

void CardDevice::bar_write(unsigned bar, std::uint64_t offset, std::span<const std::byte> in) {
    if (bar == ORR_BAR_REGS) return registers_.write(offset, in);
    if (bar != ORR_BAR_DOORBELL || offset < ORR_DB_KICK_OFFSET) return;
    card_.counters().add_shared(ORR_CTR_KICKS);
    card_.doorbells().kick(static_cast<unsigned>((offset - ORR_DB_KICK_OFFSET) / ORR_DB_PAGE_SIZE));
    card_.wake();
}

int CardDevice::dma_map(DmaMap map) {
    auto made = HostRange::create(map.address, map.size, map.fd, map.offset, map.readable, map.writable);
    if (!made) {
        card_.errors().report(ErrorKind::kHostError,
                              "DMA range of {:#x} bytes at {:#x} cannot be mapped: errno {}", map.size,
                              map.address, made.error());
        return made.error();
    }
    std::optional<HostRange> range(*std::move(made));
    int error = 0;
    card_.post({.kind = Command::Kind::kMap, .range = &range, .error = &error});
    card_.flush();
    return error;
}

void CardDevice::dma_unmap(std::uint64_t address, std::uint64_t size) {
    // The card hands the range back once it has no pointer into it; it is unmapped here, off the card thread.
    std::optional<HostRange> range;
    card_.post({.kind = Command::Kind::kUnmap, .a = address, .b = size, .range = &range});
    card_.flush();
}

void CardDevice::reset(ResetKind kind) {
    card_.errors().note("{} reset", kind == ResetKind::kBus ? "bus" : "function level");
    registers_.reset();
    card_.flush();
}

void CardDevice::bus_master(bool enabled) {
    card_.post({.kind = Command::Kind::kBusMaster, .number = enabled ? 1u : 0u});
    card_.flush();
}

void CardDevice::atomics(bool enabled) {
    card_.post({.kind = Command::Kind::kAtomics, .number = enabled ? 1u : 0u});
    card_.flush();
}

void CardDevice::client_attached() {
    card_.errors().note("a client has attached");
}

void CardDevice::client_gone() {
    card_.errors().note("the client is gone: back to power-on");
    registers_.clear();
    card_.post({.kind = Command::Kind::kClientGone});
    card_.flush();
}

}  // namespace orrery::emu
