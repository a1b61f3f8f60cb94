#include "tests/unit/trace/recordings.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <xxhash.h>
#include <zstd.h>

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
    LiveEnd end{
        card.events().now(), {sram.begin(), sram.end()}, card.counters().get(ORR_CTR_CORE_INSTRUCTIONS), {}};
    for (unsigned n = 0; n < end.counters.size(); ++n)
        end.counters.at(n) = card.counters().get(static_cast<orr_counter>(n));
    return end;
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

LiveEnd record_rounds(CardConfig config, unsigned rounds, const std::function<void(Card&)>& after_round) {
    FirmwareRig fw(FirmwareRig::config(std::move(config)));
    fw.boot();
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
        if (after_round) after_round(fw.card());
    }
    EXPECT_EQ(fw.ring(1).error, 0u);
    EXPECT_EQ(fw.ring(2).consumer, 2 * rounds);
    return live_end(fw.card());
}

LiveEnd record_firmware(const std::filesystem::path& file, unsigned rounds) {
    CardConfig config = CardRig::config();
    config.record = file;
    return record_rounds(std::move(config), rounds, {});
}
LiveEnd record_keyframes(const std::filesystem::path& file, unsigned rounds) {
    CardConfig config = CardRig::config();
    config.record = file;
    config.record_keyframe_cost = 0;
    return record_rounds(std::move(config), rounds, [](Card& card) { card.flush_recording(); });
}

std::vector<RawBlock> raw_blocks(const std::vector<std::uint8_t>& file) {
    orr_otrace_header header{};
    std::memcpy(&header, file.data(), sizeof header);
    std::vector<RawBlock> blocks;
    for (std::size_t at = header.header_bytes; at < file.size();) {
        RawBlock& block = blocks.emplace_back();
        std::memcpy(&block.header, file.data() + at, sizeof block.header);
        const std::uint8_t* const stored = file.data() + at + sizeof block.header;
        at += sizeof block.header + block.header.stored_bytes;
        block.payload.assign(stored, stored + block.header.stored_bytes);
        if (block.header.codec == ORR_OTRACE_RAW) continue;
        block.payload.resize(block.header.raw_bytes);
        EXPECT_EQ(
            ZSTD_decompress(block.payload.data(), block.payload.size(), stored, block.header.stored_bytes),
            block.payload.size());
    }
    return blocks;
}

std::vector<std::uint8_t> sealed(const std::vector<std::uint8_t>& file, std::vector<RawBlock> blocks,
                                 bool packed) {
    orr_otrace_header header{};
    std::memcpy(&header, file.data(), sizeof header);
    std::vector<std::uint8_t> out(file.begin(), file.begin() + header.header_bytes);
    std::uint64_t sequence = 0;
    for (RawBlock& block : blocks) {
        block.header.sequence = sequence++;
        block.header.codec = ORR_OTRACE_RAW;
        block.header.raw_bytes = static_cast<std::uint32_t>(block.payload.size());
        if (packed && !block.payload.empty()) {
            std::vector<std::uint8_t> small(ZSTD_compressBound(block.payload.size()));
            small.resize(
                ZSTD_compress(small.data(), small.size(), block.payload.data(), block.payload.size(), 1));
            block.payload = std::move(small);
            block.header.codec = ORR_OTRACE_ZSTD;
        }
        block.header.stored_bytes = static_cast<std::uint32_t>(block.payload.size());
        block.header.checksum = 0;
        const auto* const bytes = reinterpret_cast<const std::uint8_t*>(&block.header);
        const std::size_t at = out.size();
        out.insert(out.end(), bytes, bytes + sizeof block.header);
        out.insert(out.end(), block.payload.begin(), block.payload.end());
        block.header.checksum = XXH3_64bits(out.data() + at, out.size() - at);
        std::memcpy(out.data() + at, &block.header, sizeof block.header);
    }
    header.committed = out.size();
    header.not_committed = ~header.committed;
    std::memcpy(out.data(), &header, sizeof header);
    return out;
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
