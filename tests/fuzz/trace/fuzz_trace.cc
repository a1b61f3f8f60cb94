// Recordings from nobody in particular: the file as it is, or a log of any content in a file that is good.
//
// First byte: 0: the rest is the file; else the rest is what the log of a started core says, and the low bits
// of the byte choose the code that runs (it loads, stores, sleeps) and how many steps the block claims. With
// bit 2 the rest is the payload of the log's PORT block instead, with bit 3 that of a KEYFRAME behind it.
#include <xxhash.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "emulator/api/replayer.h"
#include "emulator/trace/recorder.h"

namespace {

using namespace orrery::emu;

void append(std::vector<std::uint8_t>& file, const void* bytes, std::size_t size) {
    const auto* const from = static_cast<const std::uint8_t*>(bytes);
    file.insert(file.end(), from, from + size);
}

void append_block(std::vector<std::uint8_t>& file, orr_otrace_block block,
                  std::span<const std::uint8_t> payload) {
    block.magic = ORR_OTRACE_BLOCK_MAGIC;
    block.stored_bytes = block.raw_bytes = static_cast<std::uint32_t>(payload.size());
    block.checksum = 0;
    const std::size_t at = file.size();
    append(file, &block, sizeof block);
    append(file, payload.data(), payload.size());
    block.checksum = XXH3_64bits(file.data() + at, file.size() - at);
    std::memcpy(file.data() + at, &block, sizeof block);
}

// Code at the begin of SRAM: a loop of accesses.
constexpr std::uint32_t kCode[] = {
    0x100002b7,  // lui  t0, 0x10000      registers
    0x80020337,  // lui  t1, 0x80020      (sign-extended: shifted below)
    0x0002b383,  // ld   t2, 0(t0)
    0x0072b023,  // sd   t2, 0(t0)
    0x7072b023,  // sd   t2, 0x700(t0)    trace port
    0x0003be03,  // ld   t3, 0(t2)        anywhere
    0x10500073,  // wfi
    0x30029073,  // csrw mstatus, t0
    0xfe9ff06f,  // j    -24
};

// So that the keyframe is believed, and then used.
std::uint64_t keyframe_hash(std::span<const std::uint8_t> payload) {
    std::vector<std::uint8_t> memory(ORR_SRAM_SIZE);
    std::memcpy(memory.data(), kCode, sizeof kCode);
    const auto keyframe = apply_keyframe(payload, memory);
    return keyframe ? trace_hash(keyframe->state, memory) : 0;
}

std::vector<std::uint8_t> wrap(std::uint8_t shape, std::span<const std::uint8_t> rest) {
    std::vector<std::uint8_t> file;
    orr_otrace_header header{};
    header.magic = ORR_OTRACE_MAGIC;
    header.version = ORR_OTRACE_VERSION;
    header.header_bytes = sizeof header;
    header.cycle_ps = 1000;
    header.checksum = XXH3_64bits(&header, sizeof header);
    append(file, &header, sizeof header);

    orr_otrace_start start{};
    start.rom_bytes = ORR_ROM_SIZE;
    start.sram_bytes = ORR_SRAM_SIZE;
    start.reset_pc = ORR_SRAM_BASE + 4u * (shape & 3u);
    std::vector<std::uint8_t> payload;
    append(payload, &start, sizeof start);
    payload.resize(payload.size() + ORR_ROM_SIZE);
    append(payload, kCode, sizeof kCode);
    payload.resize(sizeof start + ORR_ROM_SIZE + ORR_SRAM_SIZE);
    orr_otrace_block block{};
    block.kind = ORR_OTRACE_START;
    block.last_step = 1;
    block.last_ps = 5;
    HartState state;
    state.pc = start.reset_pc;
    state.mstatus = 3u << 11;
    block.state_hash = trace_hash(state, std::span(payload).subspan(sizeof start + ORR_ROM_SIZE));
    append_block(file, block, payload);

    const bool is_port = (shape & 4) != 0, is_keyframe = !is_port && (shape & 8) != 0;
    std::uint64_t sequence = 1;
    block = {};
    block.first_step = block.last_step = 1;
    block.first_ps = block.last_ps = 5;
    if (is_port) {
        block.kind = ORR_OTRACE_PORT;
        block.sequence = sequence++;
        append_block(file, block, rest);
    }
    block.kind = ORR_OTRACE_LOG;
    block.sequence = sequence++;
    block.last_step = 1 + (std::uint64_t{1} << (shape >> 4));
    block.last_ps = 1'000'000;
    if (is_keyframe) block.state_hash = keyframe_hash(rest);
    append_block(file, block, is_port || is_keyframe ? std::span<const std::uint8_t>() : rest);
    if (is_keyframe) {
        block.kind = ORR_OTRACE_KEYFRAME;
        block.sequence = sequence++;
        block.first_step = block.last_step;
        block.first_ps = block.last_ps;
        append_block(file, block, rest);
        // From it the core goes on.
        block.kind = ORR_OTRACE_LOG;
        block.sequence = sequence++;
        block.last_step += 64;
        block.last_ps += 64'000;
        append_block(file, block, {});
    }

    header.committed = file.size();
    header.not_committed = ~header.committed;
    std::memcpy(file.data(), &header, sizeof header);
    return file;
}

void replay(const TraceReader& reader, Opening opening, bool plain) {
    unsigned calls = 0;
    const auto opened = Replayer::open(reader, [&](double) { return ++calls < 20; }, opening);
    if (!opened) return;
    Replayer& replayer = **opened;
    // The start fits, whatever comes then.
    if (!plain && replayer.end() == 0) std::abort();
    for (std::size_t i = 0; i < replayer.record_count(); ++i)
        (void)replayer.record(i);
    replayer.seek(replayer.end());
    const std::uint64_t end = replayer.end();
    const std::uint64_t hash = trace_hash(replayer.state(), replayer.sram());
    ReplayLimits limits;
    limits.watchpoints = {{.address = ORR_SRAM_BASE + 0x100, .bytes = 8}};
    limits.breakpoints = {ORR_SRAM_BASE + 8};
    for (int i = 0; i < 4; ++i)
        replayer.run_back_until(0, limits);
    replayer.seek_time(replayer.end_time() / 2);
    replayer.seek(0);
    replayer.run_until(replayer.end(), limits);
    replayer.seek(replayer.end());
    // What was found to lie on the way is no part of the recording any more.
    if (replayer.end() == end && trace_hash(replayer.state(), replayer.sram()) != hash) std::abort();
    (void)replayer.verify([&](double) { return ++calls < 20; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size == 0) return 0;
    const std::span<const std::uint8_t> rest(data + 1, size - 1);
    const bool plain = data[0] == 0;
    auto reader =
        TraceReader::parse(plain ? std::vector(rest.begin(), rest.end()) : wrap(data[0], rest), "fuzz");
    if (!reader) {
        if (!plain) std::abort();  // the wrapping is good
        return 0;
    }
    for (const Opening opening : {Opening::kIndex, Opening::kWhole})
        replay(*reader, opening, plain);
    return 0;
}
