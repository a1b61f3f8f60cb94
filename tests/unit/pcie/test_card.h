// A card that is small enough to see through: registers that tests and a guest can drive, and a list of what
// the server told it. Shared by the tests of the protocol, the fuzzer and the tests with QEMU.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "emulator/pcie/device.h"
#include "emulator/pcie/interrupts.h"

namespace orrery::test {

inline constexpr uint64_t kVramSize = 16 << 20;
inline constexpr uint64_t kDoorbellSize = 4 << 20;

// Registers of BAR 0, all 64 bits wide.
enum Register : uint64_t {
    kRegMagic = 0x00,       // RO: kMagic
    kRegScratch = 0x08,     // RW
    kRegRaise = 0x10,       // WO: vector to raise
    kRegDmaAddress = 0x18,  // RW: bus address
    kRegDmaCommand = 0x20,  // WO: kDma*
    kRegResets = 0x28,      // RO: number of resets of any kind
    kRegKicks = 0x30,       // RO: writes to the trapped half of BAR 4
    kRegDmaErrors = 0x38,   // RO: DMA commands to addresses that are not mapped
    kRegVramWord = 0x40,    // RW: VRAM offset that the next two go to
    kRegVramData = 0x48,    // RW: the 64-bit word of VRAM there, as the card sees it
};
inline constexpr uint64_t kMagic = 0x4544434c54534554;
inline constexpr uint64_t kDmaStore = 1;  // scratch to memory
inline constexpr uint64_t kDmaLoad = 2;   // memory to scratch

class TestCard : public emu::PciDevice {
  public:
    explicit TestCard(emu::Interrupts& interrupts);
    ~TestCard() override;

    emu::PciDescription description(emu::InterruptMode mode) const;

    void bar_read(unsigned bar, uint64_t offset, std::span<std::byte> out) override;
    void bar_write(unsigned bar, uint64_t offset, std::span<const std::byte> in) override;
    int dma_map(emu::DmaMap map) override;
    void dma_unmap(uint64_t address, uint64_t size) override;
    void reset(emu::ResetKind kind) override;
    void bus_master(bool enabled) override;
    void atomics(bool enabled) override;
    void client_attached() override;
    void client_gone() override;

    // What happened, oldest first: "attached", "map 1000+2000 rw", "map 1000+2000 r nofd", "unmap 1000+2000",
    // "reset bus", "reset function", "master on", "master off", "atomics on", "atomics off", "gone". Reading
    // takes them out.
    std::vector<std::string> take_events();
    // Accesses that broke the promise of natural alignment or left the BAR.
    unsigned broken_promises() const { return broken_promises_; }
    // BAR accesses that came to the card.
    unsigned accesses() const { return accesses_; }
    size_t mapped_ranges() const;

    uint64_t vram_word(uint64_t offset) const;
    // Makes dma_map() fail with this errno; 0 to take maps again.
    void refuse_maps(int error) { refuse_ = error; }

  private:
    struct Range {
        uint64_t size;
        std::byte* memory;  // null without a descriptor
        bool writable;
    };

    void event(std::string text);
    uint64_t read_register(uint64_t offset) const;
    void write_register(uint64_t offset, uint64_t value);
    void dma(uint64_t command);

    emu::Interrupts& interrupts_;
    emu::UniqueFd vram_;
    emu::UniqueFd doorbells_;
    std::byte* vram_memory_ = nullptr;

    mutable std::mutex mutex_;
    std::vector<std::string> events_;
    std::map<uint64_t, Range> ranges_;

    std::atomic<unsigned> broken_promises_ = 0;
    std::atomic<unsigned> accesses_ = 0;
    std::atomic<int> refuse_ = 0;
    uint64_t scratch_ = 0;
    uint64_t dma_address_ = 0;
    uint64_t vram_offset_ = 0;
    uint64_t resets_ = 0;
    uint64_t kicks_ = 0;
    uint64_t dma_errors_ = 0;
};

}  // namespace orrery::test
