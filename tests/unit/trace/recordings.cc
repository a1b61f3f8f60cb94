#include "tests/unit/trace/recordings.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

namespace orrery::emu {

TemporaryFile::TemporaryFile() {
    static std::atomic<unsigned> count{0};
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("orrery-trace-test-{}-{}.otrace", ::getpid(), count++);
}

TemporaryFile::~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
}

LiveEnd live_end(Card& card) {
    const auto sram = card.core().sram();
    return {card.events().now(), {sram.begin(), sram.end()}, card.counters().get(ORR_CTR_CORE_INSTRUCTIONS)};
}

LiveEnd record_scripts(const std::filesystem::path& file) {
    CardConfig config = CardRig::config();
    config.record = file;
    CardRig rig(std::move(config));
    rig.boot_script();
    rig.run({CardRig::read(SOC_TIME), CardRig::write(SOC_TRACE, 1 | 2 << 8),
             CardRig::write(SOC_TRACE, 0x1111), CardRig::write(SOC_TRACE, 0x2222), CardRig::read(SOC_TIME)});
    rig.run({{OP_WRITE, ORR_VRAM_WINDOW + 0x1000, 0x1234567890abcdef, 0},
             {OP_READ, ORR_VRAM_WINDOW + 0x1000, 0, 0},
             {OP_READ32, ORR_VRAM_WINDOW + 0x1004, 0, 0},
             {OP_READ8, ORR_VRAM_WINDOW + 0x1007, 0, 0},
             {OP_CYCLES, 0, 0, 0}});
    rig.run({{OP_SLEEP, 0, 5'000'000, 0}, {OP_CYCLES, 0, 0, 0}, CardRig::write(SOC_TRACE, 7)});
    for (unsigned i = 0; i < 8; ++i)
        rig.run({{OP_READ, ORR_HOST_WINDOW(kRamBase + 8 * i), 0, 0}, {OP_SLEEP, 0, 1'000 + i, 0}});
    return live_end(rig.card());
}

LiveEnd record_firmware(const std::filesystem::path& file, unsigned rounds) {
    CardConfig config = CardRig::config();
    config.record = file;
    FirmwareRig fw(FirmwareRig::config(std::move(config)));
    fw.boot();
    constexpr std::uint64_t kRw = ORR_PTE_READ | ORR_PTE_WRITE;
    for (std::uint32_t asid = 1; asid <= 2; ++asid) {
        for (std::uint64_t at = 0; at < 0x10000; at += 4096)
            fw.rig().map_page(asid, 0x10000 + at, 0x200000 * asid + at, kRw);
        fw.make_queue(asid);
    }
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::uint32_t asid = 1; asid <= 2; ++asid) {
            orr_packet_fill fill{};
            fill.header.opcode = ORR_PKT_FILL;
            fill.pattern = round;
            fill.pattern_bytes = 1;
            fill.dst = 0x10000;
            fill.row_bytes = 0x4000 * asid;
            fill.rows = 1;
            fw.push(asid, fill);
            orr_packet_semaphore signal{};
            signal.header.opcode = ORR_PKT_SIGNAL;
            signal.semaphore = 0x1f000;
            signal.value = round + 1;
            fw.push(asid, signal);
            fw.submit(asid);
        }
        fw.rig().settle();
    }
    EXPECT_EQ(fw.ring(1).error, 0u);
    EXPECT_EQ(fw.ring(2).consumer, 2 * rounds);
    return live_end(fw.card());
}

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    EXPECT_TRUE(in) << file;
    return {std::istreambuf_iterator<char>(in), {}};
}

void write_bytes(const std::filesystem::path& file, const std::vector<std::uint8_t>& bytes) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    EXPECT_TRUE(out) << file;
}

}  // namespace orrery::emu
