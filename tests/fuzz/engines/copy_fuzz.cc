// Copy descriptors, page tables and save areas that are anything: no crash, an end, and one completion each.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <iterator>

#include "emulator/engines/checked_spaces.h"
#include "emulator/engines/save_area.h"
#include "tests/fuzz/engines/small_rig.h"

namespace {

using namespace orrery::emu;
using namespace orrery::emu::test;

constexpr std::uint64_t kBase = 0x40'0000'0000;
constexpr std::uint64_t kArea = 512 << 10;

constexpr std::uint64_t kSpan = 0x11000;

// A list's entries are memory too: some that make sense, at the start of what is mapped most often.
void write_entries(Rig& rig, Input& input) {
    for (unsigned i = input.take<std::uint8_t>() % 8; i > 0; --i) {
        const std::size_t where = input.take<std::uint16_t>() % 512;
        auto entry = input.take<orr_copy_entry>();
        const auto keep = input.take<std::uint8_t>();
        if ((keep & 1) == 0) entry.src = kBase + entry.src % kSpan;
        if ((keep & 2) == 0) entry.dst = kBase + entry.dst % kSpan;
        if ((keep & 4) == 0) entry.bytes %= 0x3000;
        if ((keep & 8) == 0) entry.reserved = 0;
        std::memcpy(rig.vram.data() + where * sizeof entry, &entry, sizeof entry);
    }
}

// A box at the start of what is mapped most often, and what points to it.
DescriptorWords box(Rig& rig, Input& input) {
    auto desc = input.take<orr_desc_box>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 1) == 0) desc.op = ORR_DESC_BOX;
    if ((keep & 2) == 0) desc.asid = 0, desc.dimensions = static_cast<std::uint16_t>(1 + desc.dimensions % 4);
    if ((keep & 4) == 0) desc.src = kBase + desc.src % kSpan, desc.dst = kBase + desc.dst % kSpan;
    if ((keep & 8) == 0) desc.row_bytes %= 0x1000;
    for (unsigned n = 0; n < ORR_BOX_DIMENSIONS && (keep & 16) == 0; ++n) {
        const bool used = n < desc.dimensions;
        desc.count[n] = used ? 1 + desc.count[n] % 6 : 0;
        desc.src_stride[n] = used ? desc.src_stride[n] % 0x3000 : 0;
        desc.dst_stride[n] = used ? desc.dst_stride[n] % 0x3000 : 0;
    }
    std::memcpy(rig.vram.data(), &desc, sizeof desc);
    orr_desc_long to{};
    to.op = ORR_DESC_LONG;
    to.asid = 1;
    to.descriptor = (keep & 32) != 0 ? input.take<std::uint64_t>() : kBase;
    to.bytes = (keep & 64) != 0 ? input.take<std::uint16_t>() : sizeof desc;
    return Rig::words_of(to);
}

// What a process tells of its addresses, at the start of what is mapped most often.
DescriptorWords tell(Rig& rig, Input& input) {
    auto desc = input.take<orr_desc_tell>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 1) == 0) desc.op = ORR_DESC_TELL, desc.asid = 0;
    if ((keep & 2) == 0) desc.what = static_cast<std::uint16_t>(1 + desc.what % ORR_TELL_FREED);
    if ((keep & 4) == 0) desc.va = kBase + desc.va % kSpan;
    if ((keep & 8) == 0) desc.bytes = 1 + desc.bytes % kSpan;
    std::memcpy(rig.vram.data(), &desc, sizeof desc);
    orr_desc_long to{};
    to.op = ORR_DESC_LONG;
    to.asid = 1;
    to.descriptor = kBase;
    to.bytes = (keep & 16) != 0 ? input.take<std::uint16_t>() : sizeof desc;
    return Rig::words_of(to);
}

DescriptorWords pattern(Input& input) {
    auto desc = input.take<orr_desc_pattern>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 1) == 0) desc.op = ORR_DESC_PATTERN, desc.reserved0 = 0, desc.asid = 1;
    if ((keep & 2) == 0) desc.pattern_bytes = 1u << desc.pattern_bytes % 4;
    if ((keep & 4) == 0) desc.dst = kBase + desc.dst % kSpan / 8 * 8;
    if ((keep & 8) == 0) desc.row_bytes = desc.row_bytes % 0x9000 / 8 * 8, desc.rows %= 64;
    if ((keep & 16) == 0) desc.dst_pitch = desc.dst_pitch % 0x3000 / 8 * 8;
    if ((keep & 32) == 0) std::ranges::fill(desc.reserved1, 0);
    return Rig::words_of(desc);
}

// Most of them make sense, so that the fuzzer gets past the checks.
DescriptorWords descriptor(Rig& rig, Input& input) {
    constexpr std::uint16_t kOps[] = {ORR_DESC_COPY, ORR_DESC_FILL, ORR_DESC_REDUCE, ORR_DESC_COPIES,
                                      ORR_DESC_LONG};
    auto desc = input.take<orr_desc_copy>();
    const auto keep = input.take<std::uint8_t>();
    if ((keep & 128) != 0) return (desc.op & 1) != 0 ? tell(rig, input) : pattern(input);
    if ((keep & 1) == 0) desc.op = kOps[desc.op % std::size(kOps)];
    if (desc.op == ORR_DESC_LONG && (keep & 1) == 0) return box(rig, input);
    if ((keep & 2) == 0) desc.asid = 1;
    if ((keep & 32) == 0) {
        desc.pattern_bytes =
            desc.op == ORR_DESC_FILL ? static_cast<std::uint16_t>(1 << desc.pattern_bytes % 4) : 0;
    }
    if (desc.op == ORR_DESC_COPIES) {
        auto list = std::bit_cast<orr_desc_copies>(desc);
        if ((keep & 4) == 0) list.list = (kBase + list.list % kSpan) & ~(sizeof(orr_copy_entry) - 1);
        if ((keep & 8) == 0) list.bytes %= 0x9000;
        if ((keep & 16) == 0) {
            list.reserved1 = list.reserved2 = 0;
            std::ranges::fill(list.reserved3, 0);
            list.entries %= 64;
        }
        return Rig::words_of(list);
    }
    const bool fill = desc.op == ORR_DESC_FILL, reduce = desc.op == ORR_DESC_REDUCE;
    // The types of a reduction have up to 8 bytes.
    const std::uint64_t unit = reduce ? 8 : 1;
    if ((keep & 4) == 0) desc.src = fill ? 0 : kBase + desc.src % kSpan / unit * unit;
    if ((keep & 8) == 0) desc.dst = kBase + desc.dst % kSpan / unit * unit;
    if ((keep & 16) == 0) {
        desc.row_bytes = desc.row_bytes % 0x9000 / unit * unit;
        desc.rows %= 64;
        desc.src_pitch = fill ? 0 : desc.src_pitch % 0x3000 / unit * unit;
        desc.dst_pitch = desc.dst_pitch % 0x3000 / unit * unit;
        desc.planes = fill ? 0 : desc.planes % 8;
        if (!fill) desc.pattern = desc.planes > 1 ? desc.pattern & 0x3f'0000'003f : 0;
    }
    if (reduce && (keep & 64) == 0) {
        auto sum = std::bit_cast<orr_desc_reduce>(desc);
        sum.type = static_cast<std::uint16_t>(1 + sum.type % ORR_TYPE_F64);
        sum.function = static_cast<std::uint16_t>(1 + desc.pattern % ORR_REDUCE_PRODUCT);
        sum.reserved1 = 0;
        return Rig::words_of(sum);
    }
    return Rig::words_of(desc);
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
    constexpr std::uint64_t kForChecks = 64 << 10;
    CheckedMemory checked(checked_spaces(rig.mmu), kForChecks);
    rig.context.checked = &checked;
    CopyEngine engine(0, CopyRates{}, rig.context);
    fuzz_tables(rig, input, kBase);
    for (unsigned jobs = 0; jobs < 8 && !input.empty(); ++jobs) {
        rig.peer.max_bytes = 1 + input.take<std::uint16_t>();
        rig.peer.refusals = input.take<std::uint8_t>() % 4;
        const auto abort_after = input.take<std::uint8_t>();
        rig.done.clear();
        write_entries(rig, input);
        if (!engine.start(descriptor(rig, input), jobs)) std::abort();
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
        if (checked.bytes() > kForChecks) std::abort();
    }
    return 0;
}
