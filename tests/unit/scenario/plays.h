// A play of several cards, and what a recording says of one.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "emulator/api/replayer.h"

namespace orrery::scenario {

// A ring of copies and signals, kernels that are preempted, a launch over all cards, and copies of all cards
// to one.
inline std::string play_of(unsigned cards) {
    const std::vector<int> members(cards, 1);
    std::string text = "name = \"play\"\nuntil = \"40ms\"\n";
    for (unsigned n = 0; n < cards; ++n)  // each is linked with each
        text += fmt::format("[[card]]\n{}", cards > 4 ? "sku = \"orrery-0\"\n" : "");
    text += fmt::format("[[gang]]\nname = \"g\"\nmembers = [{}]\n", fmt::join(members, ", "));
    for (unsigned n = 0; n < cards; ++n) {
        text += fmt::format(
            "[[context]]\nname = \"c{0}\"\ncard = {0}\n[[semaphore]]\nname = \"s{0}\"\ncard = {0}\n"
            "[[queue]]\nname = \"a{0}\"\ncontext = \"c{0}\"\n"
            "[[queue]]\nname = \"g{0}\"\ncontext = \"c{0}\"\n"
            "[[queue]]\nname = \"u{0}\"\ncontext = \"c{0}\"\npriority = \"high\"\n",
            n);
    }
    for (unsigned n = 0; n < cards; ++n) {
        const std::string wait = fmt::format("{{op = \"wait\", semaphore = \"s{}\", value = 1}}", n);
        // A ring; each card works beside.
        text += fmt::format(
            "[[submit]]\nqueue = \"a{0}\"\nat = \"1010us\"\njobs = [{{op = \"kernel\", groups = {4}, cycles "
            "= "
            "200000}}, {1}{{op = \"copy\", bytes = \"300K\", to = \"card{2}\", ordered = true}}, "
            "{{op = \"signal\", semaphore = \"s{2}\", value = 1}}{3}]\n",
            n, n == 0 ? "" : wait + ", ", (n + 1) % cards, n == 0 ? ", " + wait : "", 4 + 3 * n);
        // In between.
        text += fmt::format(
            "[[submit]]\nqueue = \"u{0}\"\nat = \"{1}us\"\nevery = \"150us\"\ncount = 4\n"
            "jobs = [{{op = \"kernel\", groups = 4, cycles = 20000}}]\n",
            n, 1050 + 13 * n);
        // All of them, which come to it at different times.
        text += fmt::format(
            "[[submit]]\nqueue = \"g{0}\"\nat = \"{1}us\"\njobs = [{{op = \"gang\", gang = \"g\", round = "
            "1}}, "
            "{{op = \"kernel\", groups = 2, cycles = 5000, resident = true}}]\n",
            n, 5000 + 7 * n);
        // All to one.
        if (n != 0)
            text += fmt::format(
                "[[submit]]\nqueue = \"a{0}\"\nat = \"8ms\"\njobs = [{{op = \"copy\", bytes = \"1M\", to = "
                "\"card0\", ordered = true}}, {{op = \"signal\", semaphore = \"s0\", value = {1}}}]\n",
                n, n + 1);
    }
    return text;
}

// What a recording says, whatever its blocks are: those end by the host's clock too.
struct Recording {
    std::uint64_t accesses = 0, access_hash = 14695981039346656037u;
    std::uint64_t end = 0, end_ps = 0;
    std::vector<std::vector<std::uint64_t>> records;
    std::vector<emu::TraceNote> notes;
    emu::HartState state;
    std::vector<std::uint8_t> sram;
    bool operator==(const Recording&) const = default;
};

inline void read(const std::string& file, Recording& said) {
    auto reader = emu::TraceReader::open(file);
    ASSERT_TRUE(reader) << reader.error();
    const auto opened =
        emu::Replayer::open(*std::move(reader), {}, emu::Opening::kWhole, [&](const emu::PortAccess& access) {
            ++said.accesses;
            for (const std::uint64_t word : {access.step, access.time_ps, access.address, access.value,
                                             access.stall_ps, std::uint64_t{access.store}})
                said.access_hash = (said.access_hash ^ word) * 1099511628211u;
        });
    ASSERT_TRUE(opened) << opened.error();
    emu::Replayer& replay = **opened;
    ASSERT_FALSE(replay.divergence()) << replay.divergence()->reason;
    ASSERT_TRUE(replay.verified());
    said.end = replay.end();
    said.end_ps = replay.end_time();
    for (std::size_t i = 0; i < replay.record_count(); ++i) {
        const emu::PortRecord record = replay.record(i);
        auto& words = said.records.emplace_back();
        words = {record.step, record.time_ps, record.header};
        words.insert(words.end(), record.words.begin(), record.words.end());
    }
    said.notes.assign(replay.notes().begin(), replay.notes().end());
    // Before the power-on links come up in any order.
    const auto power_on =
        std::ranges::find_if(said.notes, [](const emu::TraceNote& note) { return note.step != 0; });
    std::sort(said.notes.begin(), power_on, [](const emu::TraceNote& a, const emu::TraceNote& b) {
        return std::ranges::lexicographical_compare(a.field, b.field);
    });
    replay.seek(replay.end());
    said.state = replay.state();
    said.sram.assign(replay.sram().begin(), replay.sram().end());
}

}  // namespace orrery::scenario
