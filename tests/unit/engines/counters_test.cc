// What engines count, against what the test knows of its kernels and copies: to the last instruction and
// byte.
#include <algorithm>
#include <array>
#include <cstring>
#include <list>

#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kLine = kMemoryLine, kCycle = 1000;

class CounterTruth : public testing::Test {
  protected:
    CounterTruth() : rig(64 << 20, 64 << 20, 8 << 20, far_memory()), unit(config(), rig.context) {
        load_image(rig);
        rig.memory.count_in(rig.counters);
    }
    static VectorConfig config() { return counted_config(); }
    std::uint64_t* words(std::uint64_t at) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at);
    }
    orr_desc_kernel desc(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                         std::uint16_t items = 1) {
        return kernel_desc(rig, kernel, kDataBytes - 4096, args, groups, items);
    }
    void run(const orr_desc_kernel& desc) { EXPECT_EQ(rig.run_one(unit.port(0), desc).status, ORR_DONE_OK); }
    std::uint64_t count(orr_counter counter) const { return rig.counters.get(counter); }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }

    Rig rig;
    VectorUnit unit;
};

// What is at hand, by the book: the pages, and the tables of 512 of them, that were used last.
class AtHand {
  public:
    explicit AtHand(std::size_t pages) : pages_(pages), tables_((pages + 3) / 4) {}
    void use(std::uint64_t va) {
        ++lookups;
        if (take(used_pages_, pages_, va / 4096)) return;
        ++misses;
        walked += take(used_tables_, tables_, va / 4096 / 512) ? 1 : 4;
    }
    std::uint64_t lookups = 0, misses = 0, walked = 0;

  private:
    // Whether it was there; it is the last one now.
    static bool take(std::list<std::uint64_t>& used, std::size_t most, std::uint64_t what) {
        const bool there = used.remove(what) > 0;
        used.push_front(what);
        if (used.size() > most) used.pop_back();
        return there;
    }
    std::size_t pages_, tables_;
    std::list<std::uint64_t> used_pages_, used_tables_;
};

// Each load of the chase is of a line that no cache has: its page is looked up, in the order of the ring.
TEST_F(CounterTruth, OfTranslations) {
    constexpr std::uint64_t kFollowed = 3'000, kRing = 65'536;  // over 4 MiB
    link_ring(words(0), kData, kRing);
    run(desc(kChase, {kData, kFollowed}, 1));
    AtHand model(config().tlb_entries);
    model.use(kData + kDataBytes - 4096);  // the arguments
    for (std::uint64_t i = 0; i < kFollowed; ++i)
        model.use(kData + i * 37 % kRing * kLine);
    EXPECT_GT(model.misses, 1'000u);
    EXPECT_LT(model.misses, model.lookups);
    EXPECT_GT(model.walked, model.misses);
    EXPECT_EQ(count(ORR_CTR_VECTOR_TLB_LOOKUPS), model.lookups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_TLB_MISSES), model.misses);
    EXPECT_EQ(count(ORR_CTR_VECTOR_TLB_WALKED), model.walked);
    EXPECT_EQ(count(ORR_CTR_VRAM_VECTOR_BYTES), (kFollowed + 1 + model.walked) * kLine);
}

// vle, vle, vadd, vse of 64-bit words, with the loop around them as it stands in kernels.cc.
TEST_F(CounterTruth, OfATriad) {
    constexpr std::uint64_t kWords = 4096 + 100, kGroups = 3, kMost = 8 * 2048 / 64;
    constexpr std::uint64_t kStrips = (kWords + kMost - 1) / kMost;
    run(desc(kTriad, {kData, kData + (2 << 20), kData + (4 << 20), kWords}, kGroups));
    EXPECT_EQ(count(ORR_CTR_VECTOR_INSTRUCTIONS), kGroups * (10 + 11 * kStrips + 1));
    // All that is not of vectors: csrr, four ld, mul, slli and three add, then the loop and ret.
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_SYSTEM), kGroups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_LOADS), kGroups * 4);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_MULDIV), kGroups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_INT), kGroups * (4 + 5 * kStrips));
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_JUMPS), kGroups * (kStrips + 1));
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_STORES) + count(ORR_CTR_VECTOR_SCALAR_FP) +
                  count(ORR_CTR_VECTOR_SCALAR_ATOMICS),
              0u);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_CONFIG), kGroups * kStrips);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_LOADS), kGroups * kStrips * 2);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_STORES), kGroups * kStrips);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_INT), kGroups * kStrips);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_FP) + count(ORR_CTR_VECTOR_SIMD_MOVES), 0u);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES_ACTIVE), kGroups * kWords * 4);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES), kGroups * kStrips * kMost * 4);
    EXPECT_EQ(count(ORR_CTR_VECTOR_FLOPS_F32) + count(ORR_CTR_VECTOR_FLOPS_F64), 0u);
    // The words, a line of arguments a group, and what walks read.
    EXPECT_EQ(count(ORR_CTR_VRAM_VECTOR_BYTES),
              kGroups * (3 * 8 * kWords + kLine) + kLine * count(ORR_CTR_VECTOR_TLB_WALKED));
    EXPECT_EQ(count(ORR_CTR_VRAM_BYTES), count(ORR_CTR_VRAM_VECTOR_BYTES));
    EXPECT_EQ(count(ORR_CTR_PCIE_READ_BYTES) + count(ORR_CTR_PCIE_WRITE_BYTES), 0u);
    // Each strip asks for pages of its own three rows, of 2 KiB or what is left.
    EXPECT_GE(count(ORR_CTR_VECTOR_TLB_LOOKUPS), kGroups * (kStrips * 3 + 1));
    EXPECT_GE(count(ORR_CTR_VECTOR_TLB_WALKED), count(ORR_CTR_VECTOR_TLB_MISSES));
    EXPECT_LE(count(ORR_CTR_VECTOR_TLB_MISSES), count(ORR_CTR_VECTOR_TLB_LOOKUPS));
}

// As loops of products are done in runs and turns of many instructions (core/vector/run.cc).
TEST_F(CounterTruth, OfAProduct) {
    constexpr std::uint64_t kDepth = 100, kGroups = 2, kLanes = 4 * 2048 / 32;
    run(desc(kProduct, {kData, kData + (1 << 20), kData + (2 << 20), kDepth}, kGroups));
    EXPECT_EQ(count(ORR_CTR_VECTOR_FLOPS_F32), kGroups * 4 * kDepth * kLanes * 2);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_FP), kGroups * 4 * kDepth);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_LOADS), kGroups * kDepth);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_STORES), kGroups * 4);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_MOVES), kGroups * 4);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_CONFIG), kGroups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_SYSTEM), kGroups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_MULDIV), kGroups);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_LOADS), kGroups * (4 + 4 * kDepth));
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_INT), kGroups * (8 + 6 * kDepth + 3));
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_JUMPS), kGroups * (kDepth + 1));
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES_ACTIVE), kGroups * (5 * kDepth + 8) * kLanes);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES), count(ORR_CTR_VECTOR_LANES_ACTIVE));
}

// Multiply-adds of eight registers full, two operations each.
TEST_F(CounterTruth, OfFloatingPointOfEachWidth) {
    constexpr std::uint64_t kNearest = 0, kTimes = 100, kBits = 8 * 2048;
    struct Width {
        std::uint64_t bits, vtype;
        orr_counter flops;
    };
    std::uint64_t lanes = 0;
    for (const Width& width :
         {Width{16, 0xcb, ORR_CTR_VECTOR_FLOPS_F16}, Width{32, 0xd3, ORR_CTR_VECTOR_FLOPS_F32},
          Width{64, 0xdb, ORR_CTR_VECTOR_FLOPS_F64}}) {
        run(desc(kFused, {kNearest, kTimes, width.vtype}, 1));
        EXPECT_EQ(count(width.flops), 2 * kTimes * kBits / width.bits) << width.bits;
        lanes += kTimes * kBits / width.bits;
    }
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_FP), 3 * kTimes);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES_ACTIVE), lanes);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES), lanes);
}

// In each round of the tree: one when words are there, two for each step, one when all have read the sum.
TEST_F(CounterTruth, OfBarriers) {
    constexpr std::uint64_t kRounds = 5, kGroups = 2, kOfARound = 1 + 2 * 3 + 1;
    constexpr std::uint16_t kItems = 6;  // three steps: of 1, 2 and 4
    orr_desc_kernel tree = desc(kTree, {kRounds, kData + (3 << 20)}, kGroups, kItems);
    tree.local_bytes = 8192;
    tree.item_stacks = kData + (6 << 20);
    tree.item_stack_pages = 1;
    run(tree);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BARRIERS), kRounds * kGroups * kItems * kOfARound);
    EXPECT_EQ(count(ORR_CTR_VECTOR_ITEMS), kGroups * kItems);
}

TEST_F(CounterTruth, OfAMask) {
    constexpr std::uint64_t kMask = 0xf0f0'1234'5678'9abc;
    run(desc(kMasked, {kData, kMask}, 1));
    // vmv.s.x of one element, and the load of those whose bit is set.
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES_ACTIVE), 1u + std::popcount(kMask));
    EXPECT_EQ(count(ORR_CTR_VECTOR_LANES), 1u + 8 * 2048 / 64);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_MOVES), 1u);
    EXPECT_EQ(count(ORR_CTR_VECTOR_SIMD_LOADS), 1u);
}

// A scalar kernel is busy for its instructions, for starts of items, and for what it waits for.
TEST_F(CounterTruth, OfWaitsForMemory) {
    constexpr std::uint64_t kFollowed = 500;
    link_ring(words(0), kData, 8192);
    run(desc(kChase, {kData, kFollowed}, 1));
    EXPECT_EQ(count(ORR_CTR_VECTOR_LAUNCH_PS), config().item_cycles * kCycle);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BUSY_PS),
              count(ORR_CTR_VECTOR_INSTRUCTIONS) * kCycle + count(ORR_CTR_VECTOR_LAUNCH_PS) +
                  count(ORR_CTR_VECTOR_LATENCY_PS) + count(ORR_CTR_VECTOR_BANDWIDTH_PS));
    // Each load misses the cache; the arguments are one line. Walks read their entries one after the other.
    EXPECT_EQ(count(ORR_CTR_VECTOR_LATENCY_PS),
              (kFollowed + 1 + count(ORR_CTR_VECTOR_TLB_WALKED)) * far_memory().vram_latency_ps);
    EXPECT_EQ(count(ORR_CTR_VRAM_BYTES), (kFollowed + 1 + count(ORR_CTR_VECTOR_TLB_WALKED)) * kLine);
    EXPECT_EQ(count(ORR_CTR_VECTOR_TLB_LOOKUPS), kFollowed + 1);
    EXPECT_EQ(count(ORR_CTR_VECTOR_LINK_PS), 0u);
    // Alone it had a core at once.
    EXPECT_EQ(count(ORR_CTR_VECTOR_QUEUED_PS), config().launch_ps);
}

// Each waits for all of its cycles but its own one.
TEST_F(CounterTruth, OfPauses) {
    constexpr std::uint64_t kTimes = 400, kGroups = 3;
    run(desc(kPauses, {kTimes}, kGroups));
    EXPECT_EQ(count(ORR_CTR_VECTOR_PAUSE_PS), kGroups * kTimes * (ORR_PAUSE_CYCLES - 1) * kCycle);
    EXPECT_EQ(count(ORR_CTR_VECTOR_INSTRUCTIONS), kGroups * (3 * kTimes + 2));
    EXPECT_EQ(count(ORR_CTR_VECTOR_SCALAR_SYSTEM), kGroups * kTimes);
    EXPECT_EQ(count(ORR_CTR_VECTOR_BUSY_PS),
              count(ORR_CTR_VECTOR_INSTRUCTIONS) * kCycle + count(ORR_CTR_VECTOR_LAUNCH_PS) +
                  count(ORR_CTR_VECTOR_LATENCY_PS) + count(ORR_CTR_VECTOR_BANDWIDTH_PS) +
                  count(ORR_CTR_VECTOR_PAUSE_PS));
}

// Kernels of one group each and all as long, for one core: each waits for all before it.
TEST_F(CounterTruth, OfKernelsThatQueue) {
    constexpr unsigned kTimes = 700;
    constexpr std::uint64_t kCodeVa = 0x30'0000'0000, kCodeOffset = 32 << 20;
    // li t0, kTimes; 1: addi t0, t0, -1; bnez t0, 1b; ret
    constexpr std::array<std::uint32_t, 4> kCode{kTimes << 20 | 0x293, 0xfff28293, 0xfe029ee3, 0x8067};
    std::memcpy(rig.vram.data() + kCodeOffset, kCode.data(), sizeof kCode);
    rig.map(kCodeVa, 4096, ORR_TARGET_VRAM, kCodeOffset, ORR_PTE_READ | ORR_PTE_EXEC);
    VectorConfig one = config();
    one.cores = 1;
    one.ports = 5;
    VectorUnit narrow(one, rig.context);
    orr_desc_kernel d = desc(kChase, {}, 1);
    d.entry = kCodeVa;
    const ModelTime takes = one.group_ps + (one.item_cycles + 1 + 2 * kTimes + 1) * kCycle;
    for (std::uint64_t n = 1; n <= one.ports; ++n) {
        const std::uint64_t before = count(ORR_CTR_VECTOR_QUEUED_PS);
        for (std::uint32_t port = 0; port < n; ++port)
            ASSERT_TRUE(narrow.port(port).start(Rig::words_of(d), port));
        rig.run();
        EXPECT_EQ(count(ORR_CTR_VECTOR_QUEUED_PS) - before, n * one.launch_ps + takes * n * (n - 1) / 2) << n;
    }
}

// Half of what one core does is done: all that has passed is counted, and no more once it is over.
TEST_F(CounterTruth, OfAKernelThatIsCutOff) {
    words(0)[0] = kData;
    const orr_desc_kernel d = desc(kChase, {kData, 1'000'000}, 1);
    ASSERT_TRUE(unit.port(0).start(Rig::words_of(d), 1));
    const ModelTime began = config().launch_ps + config().group_ps;
    std::uint64_t last = 0;
    for (ModelTime now = 0; now < 20'000'000; now += 333'333) {
        run_until(now);
        const std::uint64_t busy = count(ORR_CTR_VECTOR_BUSY_PS) + unit.busy_now();
        EXPECT_EQ(busy, now > began ? now - began : 0) << now;
        EXPECT_GE(busy, last);
        last = busy;
    }
    unit.port(0).abort();
    rig.run();
    EXPECT_EQ(count(ORR_CTR_VECTOR_BUSY_PS), last);
    EXPECT_EQ(unit.busy_now(), 0u);
    EXPECT_LE(count(ORR_CTR_VECTOR_LATENCY_PS) + count(ORR_CTR_VECTOR_LAUNCH_PS) +
                  count(ORR_CTR_VECTOR_BANDWIDTH_PS),
              last);
}

TEST_F(CounterTruth, OfCopies) {
    CopyEngine engine(0, {}, rig.context);
    constexpr std::uint64_t kBytes = 256 << 10;
    const Completion in = rig.run_one(engine, Rig::copy(kHostData, kData, kBytes));
    EXPECT_EQ(count(ORR_CTR_PCIE_READ_BYTES), kBytes);
    EXPECT_EQ(count(ORR_CTR_VRAM_BYTES), count(ORR_CTR_VRAM_COPY_BYTES));
    const std::uint64_t walked = count(ORR_CTR_VRAM_COPY_BYTES) - kBytes;
    EXPECT_EQ(walked % kLine, 0u);
    const Completion out = rig.run_one(engine, Rig::copy(kData, kHostData + kBytes, kBytes));
    EXPECT_EQ(count(ORR_CTR_PCIE_WRITE_BYTES), kBytes);
    EXPECT_EQ(count(ORR_CTR_PCIE_READ_BYTES), kBytes);
    EXPECT_EQ(count(ORR_CTR_COPY_BYTES), 2 * kBytes);
    EXPECT_EQ(count(ORR_CTR_COPY_BUSY_PS), in.end_ps - in.start_ps + out.end_ps - out.start_ps);
    // One that a reset ends was busy until then.
    const ModelTime began = rig.events.now();
    ASSERT_TRUE(engine.start(Rig::words_of(Rig::copy(kData, kHostData, kBytes)), 2));
    run_until(began + 3'000'000);
    const std::uint64_t before = count(ORR_CTR_COPY_BUSY_PS);
    EXPECT_EQ(engine.used(), 3'000'000u);
    engine.reset();
    EXPECT_EQ(count(ORR_CTR_COPY_BUSY_PS), before + 3'000'000);
    EXPECT_EQ(engine.used(), 0u);
}

// A copy of pages that it has not seen: one entry each, and all four levels where a table of 512 begins.
TEST_F(CounterTruth, OfACopysTranslations) {
    constexpr std::uint64_t kBytes = 256 << 10, kPages = kBytes / 4096;
    CopyRates rates;
    rates.tlb_entries = 256;
    CopyEngine engine(0, rates, rig.context);
    rig.run_one(engine, Rig::copy(kHostData, kData, kBytes));
    constexpr std::uint64_t kWalked = 2 * kPages + 2 * 3;
    EXPECT_EQ(count(ORR_CTR_VRAM_COPY_BYTES), kBytes + kWalked * kLine);
    // Where it begins it looks ahead, and where 2 us of PCIe's time are over a page is in two pieces.
    constexpr std::uint64_t kEnds = kBytes * 125 / 4 / 2'000'000;
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_LOOKUPS), 2 * (kPages + kEnds + 1));
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_MISSES), 2 * kPages);
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_WALKED), kWalked);
    // Now all are at hand.
    rig.run_one(engine, Rig::copy(kData, kHostData, kBytes));
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_LOOKUPS), 4 * (kPages + kEnds + 1));
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_MISSES), 2 * kPages);
    EXPECT_EQ(count(ORR_CTR_COPY_TLB_WALKED), kWalked);
    EXPECT_EQ(count(ORR_CTR_VRAM_COPY_BYTES), 2 * kBytes + kWalked * kLine);
}

}  // namespace
}  // namespace orrery::emu::test
