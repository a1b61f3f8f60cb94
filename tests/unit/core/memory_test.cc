// Loads, stores and atomics: page cache, MMIO, misaligned accesses, reservations.
#include <gtest/gtest.h>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kData = kRam + 0x8000;
constexpr std::uint64_t kWindow = 0xc000000000000000;  // in the high half of the address space

Config to_host() {
    return {.reset_pc = kRam, .trap_to_host = true};
}

// Runs `instructions` with a0 = address and a1 = value, to the end or to a trap.
struct Access1 : Machine {
    Access1(std::initializer_list<std::uint32_t> instructions, std::uint64_t address, std::uint64_t value = 0)
        : Machine(to_host()), count(instructions.size()) {
        code(instructions);
        hart.set_x(a0, address);
        hart.set_x(a1, value);
    }
    StopReason go() { return hart.run(count); }
    std::size_t count;
};

TEST(Memory, ExtendsLoads) {
    Access1 m({load(0, a2, a0, 0), load(1, a3, a0, 0), load(2, a4, a0, 0), load(3, a5, a0, 0),
               load(4, a6, a0, 0), load(5, a7, a0, 0), load(6, s2, a0, 0)},
              kData);
    m.bus.put<std::uint64_t>(kData, 0xfedcba9889abcdef);
    ASSERT_EQ(m.go(), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a2), 0xffffffffffffffefu);
    EXPECT_EQ(m.hart.x(a3), 0xffffffffffffcdefu);
    EXPECT_EQ(m.hart.x(a4), 0xffffffff89abcdefu);
    EXPECT_EQ(m.hart.x(a5), 0xfedcba9889abcdefu);
    EXPECT_EQ(m.hart.x(a6), 0xefu);
    EXPECT_EQ(m.hart.x(a7), 0xcdefu);
    EXPECT_EQ(m.hart.x(s2), 0x89abcdefu);
}

TEST(Memory, LoadIntoX0StillFaults) {
    Access1 good({ld(x0, a0, 0), addi(a2, x0, 1)}, kData);
    good.bus.put<std::uint64_t>(kData, 77);
    EXPECT_EQ(good.go(), StopReason::kBudget);
    EXPECT_EQ(good.hart.x(0), 0u);
    EXPECT_EQ(good.hart.x(a2), 1u);
    Access1 bad({ld(x0, a0, 0)}, 64);
    EXPECT_EQ(bad.go(), StopReason::kTrap);
}

TEST(Memory, MisalignedWorksWithinAndAcrossPages) {
    for (const std::uint64_t va : {kData + 1, kData + 0xffd, kData + 0xfff, kData + 0xff9}) {
        Access1 m({sd(a1, a0, 0), ld(a2, a0, 0), load(5, a3, a0, 3), store(1, a1, a0, 9), lw(a4, a0, 7)}, va,
                  0x8877665544332211);
        ASSERT_EQ(m.go(), StopReason::kBudget);
        EXPECT_EQ(m.bus.get<std::uint64_t>(va), 0x8877665544332211u);
        EXPECT_EQ(m.hart.x(a2), 0x8877665544332211u);
        EXPECT_EQ(m.hart.x(a3), 0x5544u);
        EXPECT_EQ(m.hart.x(a4), 0x22110088u);
    }
}

TEST(Memory, MisalignedAcrossAHoleFaultsWhole) {
    const std::uint64_t end = kRam + kRamBytes;
    Access1 store_over({sd(a1, a0, 0)}, end - 4, ~0ull);
    EXPECT_EQ(store_over.go(), StopReason::kTrap);
    EXPECT_EQ(store_over.hart.trap().cause, Cause::kStoreAccess);
    EXPECT_EQ(store_over.hart.trap().tval, end);  // the part that failed
    EXPECT_EQ(store_over.bus.get<std::uint32_t>(end - 4), 0u);
    Access1 load_over({ld(a2, a0, 0)}, end - 1);
    EXPECT_EQ(load_over.go(), StopReason::kTrap);
    EXPECT_EQ(load_over.hart.trap().tval, end);
    Access1 load_under({ld(a2, a0, 0)}, kRam - 1);
    EXPECT_EQ(load_under.go(), StopReason::kTrap);
    EXPECT_EQ(load_under.hart.trap().tval, kRam - 1);
    // The last and the first byte of the address space are neighbours.
    Access1 around({ld(a2, a0, 0)}, ~0ull);
    EXPECT_EQ(around.go(), StopReason::kTrap);
    // Of two parts that both fail it is the first, for stores too.
    Access1 store_around({sd(a1, a0, 0)}, ~0ull);
    EXPECT_EQ(store_around.go(), StopReason::kTrap);
    EXPECT_EQ(store_around.hart.trap().tval, ~0ull);
}

// The lowest addresses, with nothing cached: an empty line of the cache must not look like a hit.
TEST(Memory, PageZeroIsNotSpecial) {
    for (std::uint64_t va = 0; va < 9; ++va) {
        for (const std::uint32_t instruction :
             {ld(a2, a0, 0), lw(a2, a0, 0), load(1, a2, a0, 0), load(0, a2, a0, 0), sd(a1, a0, 0),
              sw(a1, a0, 0), store(1, a1, a0, 0)}) {
            Access1 m({instruction}, va);
            EXPECT_EQ(m.go(), StopReason::kTrap) << va << std::hex << " " << instruction;
        }
    }
}

TEST(Memory, MmioGoesThroughTheBusEachTime) {
    Access1 m({sw(a1, a0, 4), load(4, a2, a0, 1), load(1, a3, a0, 2), ld(a4, a0, 8), ld(a4, a0, 8)}, kMmio,
              0xffffffff12345678);
    m.bus.on_load = [](std::uint64_t, unsigned, std::uint64_t& value) {
        value = 0xfffffffffffff080;  // more than the size: cut off
        return true;
    };
    ASSERT_EQ(m.go(), StopReason::kBudget);
    const std::vector<MmioAccess> expected{{true, kMmio + 4, 4, 0x12345678},
                                           {false, kMmio + 1, 1, 0xfffffffffffff080},
                                           {false, kMmio + 2, 2, 0xfffffffffffff080},
                                           {false, kMmio + 8, 8, 0xfffffffffffff080},
                                           {false, kMmio + 8, 8, 0xfffffffffffff080}};
    EXPECT_EQ(m.bus.log, expected);
    EXPECT_EQ(m.hart.x(a2), 0x80u);
    EXPECT_EQ(m.hart.x(a3), 0xfffffffffffff080u);
}

TEST(Memory, MisalignedMmioTrapsWithoutACall) {
    Access1 m({lw(a2, a0, 0)}, kMmio + 2);
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kLoadMisaligned);
    Access1 n({sd(a2, a0, 0)}, kMmio + 4);
    EXPECT_EQ(n.go(), StopReason::kTrap);
    EXPECT_EQ(n.hart.trap().cause, Cause::kStoreMisaligned);
    EXPECT_TRUE(m.bus.log.empty() && n.bus.log.empty());
}

TEST(Memory, RefusedMmioIsAnAccessFault) {
    Access1 m({lw(a2, a0, 0)}, kMmio);
    m.bus.on_load = [](std::uint64_t, unsigned, std::uint64_t&) { return false; };
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kLoadAccess);
    EXPECT_EQ(m.hart.trap().tval, kMmio);
}

TEST(Memory, RightsAreKept) {
    Access1 m({ld(a2, a0, 0), sd(a1, a0, 0)}, kWindow, 1);
    m.bus.pages[kWindow] = PageRef::memory(m.bus.ram() + 0x8000, kPageRead);
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kStoreAccess);
    EXPECT_EQ(m.bus.get<std::uint64_t>(kData), 0u);
    Access1 fetch({jalr(x0, a0, 0)}, kWindow);
    fetch.bus.pages[kWindow] = PageRef::memory(fetch.bus.ram() + 0x8000, kPageRead | kPageWrite);
    fetch.hart.run(2);
    EXPECT_EQ(fetch.hart.trap().cause, Cause::kFetchAccess);
    Access1 amo_read_only({amo(0, 2, a2, a0, a1)}, kWindow);
    amo_read_only.bus.pages[kWindow] = PageRef::memory(amo_read_only.bus.ram() + 0x8000, kPageRead);
    EXPECT_EQ(amo_read_only.go(), StopReason::kTrap);
    EXPECT_EQ(amo_read_only.hart.trap().cause, Cause::kStoreAccess);
}

TEST(Memory, StrictPagesTakeAlignedLoadsAndStoresOnly) {
    const auto run = [](std::uint32_t instruction, std::uint64_t va) {
        Access1 m({instruction}, va, 1);
        m.bus.pages[kWindow] = PageRef::memory(m.bus.ram() + 0x8000, kPageRead | kPageWrite | kPageStrict);
        const StopReason reason = m.go();
        return reason == StopReason::kTrap ? static_cast<int>(m.hart.trap().cause) : 0;
    };
    EXPECT_EQ(run(ld(a2, a0, 0), kWindow), 0);
    EXPECT_EQ(run(sd(a2, a0, 0), kWindow), 0);
    EXPECT_EQ(run(ld(a2, a0, 0), kWindow + 4), static_cast<int>(Cause::kLoadMisaligned));
    EXPECT_EQ(run(store(1, a1, a0, 0), kWindow + 1), static_cast<int>(Cause::kStoreMisaligned));
    EXPECT_EQ(run(lr_w(a2, a0), kWindow), static_cast<int>(Cause::kLoadAccess));
    EXPECT_EQ(run(amo(0, 3, a2, a0, a1), kWindow), static_cast<int>(Cause::kStoreAccess));
}

TEST(PageCache, AsksOnceForAPageAndAgainAfterAFlush) {
    Access1 m({ld(a2, a0, 0), ld(a3, a0, 8), sd(a1, a0, 16), jal(x0, -12)}, kData);
    m.hart.run(40);
    const std::uint64_t before = m.bus.translations;
    EXPECT_LE(before, 3u);
    m.hart.run(40);
    EXPECT_EQ(m.bus.translations, before);
    m.hart.flush_pages();
    m.hart.run(40);
    EXPECT_GT(m.bus.translations, before);
}

TEST(PageCache, RevokedPageIsNotTouchedAgain) {
    Access1 m({ld(a2, a0, 0), sd(a1, a0, 8)}, kWindow, 5);
    auto page = std::make_unique<std::uint64_t[]>(kPageBytes / 8);
    page[0] = 1234;
    m.bus.pages[kWindow] =
        PageRef::memory(reinterpret_cast<std::uint8_t*>(page.get()), kPageRead | kPageWrite);
    ASSERT_EQ(m.go(), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a2), 1234u);
    EXPECT_EQ(page[1], 5u);
    m.bus.pages.clear();
    m.hart.flush_pages();
    page.reset();
    m.hart.set_pc(kRam);
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kLoadAccess);
}

// An unmap that a store to a device causes, while the page is in use by the same program.
TEST(PageCache, FlushFromInsideAStoreHoldsFromTheNextInstruction) {
    Access1 m({ld(a2, a0, 0), sw(x0, a3, 0), ld(a4, a0, 0)}, kWindow);
    m.hart.set_x(a3, kMmio);
    auto page = std::make_unique<std::uint64_t[]>(kPageBytes / 8);
    m.bus.pages[kWindow] = PageRef::memory(reinterpret_cast<std::uint8_t*>(page.get()), kPageRead);
    m.bus.on_store = [&](std::uint64_t, unsigned, std::uint64_t) {
        m.bus.pages.clear();
        m.hart.flush_pages();
        page.reset();
        return true;
    };
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.pc(), kRam + 8);
    EXPECT_EQ(m.bus.log.size(), 1u);
}

TEST(PageCache, ManyPagesShareALine) {
    // 256 lines: these all fall onto one.
    Machine m(to_host());
    m.code({ld(a1, a0, 0), addi(a1, a1, 1), sd(a1, a0, 0), add(a0, a0, a2), jal(x0, -16)});
    std::array<std::array<std::uint64_t, kPageBytes / 8>, 4> pages{};
    for (std::uint64_t i = 0; i < 4; ++i) {
        m.bus.pages[kWindow + (i << 20)] =
            PageRef::memory(reinterpret_cast<std::uint8_t*>(pages[i].data()), kPageRead | kPageWrite);
    }
    m.hart.set_x(a2, 1 << 20);
    for (int round = 0; round < 3; ++round) {
        m.hart.set_x(a0, kWindow);
        m.hart.set_pc(kRam);
        m.hart.run(20);
    }
    for (const auto& page : pages)
        EXPECT_EQ(page[0], 3u);
}

TEST(PageCache, ReadDirectlyAndTrappedOnStore) {
    struct Bus1 : TestBus {
        PageRef translate(std::uint64_t va, Access access) override {
            if ((va & ~(kPageBytes - 1)) != kWindow) return TestBus::translate(va, access);
            return access == Access::kLoad ? PageRef::memory(ram() + 0x8000, kPageRead) : PageRef::mmio();
        }
    } bus;
    Hart hart(to_host(), bus);
    bus.put_code(kRam, {ld(a2, a0, 0), sd(a1, a0, 0), ld(a2, a0, 0), sd(a1, a0, 8)});
    hart.set_x(a0, kWindow);
    ASSERT_EQ(hart.run(4), StopReason::kBudget);
    EXPECT_EQ(bus.log.size(), 2u);
}

// --- atomics ---

TEST(Atomic, WordFunctions) {
    struct Case {
        Word funct5;
        std::uint32_t memory, operand, result;
    };
    const Case cases[] = {{0, 0xffffffff, 2, 1},          {1, 5, 6, 6},
                          {4, 0xff, 0x0f, 0xf0},          {8, 0xf0, 0x0f, 0xff},
                          {12, 0xff, 0x1f0, 0xf0},        {16, 0xffffffff, 1, 0xffffffff},
                          {20, 0xffffffff, 1, 1},         {24, 0xffffffff, 1, 1},
                          {28, 0xffffffff, 1, 0xffffffff}};
    for (const Case& c : cases) {
        // Only the low half of the operand counts.
        Access1 m({amo(c.funct5, 2, a2, a0, a1)}, kData + 4, 0x5555555500000000u | c.operand);
        m.bus.put<std::uint64_t>(kData, 0x0123456789abcdef);
        m.bus.put<std::uint32_t>(kData + 4, c.memory);
        ASSERT_EQ(m.go(), StopReason::kBudget);
        EXPECT_EQ(m.bus.get<std::uint32_t>(kData + 4), c.result) << c.funct5;
        EXPECT_EQ(m.bus.get<std::uint32_t>(kData), 0x89abcdefu);
        EXPECT_EQ(m.hart.x(a2),
                  static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<std::int32_t>(c.memory))));
    }
}

TEST(Atomic, AddressRegisterMayBeTheDestination) {
    Access1 m({amo(0, 3, a0, a0, a0)}, kData);
    m.bus.put<std::uint64_t>(kData, 1);
    ASSERT_EQ(m.go(), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a0), 1u);
    EXPECT_EQ(m.bus.get<std::uint64_t>(kData), kData + 1);
}

TEST(Atomic, OnMmioUsesCompareExchange) {
    std::uint64_t device = 40;
    Access1 m({amo(0, 2, a2, a0, a1)}, kMmio, 2);
    m.bus.on_load = [&](std::uint64_t, unsigned, std::uint64_t& value) {
        value = device;
        return true;
    };
    m.bus.on_store = [&](std::uint64_t, unsigned, std::uint64_t value) {
        device = value;
        return true;
    };
    ASSERT_EQ(m.go(), StopReason::kBudget);
    EXPECT_EQ(device, 42u);
    EXPECT_EQ(m.hart.x(a2), 40u);
    // A device that changes with every look must not hang the hart.
    Access1 restless({amo(0, 2, a2, a0, a1)}, kMmio, 2);
    restless.bus.on_load = [&](std::uint64_t, unsigned, std::uint64_t& value) {
        value = ++device;
        return true;
    };
    EXPECT_EQ(restless.go(), StopReason::kTrap);
    EXPECT_EQ(restless.hart.trap().cause, Cause::kStoreAccess);
}

TEST(Reservation, PairSucceedsOnce) {
    Access1 m({lr_d(a2, a0), sc_d(a3, a1, a0), sc_d(a4, a1, a0)}, kData, 9);
    m.bus.put<std::uint64_t>(kData, 8);
    ASSERT_EQ(m.go(), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a2), 8u);
    EXPECT_EQ(m.hart.x(a3), 0u);
    EXPECT_EQ(m.hart.x(a4), 1u);
    EXPECT_EQ(m.bus.get<std::uint64_t>(kData), 9u);
}

TEST(Reservation, IsLostByAnotherAddressSizeOrValue) {
    Access1 address({lr_w(a2, a0), addi(a0, a0, 4), sc_w(a3, a1, a0)}, kData, 9);
    ASSERT_EQ(address.go(), StopReason::kBudget);
    EXPECT_EQ(address.hart.x(a3), 1u);
    Access1 size({lr_w(a2, a0), sc_d(a3, a1, a0)}, kData, 9);
    ASSERT_EQ(size.go(), StopReason::kBudget);
    EXPECT_EQ(size.hart.x(a3), 1u);
    Access1 value({lr_w(a2, a0), sc_w(a3, a1, a0)}, kData, 9);
    ASSERT_EQ(value.hart.run(1), StopReason::kBudget);
    value.bus.put<std::uint32_t>(kData, 1);  // somebody else
    ASSERT_EQ(value.hart.run(1), StopReason::kBudget);
    EXPECT_EQ(value.hart.x(a3), 1u);
    EXPECT_EQ(value.bus.get<std::uint32_t>(kData), 1u);
}

TEST(Reservation, IsPartOfTheState) {
    Access1 m({lr_w(a2, a0), sc_w(a3, a1, a0)}, kData, 9);
    ASSERT_EQ(m.hart.run(1), StopReason::kBudget);
    const HartState state = m.hart.state();
    EXPECT_EQ(state.reservation_size, 4u);
    m.hart.reset();
    m.hart.set_state(state);
    ASSERT_EQ(m.hart.run(1), StopReason::kBudget);
    EXPECT_EQ(m.hart.x(a3), 0u);
}

TEST(Reservation, FailedScStillNeedsTheRightToStore) {
    Access1 m({sc_w(a3, a1, a0)}, 0x4000000000);
    EXPECT_EQ(m.go(), StopReason::kTrap);
    EXPECT_EQ(m.hart.trap().cause, Cause::kStoreAccess);
}

}  // namespace
}  // namespace orrery::emu::test
