// The whole card under wild BAR accesses, DMA maps that come and go, and firmware that is nothing but the
// input: the control core executes what it is given, so that its registers and windows see everything.
#include <fcntl.h>
#include <sodium.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <orrery/hw/doorbell.h>
#include <orrery/hw/pci.h>

#include "emulator/card/card.h"
#include "emulator/host/card_device.h"

namespace orrery::emu {
namespace {

constexpr std::uint64_t kRamBytes = 1 << 20;

struct Input {
    const std::uint8_t* data;
    std::size_t size;
    std::uint64_t take(unsigned bytes) {
        std::uint64_t value = 0;
        const std::size_t n = bytes < size ? bytes : size;
        std::memcpy(&value, data, n);
        data += n;
        size -= n;
        return value;
    }
};

class World {
  public:
    World() : ram_(memfd_create("fuzz", MFD_CLOEXEC)) {
        if (ftruncate(ram_.get(), kRamBytes) != 0) std::abort();
        CardConfig config;
        config.vram_bytes = 4 << 20;
        config.links.clear();
        auto made = Card::create(std::move(config));
        if (!made) std::abort();
        card = *std::move(made);
        device = std::make_unique<CardDevice>(*card);
        device->client_attached();
    }
    void map() {
        DmaMap range;
        range.size = kRamBytes;
        range.fd = UniqueFd(fcntl(ram_.get(), F_DUPFD_CLOEXEC, 0));
        range.readable = range.writable = true;
        (void)device->dma_map(std::move(range));
    }
    // Code for the control core, as if the boot ROM had accepted it.
    void run(std::span<const std::uint8_t> code) {
        const auto sram = card->core().sram();
        std::memcpy(sram.data(), code.data(), std::min(code.size(), sram.size()));
        card->start_core_for_test(ORR_SRAM_BASE);
    }
    std::unique_ptr<Card> card;
    std::unique_ptr<CardDevice> device;

  private:
    UniqueFd ram_;
};

// Registers of the control core as firmware writes and reads them, with offsets and values that mean
// something.
void registers(Card& card, Input& in) {
    SocRegisters& soc = card.soc();
    const std::uint64_t what = in.take(1);
    const auto port = static_cast<std::uint32_t>(SOC_ENGINE(in.take(1) % 7));
    const auto slot = static_cast<std::uint32_t>(SOC_SLOT(what % 3));
    const std::uint64_t value = in.take(static_cast<unsigned>(what % 9));
    const auto word = [&](std::uint64_t mask) { return static_cast<std::uint32_t>(8 * (value & mask)); };
    ModelTime wait = 0;
    switch (what >> 4) {
        case 0:
            soc.write(slot + SOC_SLOT_RING, value);
            break;
        case 1:
            soc.write(slot + SOC_SLOT_RING,
                      ORR_CONTEXT_WINDOW(value & 3, value & ~std::uint64_t{63} & 0xffffff));
            break;
        case 2:
            soc.write(slot + SOC_SLOT_RING, ORR_HOST_WINDOW(value % kRamBytes / 64 * 64));
            break;
        case 3:
            soc.write(slot + SOC_SLOT_MASK + word(3), value >> 2);
            break;
        case 4:
            soc.write(slot + SOC_SLOT_LIMIT, value);
            break;
        case 5:
            (void)soc.read(slot + SOC_SLOT_PACKET + word(7), wait);
            soc.write(slot + SOC_SLOT_NEXT, soc.read(slot + SOC_SLOT_NEXT, wait) + 1);
            break;
        case 6:
            soc.write(port + SOC_ENGINE_DESC + word(7), value >> 3);
            break;
        case 7:
            soc.write(port + SOC_ENGINE_DESC, (1 + (value & 3)) | value >> 2 << 16);
            break;
        case 8:
            soc.write(port + SOC_ENGINE_START, value);
            break;
        case 9:
            soc.write(port + SOC_ENGINE_SAVE, value % 0x500 << 12);
            soc.write(port + SOC_ENGINE_PREEMPT, what & 3);
            break;
        case 10:
            if (value % 3 == 0)
                soc.write(port + SOC_ENGINE_RESUME, value);
            else
                soc.write(port + SOC_ENGINE_LAUNCH,
                          (what % 3 + (value % 31 == 1 ? SOC_SLOTS : 0)) << 32 | value);
            break;
        case 11:
            soc.write(port + 0x40 + word(15), value >> 4);
            break;
        case 12:
            soc.write(SOC_MMU_ASID, value & 3);
            soc.write(SOC_MMU_ARG, value >> 2 << 12);
            soc.write(SOC_MMU_CMD, what & 7);
            break;
        case 13:
            (void)soc.read(static_cast<std::uint32_t>(value % ORR_SOC_SIZE / 8 * 8), wait);
            break;
        case 14:
            soc.write(static_cast<std::uint32_t>(value % ORR_SOC_SIZE / 8 * 8), value >> 16);
            break;
        default: {
            // The guest at a save area, or at tables.
            const std::uint64_t offset = value % card.vram().size() / 8 * 8;
            const std::uint64_t bits = in.take(8);
            std::memcpy(card.vram().data() + offset, &bits, sizeof bits);
            break;
        }
    }
}

void restart(CardDevice& device) {
    const std::uint32_t magic = ORR_RESTART_MAGIC;
    device.bar_write(ORR_BAR_REGS, ORR_R_CORE_RESTART, std::as_bytes(std::span(&magic, 1)));
}

}  // namespace
}  // namespace orrery::emu

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace orrery::emu;
    static World world;
    Card& card = *world.card;
    CardDevice& device = *world.device;
    Input in{data, size};
    device.client_gone();
    device.bus_master(true);
    world.map();
    // The first bytes are code, the rest is what the host does.
    const std::size_t code = std::min<std::size_t>(in.take(1) * 4, in.size);
    if (code > 0) world.run({in.data, code});
    in.data += code;
    in.size -= code;
    std::array<std::byte, 8> bytes{};
    constexpr std::array<std::size_t, 4> kSizes{1, 2, 4, 8};
    for (int steps = 0; in.size > 0 && steps < 300; ++steps) {
        const std::uint64_t op = in.take(1);
        const std::size_t width = kSizes[op >> 6];
        switch (op & 0xf) {
            case 0:
                device.dma_unmap(0, kRamBytes);
                break;
            case 1:
                world.map();
                break;
            case 2:
                if ((op & 0x30) == 0) {
                    device.reset(ResetKind::kFunction);
                } else {
                    restart(device);
                    world.run(std::span<const std::uint8_t>(data, std::min<std::size_t>(size, 256)));
                }
                break;
            case 3:
                device.bus_master((op & 0x10) != 0);
                device.atomics((op & 0x20) != 0);
                break;
            case 4:
                registers(card, in);
                break;
            case 5: {
                const std::uint64_t value = in.take(8);
                std::memcpy(bytes.data(), &value, 8);
                const std::uint64_t offset = in.take(3) % (2 * Doorbells::kBytes) / width * width;
                device.bar_write(ORR_BAR_DOORBELL, offset, std::span(bytes).first(width));
                break;
            }
            case 6:
            case 7:
            case 8:
            case 9: {
                const std::uint64_t offset = in.take(2) % 0x5000 / width * width;
                device.bar_read(ORR_BAR_REGS, offset, std::span(bytes).first(width));
                break;
            }
            default: {
                const std::uint64_t offset = in.take(2) % 0x5000 / width * width;
                const std::uint64_t value = in.take(static_cast<unsigned>(width));
                std::memcpy(bytes.data(), &value, 8);
                device.bar_write(ORR_BAR_REGS, offset, std::span(bytes).first(width));
            }
        }
        for (int i = 0; i < 4; ++i)
            card.step();
    }
    for (int i = 0; i < 50; ++i)
        card.step();
    return 0;
}
