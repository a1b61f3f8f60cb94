// Copy descriptors, page tables and save areas that are anything: no crash, an end, and one completion each.
#include <cstdlib>

#include "emulator/engines/save_area.h"
#include "tests/fuzz/engines/small_rig.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr std::uint64_t kBase = 0x40'0000'0000;
constexpr std::uint64_t kArea = 512 << 10;

orr_desc_copy descriptor(Input& input) {
    auto desc = input.take<orr_desc_copy>();
    const auto keep = input.take<std::uint8_t>();
    // Most of them make sense, so that the fuzzer gets past the checks.
    if ((keep & 1) == 0) desc.op = static_cast<std::uint16_t>(1 + desc.op % 2);
    if ((keep & 2) == 0) desc.asid = 1;
    if ((keep & 4) == 0) desc.src = desc.op == ORR_DESC_FILL ? 0 : kBase + desc.src % 0x11000;
    if ((keep & 8) == 0) desc.dst = kBase + desc.dst % 0x11000;
    if ((keep & 16) == 0) {
        desc.row_bytes %= 0x9000;
        desc.rows %= 64;
        desc.src_pitch = desc.op == ORR_DESC_FILL ? 0 : desc.src_pitch % 0x3000;
        desc.dst_pitch %= 0x3000;
        desc.reserved0 = 0;
    }
    if ((keep & 32) == 0) {
        desc.pattern_bytes =
            desc.op == ORR_DESC_FILL ? static_cast<std::uint16_t>(1 << desc.pattern_bytes % 4) : 0;
    }
    return desc;
}

// Preempts what runs, lets the guest at the area, and resumes from there.
void preempt(Rig& rig, CopyEngine& engine, Input& input) {
    const auto how = input.take<std::uint8_t>();
    const std::uint64_t area = (how & 1) != 0 ? input.take<std::uint64_t>() : kArea;
    if (!engine.preempt(Preempt::kNow, area)) return;
    rig.run(how >> 1 & 3);
    if (engine.busy()) return;  // it goes on to its end, with what stands
    if (rig.done.size() != 1) std::abort();
    if (rig.done[0].status != ORR_DONE_PREEMPTED) return;
    std::uint8_t* const at = rig.vram.at(area, sizeof(orr_save_header));
    if (at == nullptr) std::abort();
    for (unsigned i = 0; i < (how >> 3 & 3u); ++i) {
        const auto word = input.take<std::uint8_t>() % (sizeof(orr_save_header) / 8);
        const auto value = input.take<std::uint64_t>();
        std::memcpy(at + 8 * word, &value, sizeof value);
    }
    const std::uint32_t tag = rig.done[0].tag;
    rig.done.clear();
    if (!engine.resume(area, tag)) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    Rig rig(1 << 20, 64 << 10, 64 << 10);
    CopyEngine engine(0, CopyRates{}, rig.context);
    fuzz_tables(rig, input, kBase);
    for (unsigned jobs = 0; jobs < 8 && !input.empty(); ++jobs) {
        rig.peer.max_bytes = 1 + input.take<std::uint16_t>();
        rig.peer.refusals = input.take<std::uint8_t>() % 4;
        const auto abort_after = input.take<std::uint8_t>();
        rig.done.clear();
        if (!engine.start(Rig::words_of(descriptor(input)), jobs)) std::abort();
        // A row may be a byte long: the number of events is bounded by the descriptor, not by us.
        std::size_t events = 0;
        while (rig.run(64) > 0 && ++events < 4096) {
            if (events % 4 == abort_after % 4 && (abort_after & 0x80) != 0) preempt(rig, engine, input);
            if (events == abort_after) engine.abort();
        }
        if (engine.busy()) {
            engine.abort();
            rig.run();
        }
        if (engine.busy() || rig.done.size() != 1 || rig.done[0].tag != jobs) std::abort();
    }
    return 0;
}
