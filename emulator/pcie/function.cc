#include "emulator/pcie/function.h"

#include <unistd.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace orrery::emu {
namespace {

// The file is a memfd of the card's, which always covers the BAR: short transfers come from a card that broke
// its word. Missing bytes read as ones, as from a device that does not answer.
void file_read(int fd, uint64_t offset, std::span<std::byte> out) {
    const ssize_t got = ::pread(fd, out.data(), out.size(), static_cast<off_t>(offset));
    std::ranges::fill(out.subspan(got > 0 ? static_cast<size_t>(got) : 0), std::byte{0xff});
}

void file_write(int fd, uint64_t offset, std::span<const std::byte> in) {
    static_cast<void>(::pwrite(fd, in.data(), in.size(), static_cast<off_t>(offset)) < 0);
}

// The largest naturally aligned access at `offset` of at most `wanted` and 8 bytes.
size_t natural_size(uint64_t offset, size_t wanted) {
    const size_t by_size = std::bit_floor(std::min<size_t>(wanted, 8));
    const size_t by_offset = offset == 0 ? 8 : size_t{1} << std::min(std::countr_zero(offset), 3);
    return std::min(by_size, by_offset);
}

}  // namespace

PciFunction::PciFunction(PciDescription description, PciDevice& device, Interrupts& interrupts)
    : description_(std::move(description)),
      device_(device),
      interrupts_(interrupts),
      config_(description_),
      msix_(interrupts) {}

PciFunction::Piece PciFunction::piece(unsigned bar, uint64_t offset, size_t wanted) const {
    for (const MappedArea& area : description_.bars[bar].mapped) {
        if (offset < area.offset) {
            wanted = static_cast<size_t>(std::min<uint64_t>(wanted, area.offset - offset));
            break;
        }
        if (offset - area.offset < area.size) {
            return {Backing::kFile,
                    static_cast<size_t>(std::min<uint64_t>(wanted, area.size - (offset - area.offset)))};
        }
    }
    const bool msix =
        description_.interrupts == InterruptMode::kMsix && bar == kMsixBar && MsixTable::covers(offset);
    return {msix ? Backing::kMsix : Backing::kDevice, natural_size(offset, wanted)};
}

void PciFunction::bar_read(unsigned bar, uint64_t offset, std::span<std::byte> out) {
    while (!out.empty()) {
        const Piece p = piece(bar, offset, out.size());
        const std::span<std::byte> now = out.first(p.size);
        switch (p.backing) {
            case Backing::kFile:
                file_read(description_.bars[bar].fd, description_.bars[bar].fd_offset + offset, now);
                break;
            case Backing::kMsix:
                msix_.read(offset, now);
                break;
            case Backing::kDevice:
                device_.bar_read(bar, offset, now);
                break;
        }
        out = out.subspan(p.size);
        offset += p.size;
    }
}

void PciFunction::bar_write(unsigned bar, uint64_t offset, std::span<const std::byte> in) {
    while (!in.empty()) {
        const Piece p = piece(bar, offset, in.size());
        const std::span<const std::byte> now = in.first(p.size);
        switch (p.backing) {
            case Backing::kFile:
                file_write(description_.bars[bar].fd, description_.bars[bar].fd_offset + offset, now);
                break;
            case Backing::kMsix:
                msix_.write(offset, now);
                break;
            case Backing::kDevice:
                device_.bar_write(bar, offset, now);
                break;
        }
        in = in.subspan(p.size);
        offset += p.size;
    }
}

bool PciFunction::config_write(uint64_t offset, std::span<const std::byte> in) {
    const ConfigSpace::Effects effects = config_.write(offset, in);
    if (effects.bus_master_changed) device_.bus_master(config_.bus_master());
    if (effects.atomics_changed) device_.atomics(config_.atomics());
    if (effects.function_reset) reset(ResetKind::kFunction);
    return effects.function_reset;
}

void PciFunction::clear_registers() {
    const bool was_master = config_.bus_master(), had_atomics = config_.atomics();
    config_.reset();
    msix_.reset();
    if (was_master) device_.bus_master(false);
    if (had_atomics) device_.atomics(false);
}

void PciFunction::reset(ResetKind kind) {
    clear_registers();
    interrupts_.clear_pending();
    device_.reset(kind);
}

void PciFunction::power_on() {
    clear_registers();
    interrupts_.disable_all();
}

unsigned PciFunction::vector_count(unsigned index) const {
    switch (index) {
        case Interrupts::kMsiIndex:
            return description_.interrupts == InterruptMode::kSingle ? 1 : kVectorCount;
        case Interrupts::kMsixIndex:
            return description_.interrupts == InterruptMode::kMsix ? kVectorCount : 0;
        case Interrupts::kErrorIndex:
        case Interrupts::kRequestIndex:
            return 1;
        default:
            return 0;  // INTx
    }
}

}  // namespace orrery::emu
