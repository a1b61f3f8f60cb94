#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "emulator/probes/errors.h"
#include "tests/unit/core/encode.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

TEST_F(VectorUnitTest, CountsBytes) {
    std::uint64_t expected[256] = {};
    for (std::uint32_t i = 0; i < 100'000; ++i) {
        rig.host_data[i] = static_cast<std::uint8_t>(i * i >> 3);
        ++expected[rig.host_data[i]];
    }
    data()[0] = kHostData;
    data()[1] = 100'000;
    data()[2] = kData + 4096;
    const Completion done = run(desc(kHistogram, kData, 16, 64));
    expect_end(done, ORR_DONE_OK, 0, 0);
    EXPECT_EQ(done.port, 2u);
    const auto* bins = reinterpret_cast<std::uint32_t*>(data(4096));
    for (unsigned i = 0; i < 256; ++i)
        EXPECT_EQ(bins[i], expected[i]) << i;
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_JOBS), 1u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 16u);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_ITEMS), 16u * 64);
    EXPECT_GT(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), 500'000u);
    EXPECT_GT(rig.counters.get(ORR_CTR_VECTOR_BUSY_PS), done.end_ps - done.start_ps);
}

TEST_F(VectorUnitTest, AtomicsOfAllCoresAddUp) {
    data()[2] = 5000;
    VectorConfig small = config();
    small.quantum = 37;  // cores interleave in the middle of LR/SC sequences
    unit = std::make_unique<VectorUnit>(small, rig.context);
    expect_end(run(desc(kAtomics, kData, 8, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data()[0], 8u * 5000);
    EXPECT_EQ(data()[1], 8u * 5000);
}

TEST_F(VectorUnitTest, EveryAtomicOnEveryKindOfMemory) {
    orr_desc_kernel d = desc(kEveryAtomic, kData, 1, 1);
    d.local_bytes = 64;
    for (const std::uint64_t place : {kData + 4096, kHostData + 64, std::uint64_t{ORR_LOCAL_BASE},
                                      std::uint64_t{ORR_STACK_TOP} - ORR_STACK_BYTES}) {
        data()[0] = place;
        data()[1] = kData + 8192;
        expect_end(run(d), ORR_DONE_OK, 0, 0);
        const std::uint64_t minus = ~std::uint64_t{1};
        const std::vector<std::uint64_t> expected{6, 11, 0xf4, 0xf0, 0x1f1, minus, 7, minus, 9, 7};
        const std::uint64_t* const out = data(8192);
        EXPECT_EQ(std::vector(out, out + 10), expected) << std::hex << place;
        EXPECT_EQ(std::vector(out + 10, out + 20), expected) << std::hex << place;
    }
}

// With AtomicOps off. The page is in the hart's page cache already.
TEST_F(VectorUnitTest, AtomicsOnHostMemoryThatTheFunctionMustNotDoFault) {
    constexpr std::uint64_t kCode = 48 << 10, kWord = kHostData + 64;
    const auto atomic = [](std::uint32_t function, std::uint32_t width) {
        return function << 27 | 6u << 20 | 10u << 15 | width << 12 | 7u << 7 | 0x2f;  // t2, t1, (a0)
    };
    const auto run_atomic = [&](std::uint32_t function, std::uint32_t width, std::uint64_t at) {
        const std::uint32_t program[] = {0x00053303,  // ld t1, (a0)
                                         0x00653023,  // sd t1, (a0)
                                         atomic(function, width) & (function == 2 ? ~(31u << 20) : ~0u),
                                         0x00008067};  // ret
        std::memcpy(rig.vram.data() + kCode, program, sizeof program);
        orr_desc_kernel d = desc(kLoop, at, 1, 1);
        d.entry = kImageBase + kCode;
        return run(d);
    };
    auto& word = *reinterpret_cast<std::uint64_t*>(rig.host_data + 64);
    // Swap, LR, SC and the others.
    for (const std::uint32_t function : {0u, 1u, 2u, 3u, 4u, 8u, 12u, 16u, 20u, 24u, 28u}) {
        for (const std::uint32_t width : {2u, 3u}) {
            rig.host.set_atomics(false);
            rig.mmu.flush_host();
            word = 5;
            const Completion refused = run_atomic(function, width, kWord);
            expect_end(refused, ORR_DONE_FAULT, ORR_FAULT_ATOMIC, kWord);
            EXPECT_EQ(refused.other, kImageBase + kCode + 8) << "the pc";
            EXPECT_EQ(word, 5u) << function;
            expect_end(run_atomic(function, width, kData), ORR_DONE_OK, 0, 0);
            rig.host.set_atomics(true);
            rig.mmu.flush_host();
            expect_end(run_atomic(function, width, kWord), ORR_DONE_OK, 0, 0);
        }
    }
    // What is misaligned too is that first.
    rig.host.set_atomics(false);
    rig.mmu.flush_host();
    expect_end(run_atomic(0, 2, kWord + 2), ORR_DONE_FAULT, ORR_FAULT_MISALIGNED, kWord + 2);
}

TEST_F(VectorUnitTest, WorkGroupMemoryStartsZeroedAndIsTheGroupsOwn) {
    orr_desc_kernel d = desc(kLocal, kData, 100, 256);
    d.local_bytes = 256 * 8;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    for (unsigned group = 0; group < 100; ++group)
        EXPECT_EQ(data()[group], 256u * 257 / 2) << group;
    // Memory that was not asked for is not there, also when an earlier kernel had it.
    d.local_bytes = 0;
    expect_end(run(d), ORR_DONE_FAULT, ORR_FAULT_NON_CANONICAL, ORR_LOCAL_BASE);
}

TEST_F(VectorUnitTest, ComputesInFloatingPoint) {
    auto* in = reinterpret_cast<double*>(data(4096));
    const auto* out = reinterpret_cast<double*>(data(8192));
    for (int i = 0; i < 128; ++i)
        in[i] = 0.1 * i - 3.7;
    data()[0] = kData + 4096;
    data()[1] = kData + 8192;
    expect_end(run(desc(kFloat, kData, 4, 32)), ORR_DONE_OK, 0, 0);
    for (int i = 0; i < 128; ++i) {
        const auto narrow = static_cast<float>(in[i]);
        const float square = narrow * narrow;
        EXPECT_EQ(out[i], std::sqrt(std::fma(in[i], in[i], 1.0)) / 3.0 + static_cast<double>(square)) << i;
    }
}

TEST_F(VectorUnitTest, ItemsKnowWhereTheyAre) {
    orr_desc_kernel d = desc(kIds, kData, 3, 5);
    d.grid_y = 4;
    d.grid_z = 2;
    d.block_y = 2;
    d.block_z = 3;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    const std::uint64_t* at = data();
    for (unsigned gz = 0; gz < 2; ++gz)
        for (unsigned gy = 0; gy < 4; ++gy)
            for (unsigned gx = 0; gx < 3; ++gx)
                for (unsigned iz = 0; iz < 3; ++iz)
                    for (unsigned iy = 0; iy < 2; ++iy)
                        for (unsigned ix = 0; ix < 5; ++ix, at += 4) {
                            ASSERT_EQ(at[0], gx);
                            ASSERT_EQ(at[1], gy);
                            ASSERT_EQ(at[2], gz);
                            ASSERT_EQ(at[3], ix + 1000 * iy + 1'000'000 * iz + (2ull << 32));
                        }
}

TEST_F(VectorUnitTest, EveryItemStartsWithCleanRegisters) {
    expect_end(run(desc(kRegisters, kData, 20, 10)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data()[0], 0u);
    EXPECT_EQ(data()[1], ORR_STACK_TOP);
    EXPECT_EQ(data()[2], ORR_KERNEL_EXIT);
    EXPECT_EQ(data()[3], 0u);
}

TEST_F(VectorUnitTest, ClocksShowModelTime) {
    const Completion done = run(desc(kClock, kData, 16, 4));
    expect_end(done, ORR_DONE_OK, 0, 0);
    bool cores[8] = {};
    for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t* at = data(i * 32);
        EXPECT_GE(at[0], done.start_ps / 1000) << i;
        EXPECT_LE(at[0], done.end_ps / 1000) << i;
        EXPECT_GT(at[2], 0u);
        ASSERT_LT(at[3], 8u);
        cores[at[3]] = true;
        if (i % 4 != 0) {
            EXPECT_GE(at[0], at[-4]) << "items run one after another";
            EXPECT_GT(at[2], at[-2]);
        }
    }
    for (bool core : cores)
        EXPECT_TRUE(core) << "a core had no work";
}

TEST_F(VectorUnitTest, TrapsEndTheKernel) {
    expect_end(run(desc(kIllegal, 0, 1000, 1)), ORR_DONE_TRAP, 2, entry(kIllegal));
    expect_end(run(desc(kEcall, 0, 1000, 1)), ORR_DONE_TRAP, 11, entry(kEcall));
    expect_end(run(desc(kWaitForever, 0, 1, 1)), ORR_DONE_TRAP, 2, entry(kWaitForever) + 4);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_GROUPS), 0u);
    expect_end(run(desc(kMark, kData, 4, 4)), ORR_DONE_OK, 0, 0);
}

TEST_F(VectorUnitTest, BadAddressesEndTheKernelWithTheirFault) {
    const std::uint64_t nowhere = 0x30'0000'0000;
    expect_end(run(desc(kLoad, nowhere, 100, 4)), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, nowhere);
    expect_end(run(desc(kStore, nowhere + 8, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, nowhere + 8);
    expect_end(run(desc(kJump, nowhere + 2, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, nowhere + 2);
    expect_end(run(desc(kStore, kImageBase, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_PERMISSION, kImageBase);
    expect_end(run(desc(kJump, kData, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_PERMISSION, kData);
    expect_end(run(desc(kJump, ORR_STACK_TOP - 64, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_PERMISSION,
               ORR_STACK_TOP - 64);
    expect_end(run(desc(kLoad, 0, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, 0);
    expect_end(run(desc(kLoad, 1ull << 47, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, 1ull << 47);
    expect_end(run(desc(kLoad, 1ull << 63, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_NON_CANONICAL, 1ull << 63);
    expect_end(run(desc(kMisalignedAtomic, kData, 1, 1)), ORR_DONE_FAULT, ORR_FAULT_MISALIGNED, kData + 2);
    orr_desc_kernel d = desc(kMark, kData, 1, 1);
    d.asid = 9;
    expect_end(run(d), ORR_DONE_FAULT, ORR_FAULT_NO_CONTEXT, d.entry);
}

TEST_F(VectorUnitTest, BadAddressesTellWhereTheKernelWas) {
    EXPECT_EQ(run(desc(kStore, 8, 1, 1)).other, entry(kStore));
    EXPECT_EQ(run(desc(kMisalignedAtomic, kData, 1, 1)).other, entry(kMisalignedAtomic) + 2);
    EXPECT_EQ(run(desc(kJump, 8, 1, 1)).other, 8u);
}

TEST_F(VectorUnitTest, AStackThatOverflowsIsAFault) {
    const Completion done = run(desc(kRecurse, 0, 1, 1));
    EXPECT_EQ(done.status, ORR_DONE_FAULT);
    EXPECT_EQ(done.detail, ORR_STACK_TOP - ORR_STACK_BYTES - 256);
}

TEST_F(VectorUnitTest, JumpingToTheExitEndsTheItem) {
    expect_end(run(desc(kJump, ORR_KERNEL_EXIT, 3, 3)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_ITEMS), 9u);
    orr_desc_kernel d = desc(kMark, 0, 1000, 1024);
    d.entry = ORR_KERNEL_EXIT;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_VECTOR_ITEMS), 9u + 1'024'000);
}

TEST_F(VectorUnitTest, AbortEndsALoopWithinAQuantum) {
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(desc(kLoop, 0, 100, 1)), 1));
    ASSERT_TRUE(unit->port(1).start(Rig::words_of(desc(kMark, kData, 100, 1)), 2));
    EXPECT_EQ(rig.run(1000), 1000u);
    unit->port(0).abort();
    const std::uint64_t at_abort = rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS);
    rig.run();
    ASSERT_EQ(rig.done.size(), 2u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_ABORTED);
    EXPECT_EQ(rig.done[0].tag, 1u);
    EXPECT_EQ(rig.done[1].status, ORR_DONE_OK) << "the other dispatch had no core, and gets them all";
    for (unsigned i = 0; i < 100; ++i)
        EXPECT_EQ(data()[i], 1u);
    EXPECT_LT(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS) - at_abort, 10'000u);
}

TEST_F(VectorUnitTest, PortsShareTheCoresFairly) {
    data()[0] = 2000;
    const orr_desc_kernel d = desc(kSpin, kData, 64, 4);
    for (unsigned port = 0; port < 4; ++port)
        ASSERT_TRUE(unit->port(port).start(Rig::words_of(d), port));
    EXPECT_FALSE(unit->port(0).start(Rig::words_of(d), 9));
    rig.run();
    ASSERT_EQ(rig.done.size(), 4u);
    // Round robin: all end close to one another, not one after another.
    const ModelTime first = rig.done.front().end_ps, last = rig.done.back().end_ps;
    EXPECT_LT(last - first, last / 10);
}

TEST_F(VectorUnitTest, MoreCoresTakeLessModelTime) {
    data()[0] = 2000;
    const orr_desc_kernel d = desc(kSpin, kData, 64, 4);
    const Completion eight = run(d);
    VectorConfig one = config();
    one.cores = 1;
    unit = std::make_unique<VectorUnit>(one, rig.context);
    const Completion single = run(d);
    const double ratio = static_cast<double>(single.end_ps - single.start_ps) /
                         static_cast<double>(eight.end_ps - eight.start_ps);
    EXPECT_GT(ratio, 7.5);
    EXPECT_LE(ratio, 8.0);
}

TEST_F(VectorUnitTest, SameRunGivesSameTimes) {
    data()[0] = 777;
    const orr_desc_kernel d = desc(kSpin, kData, 100, 7);
    const Completion first = run(d);
    Rig other;
    load_image(other);
    std::memcpy(other.vram.data() + kDataOffset, data(), 4096);
    VectorUnit again(config(), other.context);
    const Completion second = other.run_one(again.port(0), d);
    EXPECT_EQ(second.end_ps, first.end_ps);
    EXPECT_EQ(other.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS));
}

TEST_F(VectorUnitTest, TheLengthOfAQuantumChangesNoResult) {
    data()[2] = 100;
    expect_end(run(desc(kAtomics, kData, 32, 3)), ORR_DONE_OK, 0, 0);
    VectorConfig tiny = config();
    tiny.quantum = 1;
    unit = std::make_unique<VectorUnit>(tiny, rig.context);
    expect_end(run(desc(kAtomics, kData, 32, 3)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data()[0], 2u * 32 * 3 * 100);
    EXPECT_EQ(data()[1], 2u * 32 * 3 * 100);
}

TEST_F(VectorUnitTest, SeesCodeThatWasReplacedBetweenDispatches) {
    expect_end(run(desc(kMark, kData, 8, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data()[0], 1u);
    const std::uint32_t ret = 0x00008067;
    std::memcpy(rig.vram.data() + (entry(kMark) - kImageBase), &ret, sizeof ret);
    expect_end(run(desc(kMark, kData, 8, 1)), ORR_DONE_OK, 0, 0);
    EXPECT_EQ(data()[0], 1u);
}

// Jumps from page to page: the more of them, the more often the host has to look one up. The card goes on
// looking about, the model's result is the same, and somebody is told.
TEST_F(VectorUnitTest, AKernelThatIsSlowOnTheHostHoldsNobodyUp) {
    constexpr std::uint64_t kCode = 0x30'0000'0000, kCodeOffset = 32 << 20;
    constexpr std::uint64_t kJumps = 300'000;
    rig.map(kCode, 64 * ORR_PAGE_SIZE, ORR_TARGET_VRAM, kCodeOffset, ORR_PTE_READ | ORR_PTE_EXEC);
    std::FILE* const log = std::tmpfile();
    struct Ran {
        std::size_t events;
        ModelTime took;
    };
    const auto run_over = [&](std::uint64_t pages) {
        // a0: jumps left.
        for (std::uint64_t page = 0; page < pages; ++page) {
            const auto next = static_cast<int>((page + 1) % pages * ORR_PAGE_SIZE) -
                              static_cast<int>(page * ORR_PAGE_SIZE) - 8;
            const Word code[] = {addi(a0, a0, -1), beq(a0, x0, 8), jal(x0, next), jalr(x0, ra, 0)};
            std::memcpy(rig.vram.data() + kCodeOffset + page * ORR_PAGE_SIZE, code, sizeof code);
        }
        orr_desc_kernel d = desc(kSpin, kJumps, 1, 1);
        d.entry = kCode;
        rig.done.clear();
        Errors errors(rig.counters, log);
        rig.context.errors = &errors;
        EXPECT_TRUE(unit->port(0).start(Rig::words_of(d), 1));
        const Ran ran{rig.run(), rig.done.empty() ? 0 : rig.done[0].end_ps - rig.done[0].start_ps};
        EXPECT_EQ(rig.done.size(), 1u);
        EXPECT_EQ(rig.done.empty() ? ORR_DONE_FAULT : rig.done[0].status, ORR_DONE_OK);
        rig.context.errors = nullptr;
        errors.flush();
        return ran;
    };
    const auto logged = [&] { return std::ftell(log); };
    const Ran few = run_over(16);
    const Ran more = run_over(17);
    EXPECT_EQ(more.took, few.took);
    EXPECT_EQ(logged(), 0);
    const Ran most = run_over(64);
    EXPECT_EQ(most.took, few.took);
    EXPECT_GT(logged(), 0);
    // No go brings in more than 64 pages of code.
    EXPECT_GE(most.events, kJumps / 64);
    EXPECT_EQ(std::fclose(log), 0);
}

TEST_F(VectorUnitTest, LetsGoOfPagesThatGo) {
    // In the middle of a kernel: the mapping goes away, the kernel faults, nothing else happens.
    data()[0] = kHostData;
    data()[1] = 1 << 20;
    data()[2] = kData + 4096;
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(desc(kHistogram, kData, 8, 16)), 1));
    rig.run(30);
    ASSERT_TRUE(rig.done.empty());
    rig.mmu.flush_host();
    ASSERT_TRUE(rig.host.remove(Rig::kHostBase, 64 << 20).has_value());
    rig.run();
    ASSERT_EQ(rig.done.size(), 1u);
    EXPECT_EQ(rig.done[0].status, ORR_DONE_FAULT);
    EXPECT_EQ(rig.done[0].fault, ORR_FAULT_PAGE_RANGE);
}

TEST_F(VectorUnitTest, AnotherProcessSeesNoStack) {
    // Same addresses, another address space: what the first left on the stack is gone.
    ASSERT_EQ(rig.mmu.set_root(2, rig.vram.size() - ORR_PAGE_SIZE), ORR_FAULT_NONE);
    VectorConfig one = config();
    one.cores = 1;
    unit = std::make_unique<VectorUnit>(one, rig.context);
    expect_end(run(desc(kStore, ORR_STACK_TOP - 4096, 1, 1)), ORR_DONE_OK, 0, 0);
    // The histogram takes its byte count from that word of the stack: what the first process left there makes
    // it read address 0, and a cleared one makes it do nothing.
    orr_desc_kernel d = desc(kHistogram, ORR_STACK_TOP - 4096 - 8, 1, 1);
    expect_end(run(d), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, 0);
    d.asid = 2;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    // An ASID that got a new root may be another process too.
    d.asid = 1;
    expect_end(run(desc(kStore, ORR_STACK_TOP - 4096, 1, 1)), ORR_DONE_OK, 0, 0);
    expect_end(run(d), ORR_DONE_FAULT, ORR_FAULT_NOT_MAPPED, 0);
    ASSERT_EQ(rig.mmu.set_root(1, rig.vram.size() - ORR_PAGE_SIZE), ORR_FAULT_NONE);
    expect_end(run(d), ORR_DONE_OK, 0, 0);
}

TEST_F(VectorUnitTest, RefusesBadDescriptors) {
    const auto expect_bad = [&](const orr_desc_kernel& d) { EXPECT_EQ(run(d).status, ORR_DONE_BAD_DESC); };
    const orr_desc_kernel good = desc(kMark, kData, 1, 1);
    orr_desc_kernel d = good;
    d.op = ORR_DESC_COPY;
    expect_bad(d);
    d = good, d.flags = 2, expect_bad(d);
    d = good, d.item_stack_pages = 1, expect_bad(d);
    d = good, d.item_stacks = kData, expect_bad(d);
    d = good, d.item_stack_pages = 1, d.item_stacks = kData + 8, expect_bad(d);
    d = good, d.item_stack_pages = 1, d.item_stacks = ORR_STACK_TOP, expect_bad(d);
    d = good, d.item_stack_pages = ORR_ITEM_STACK_MAX_PAGES + 1, d.item_stacks = kData, expect_bad(d);
    // Nor may they end beyond.
    constexpr std::uint64_t kLastPage = (std::uint64_t{1} << 47) - ORR_PAGE_SIZE;
    d = good, d.item_stack_pages = 1, d.item_stacks = kLastPage;
    expect_end(run(d), ORR_DONE_OK, 0, 0);
    d.block_x = 2, expect_bad(d);
    d.block_x = 1, d.grid_x = 2, expect_bad(d);
    d = good, d.reserved = 1, expect_bad(d);
    d = good, d.entry += 1, expect_bad(d);
    d = good, d.grid_y = 0, expect_bad(d);
    d = good, d.block_z = 0, expect_bad(d);
    d = good, d.grid_x = d.grid_y = d.grid_z = 0xffffffff, expect_bad(d);
    d = good, d.grid_x = 0x80000001, expect_bad(d);
    d = good, d.block_x = 1025, expect_bad(d);
    d = good, d.block_x = 0xffff, d.block_y = 0xffff, d.block_z = 0xffff, expect_bad(d);
    d = good, d.local_bytes = ORR_LOCAL_BYTES + 1, expect_bad(d);
}

TEST_F(VectorUnitTest, ResetForgetsEverything) {
    ASSERT_TRUE(unit->port(0).start(Rig::words_of(desc(kLoop, 0, 100, 1)), 1));
    ASSERT_TRUE(unit->port(1).start(Rig::words_of(desc(kMark, kData, 100, 1)), 2));
    rig.run(100);
    unit->reset();
    EXPECT_EQ(rig.run(), 0u);
    EXPECT_TRUE(rig.done.empty());
    EXPECT_FALSE(unit->port(0).busy());
    expect_end(run(desc(kMark, kData, 10, 1)), ORR_DONE_OK, 0, 0);
}

}  // namespace
}  // namespace orrery::emu::test
