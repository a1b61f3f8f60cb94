// Harts that have decoded code in common (code_store.h): each goes on as if its code were its own.
#include <gtest/gtest.h>

#include <memory>

#include "emulator/core/code_store.h"
#include "emulator/core/core.h"
#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

Config to_host(std::uint32_t code_pages = 4) {
    return {.reset_pc = kRam, .trap_to_host = true, .code_pages = code_pages};
}

// Two harts with one memory.
struct Two {
    explicit Two(const Config& config = to_host()) : a(config, bus, &store), b(config, bus, &store) {}
    TestBus bus;
    CodeStore store;
    Hart a, b;
};

// What a call of the function at `pc`, of one instruction and a jump to ra, leaves in a2.
std::uint64_t call(Hart& hart, std::uint64_t pc = kRam) {
    hart.set_x(a2, 0);
    hart.set_pc(pc);
    hart.run(2);
    return hart.x(a2);
}

TEST(SharedCode, IsDecodedOnce) {
    Two two;
    two.bus.put_code(kRam, {li(a2, 1), jalr(x0, ra, 0)});
    EXPECT_EQ(call(two.a), 1u);
    const std::uint64_t decoded = two.store.decoded();
    EXPECT_GT(decoded, 0u);
    EXPECT_EQ(call(two.b), 1u);
    two.b.flush_pages();
    EXPECT_EQ(call(two.b), 1u);
    EXPECT_EQ(two.store.decoded(), decoded);
}

TEST(SharedCode, WhatOthersWriteIsSeenAfterFlushCode) {
    Two two;
    for (int value = 1; value < 10; ++value) {
        two.bus.put_code(kRam, {li(a2, value), jalr(x0, ra, 0)});
        // In turns, who is the first to look.
        Hart& first = value % 2 == 0 ? two.a : two.b;
        Hart& second = value % 2 == 0 ? two.b : two.a;
        first.flush_code();
        EXPECT_EQ(call(first), static_cast<std::uint64_t>(value));
        second.flush_code();
        EXPECT_EQ(call(second), static_cast<std::uint64_t>(value));
    }
}

// Whether the hart that writes has executed the page before or not, and through which address it writes.
TEST(SharedCode, WhatASharerWritesIsSeen) {
    constexpr std::uint64_t kAlias = 0x8000000000000000, kWriter = kRam + 0x1000;
    for (const bool known : {false, true}) {
        for (const std::uint64_t target : {kRam, kAlias}) {
            Two two;
            two.bus.pages[kAlias] = PageRef::memory(two.bus.ram(), kPageRead | kPageWrite);
            two.bus.put_code(kRam, {li(a2, 1), jalr(x0, ra, 0)});
            two.bus.put_code(kWriter, {sw(a1, a0, 4), sw(a1, a0, 0)});
            EXPECT_EQ(call(two.a), 1u);
            if (known) {
                EXPECT_EQ(call(two.b), 1u);
            }
            two.b.set_x(a0, target);
            two.b.set_x(a1, jalr(x0, ra, 0));
            two.b.set_pc(kWriter);
            two.b.run(1);
            two.b.set_x(a1, li(a2, 2));
            two.b.run(1);
            EXPECT_EQ(call(two.b), 2u) << known << std::hex << target;
            two.a.flush_code();
            EXPECT_EQ(call(two.a), 2u) << known << std::hex << target;
        }
    }
}

// The page goes elsewhere, and comes back; its old place is used for something else meanwhile.
TEST(SharedCode, WhatIsMappedElsewhereIsSeen) {
    Two two;
    two.bus.put_code(kRam, {li(a2, 1), jalr(x0, ra, 0)});
    two.bus.put_code(kRam + 0x5000, {li(a2, 2), jalr(x0, ra, 0)});
    const auto map = [&](std::uint64_t at) {
        two.bus.pages[kRam] = PageRef::memory(two.bus.ram() + at, kPageRead | kPageExec);
        two.a.flush_pages();
        two.b.flush_pages();
    };
    for (int round = 0; round < 3; ++round) {
        map(0);
        EXPECT_EQ(call(two.a), 1u);
        EXPECT_EQ(call(two.b), 1u);
        map(0x5000);
        EXPECT_EQ(call(two.b), 2u);
        EXPECT_EQ(call(two.a), 2u);
        two.bus.pages[kRam] = PageRef::fault();
        two.a.flush_pages();
        two.a.set_pc(kRam);
        EXPECT_EQ(two.a.run(1), StopReason::kTrap);
    }
    map(0);
    two.bus.put_code(kRam, {li(a2, 3), jalr(x0, ra, 0)});
    two.a.flush_code();
    EXPECT_EQ(call(two.a), 3u);
}

// What depends on the address is decoded for each.
TEST(SharedCode, OneMemoryAtTwoAddresses) {
    Two two;
    two.bus.pages[0x20000] = PageRef::memory(two.bus.ram(), kPageRead | kPageExec);
    two.bus.put_code(kRam, {auipc(a2, 0), jalr(x0, ra, 0)});
    for (int round = 0; round < 2; ++round) {
        EXPECT_EQ(call(two.a, 0x20000), 0x20000u);
        EXPECT_EQ(call(two.b), kRam);
        EXPECT_EQ(call(two.b, 0x20000), 0x20000u);
    }
}

TEST(SharedCode, OneAddressInTwoMemories) {
    TestBus other;
    CodeStore store;
    TestBus bus;
    Hart a(to_host(), bus, &store), b(to_host(), other, &store);
    bus.put_code(kRam, {li(a2, 1), jalr(x0, ra, 0)});
    other.put_code(kRam, {li(a2, 2), jalr(x0, ra, 0)});
    for (int round = 0; round < 3; ++round) {
        EXPECT_EQ(call(a), 1u);
        EXPECT_EQ(call(b), 2u);
    }
}

// Far more pages than are kept, in another order by each hart, and other code in each round.
TEST(SharedCode, MorePagesThanAreKept) {
    Two two(to_host(2));
    constexpr std::uint64_t kPages = 20;
    for (std::uint64_t round = 0; round < 6; ++round) {
        const auto value_of = [&](std::uint64_t page) { return page + 100 * (round / 2); };
        for (std::uint64_t page = 0; page < kPages; ++page)
            two.bus.put_code(kRam + page * kPageBytes,
                             {li(a2, static_cast<int>(value_of(page))), jalr(x0, ra, 0)});
        two.a.flush_code();
        two.b.flush_code();
        for (std::uint64_t i = 0; i < 4 * kPages; ++i) {
            const std::uint64_t of_a = i % kPages, of_b = i * 7 % kPages;
            ASSERT_EQ(call(two.a, kRam + of_a * kPageBytes), value_of(of_a));
            ASSERT_EQ(call(two.b, kRam + of_b * kPageBytes), value_of(of_b));
        }
    }
}

// One hart stays where the other began.
TEST(SharedCode, APageThatIsInUseStays) {
    Two two(to_host(2));
    constexpr std::uint64_t kPages = 20;
    for (std::uint64_t page = 0; page < kPages; ++page)
        two.bus.put_code(kRam + page * kPageBytes, {li(a2, static_cast<int>(page) + 1), jalr(x0, ra, 0)});
    EXPECT_EQ(call(two.a), 1u);
    for (std::uint64_t page = 0; page < kPages; ++page) {
        EXPECT_EQ(call(two.b, kRam + page * kPageBytes), page + 1);
        EXPECT_EQ(call(two.a), 1u);
    }
}

// A kernel whose memory is contiguous for it and for the host, at all alignments of the two to each other.
TEST(SharedCode, ContiguousPagesAreFoundAtOnce) {
    constexpr std::uint64_t kPages = 1024, kVa = 0x7f00'0020'0000;
    for (std::uint64_t offset = 0; offset <= 0x20'0000; offset += 0x4000) {
        CodePool pool;
        pool.add(kPages);
        for (std::uint64_t i = 0; i < kPages; ++i) {
            // Only compared, never read.
            const std::uintptr_t host = 0x5500'0020'0000 + offset + i * kPageBytes;
            pool.exchange(nullptr, kVa + i * kPageBytes,
                          reinterpret_cast<const std::uint8_t*>(host));  // NOLINT(performance-no-int-to-ptr)
        }
        EXPECT_LT(pool.longest_chain(), 16u) << std::hex << offset;
    }
}

TEST(SharedCode, HartsComeAndGo) {
    CodeStore store;
    TestBus bus;
    for (std::uint64_t page = 0; page < 4; ++page)
        bus.put_code(kRam + page * kPageBytes, {li(a2, static_cast<int>(page)), jalr(x0, ra, 0)});
    Hart stays(to_host(2), bus, &store);
    for (int round = 0; round < 4; ++round) {
        const auto goes = std::make_unique<Hart>(to_host(2), bus, &store);
        for (std::uint64_t page = 0; page < 4; ++page) {
            EXPECT_EQ(call(*goes, kRam + page * kPageBytes), page);
            EXPECT_EQ(call(stays, kRam + (3 - page) * kPageBytes), 3 - page);
        }
    }
}

// What one has decoded would be wrong for the other: it would read beyond its words, or run on at its exit.
TEST(SharedCode, HartsThatDecodeOtherwiseHaveTheirOwn) {
    constexpr std::uint32_t kWord = 0xcc0;
    const std::uint64_t words[] = {10, 11, 12};
    Config of_first = to_host();
    of_first.first_csr_word = kWord;
    of_first.csr_words = words;
    Config fewer = of_first, elsewhere = of_first, with_exit = of_first;
    fewer.csr_words = std::span(words).first(1);
    elsewhere.first_csr_word = kWord - 1;
    with_exit.has_exit_pc = true;
    with_exit.exit_pc = kRam + 4;
    CodeStore store;
    TestBus bus;
    bus.put_code(kRam, {csrr(a2, kWord + 1), jalr(x0, ra, 0)});
    Hart first(of_first, bus, &store);
    EXPECT_EQ(call(first), 11u);
    Hart of_fewer(fewer, bus, &store);
    EXPECT_EQ(of_fewer.run(1), StopReason::kTrap);
    Hart of_elsewhere(elsewhere, bus, &store);
    EXPECT_EQ(call(of_elsewhere), 12u);
    Hart of_exit(with_exit, bus, &store);
    EXPECT_EQ(of_exit.run(2), StopReason::kExit);
}

// All sharers have the same: what one of them has decoded stops the others too, and is gone with the set.
TEST(SharedCode, BreakpointsAreThoseOfAllSharers) {
    Two two;
    two.bus.put_code(kRam, {li(a2, 1), jalr(x0, ra, 0)});
    const std::uint64_t at = kRam + 4;
    const auto run_both = [&](StopReason expected) {
        for (Hart* hart : {&two.a, &two.b}) {
            hart->set_pc(kRam);
            EXPECT_EQ(hart->run(2), expected);
        }
    };
    run_both(StopReason::kBudget);
    EXPECT_TRUE(two.a.set_breakpoints({&at, 1}));
    EXPECT_TRUE(two.b.set_breakpoints({&at, 1}));
    run_both(StopReason::kBreakpoint);
    EXPECT_EQ(two.b.pc(), at);
    EXPECT_TRUE(two.a.set_breakpoints({}));
    EXPECT_TRUE(two.b.set_breakpoints({}));
    run_both(StopReason::kBudget);
}

}  // namespace
}  // namespace orrery::emu::test
