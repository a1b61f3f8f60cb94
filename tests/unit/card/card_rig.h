// A card in a test, without a VM: guest RAM, BAR accesses, and firmware that does what a test says
// (script.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <orrery/hw/boot.h>
#include <orrery/hw/doorbell.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/mmu.h>

#include "emulator/card/card.h"
#include "emulator/host/card_device.h"
#include "tests/unit/card/script.h"

namespace orrery::emu {

inline constexpr std::uint64_t kRamBase = 0x4000'0000;
inline constexpr std::uint64_t kRamBytes = 64 << 20;

// Bits of a page, for map_page().
inline constexpr std::uint64_t kRw = ORR_PTE_READ | ORR_PTE_WRITE;
inline constexpr std::uint64_t kHostTarget = std::uint64_t{ORR_TARGET_HOST} << ORR_PTE_TARGET_SHIFT;
// Of another card's.
constexpr std::uint64_t of_node(std::uint32_t node) {
    return std::uint64_t{ORR_TARGET_PEER} << ORR_PTE_TARGET_SHIFT | std::uint64_t{node} << ORR_PTE_NODE_SHIFT;
}

// An Ed25519 key pair of the tests, and another one.
struct TestKey {
    PublicKey public_key;
    std::vector<std::uint8_t> secret_key;
    static const TestKey& ours();
    static const TestKey& another();
};

std::vector<std::uint8_t> read_file(const std::string& path);
// The tests' firmware.
std::vector<std::uint8_t> script_elf();
// A signed image around `elf`. The parts can be changed afterwards; sign() makes it good again.
std::vector<std::uint8_t> make_image(std::span<const std::uint8_t> elf, const TestKey& key = TestKey::ours());
void sign(std::vector<std::uint8_t>& image, const TestKey& key = TestKey::ours(), bool fix_hash = true);

class CardRig {
  public:
    static CardConfig config();
    explicit CardRig(CardConfig config = CardRig::config());
    ~CardRig();

    Card& card() { return *card_; }
    CardDevice& device() { return device_; }

    // --- BAR 0 ---
    std::uint32_t read32(std::uint64_t offset);
    std::uint64_t read64(std::uint64_t offset);
    void write32(std::uint64_t offset, std::uint32_t value);
    void write64(std::uint64_t offset, std::uint64_t value);
    std::uint64_t counter(orr_counter number) { return read64(ORR_R_COUNTER(number)); }
    // Gives the card its number, and says that `peer` is behind that port.
    void join(std::uint32_t node, unsigned port, std::uint32_t peer);
    // Lets a node that comes by that port write there. Done when ORR_R_LINK_GRANT_DONE says so.
    void grant(unsigned port, std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node);

    // --- guest RAM, at kRamBase ---
    std::uint8_t* ram(std::uint64_t bus) { return ram_.data() + (bus - kRamBase); }
    std::uint64_t& word(std::uint64_t bus) { return *reinterpret_cast<std::uint64_t*>(ram(bus)); }
    int map_ram(std::uint64_t bus = kRamBase, std::uint64_t bytes = kRamBytes);
    void unmap_ram(std::uint64_t bus = kRamBase, std::uint64_t bytes = kRamBytes);

    // --- doorbells ---
    orr_doorbell_page& page(unsigned number);
    // As a driver does it, the kick apart.
    void ring(unsigned page, unsigned slot, std::uint64_t value);
    void kick(unsigned page, unsigned slot);

    // --- life ---
    // Steps the card until it has nothing to do. Only without a card thread.
    void settle();
    // Steps it so often, whether it has something to do or not.
    void steps(unsigned count);
    std::uint32_t boot(std::span<const std::uint8_t> image);
    void start_boot(std::span<const std::uint8_t> image);
    void boot_script();
    // Runs operations in the firmware and returns them with their results.
    std::vector<script_op> run(std::vector<script_op> script);
    // The same without waiting for the end.
    void start(std::vector<script_op> script);
    std::vector<script_op> results(std::size_t count);

    static script_op read(std::uint64_t soc) { return {OP_READ, ORR_SOC_BASE + soc, 0, 0}; }
    static script_op write(std::uint64_t soc, std::uint64_t value) {
        return {OP_WRITE, ORR_SOC_BASE + soc, value, 0};
    }
    // Its last operation reads how it ended.
    static std::vector<script_op> signal(std::uint32_t asid, std::uint64_t va, std::uint64_t value) {
        return {write(SOC_SEM_ASID, asid), write(SOC_SEM_VA, va), write(SOC_SEM_SIGNAL, value),
                read(SOC_SEM_STATUS)};
    }
    // Gives an engine's port a descriptor of 64 bytes, and starts it.
    template <class Descriptor>
    static std::vector<script_op> start_job(unsigned port, const Descriptor& descriptor, std::uint32_t tag) {
        std::vector<script_op> script;
        for (const std::uint64_t word : std::bit_cast<std::array<std::uint64_t, 8>>(descriptor))
            script.push_back(write(SOC_ENGINE(port) + SOC_ENGINE_DESC + 8 * script.size(), word));
        script.push_back(write(SOC_ENGINE(port) + SOC_ENGINE_START, tag));
        return script;
    }
    std::uint64_t soc(std::uint64_t offset) { return run({read(offset)})[0].result; }

    // --- page tables of an address space, in VRAM ---
    // Maps a 4 KiB page; tables come from the top of VRAM. `bits` are target, port and rights.
    void map_page(std::uint32_t asid, std::uint64_t va, std::uint64_t address, std::uint64_t bits);
    std::uint64_t root(std::uint32_t asid);
    // Script that sets the root.
    std::vector<script_op> set_root(std::uint32_t asid);

    std::vector<unsigned> raised;  // interrupts, in order

    static constexpr std::uint64_t kImage = kRamBase + (32 << 20);
    static constexpr std::uint64_t kScript = kRamBase + (48 << 20);

  private:
    UniqueFd ram_fd_;
    Mapping ram_;
    Mapping doorbells_;
    std::unique_ptr<Card> card_;
    CardDevice device_;
    std::vector<std::uint64_t> roots_ = std::vector<std::uint64_t>(ORR_ASIDS);
    std::uint64_t next_table_;
};

}  // namespace orrery::emu
