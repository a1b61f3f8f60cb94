// Descriptors that stand in memory, and the boxes that they ask for.
#include <gtest/gtest.h>

#include <random>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000, kDescs = 0x30'0000'0000;
constexpr std::uint64_t kArea = 48 << 20, kDescsAt = 16 << 20, kBytes = 4 << 20;

class CopyBox : public testing::Test {
  protected:
    CopyBox() {
        rig.map(kSrc, kBytes, ORR_TARGET_HOST, Rig::kHostBase, ORR_PTE_READ);
        rig.map(kDst, kBytes, ORR_TARGET_VRAM, 0, ORR_PTE_WRITE);
        rig.map(kDescs, 2 * ORR_PAGE_SIZE, ORR_TARGET_VRAM, kDescsAt, ORR_PTE_READ);
        std::mt19937_64 random(1);
        for (std::uint64_t i = 0; i < kBytes; i += 8) {
            const std::uint64_t word = random();
            std::memcpy(rig.host_data + i, &word, 8);
        }
        desc.op = ORR_DESC_BOX;
        desc.dimensions = 4;
        desc.src = kSrc + 17;
        desc.dst = kDst + 5;
        desc.row_bytes = 100;
        const std::uint32_t count[] = {5, 4, 3, 7};
        const std::uint64_t src_stride[] = {110, 1000, 9000, 50'000};
        // Its planes lie in another order than those of the source.
        const std::uint64_t dst_stride[] = {90'000, 12'000, 101, 300'003};
        for (unsigned n = 0; n < ORR_BOX_DIMENSIONS; ++n) {
            desc.count[n] = count[n];
            desc.src_stride[n] = src_stride[n];
            desc.dst_stride[n] = dst_stride[n];
        }
    }
    // Writes the box's descriptor at `at`, and makes what points to it.
    orr_desc_long pointer(std::uint64_t at = 8) {
        std::memcpy(rig.vram.data() + kDescsAt + at, &desc, sizeof desc);
        orr_desc_long to{};
        to.op = ORR_DESC_LONG;
        to.asid = 1;
        to.descriptor = kDescs + at;
        to.bytes = sizeof desc;
        return to;
    }
    void expect_copied() const {
        std::vector<std::uint8_t> want(kBytes);
        const auto& c = desc.count;
        for (std::uint64_t l = 0; l < c[3]; ++l)
            for (std::uint64_t k = 0; k < c[2]; ++k)
                for (std::uint64_t j = 0; j < c[1]; ++j)
                    for (std::uint64_t i = 0; i < c[0]; ++i) {
                        const auto at = [&](const auto& stride) {
                            return i * stride[0] + j * stride[1] + k * stride[2] + l * stride[3];
                        };
                        std::memcpy(want.data() + 5 + at(desc.dst_stride),
                                    rig.host_data + 17 + at(desc.src_stride), desc.row_bytes);
                    }
        ASSERT_EQ(std::memcmp(rig.vram.data(), want.data(), want.size()), 0);
    }
    std::uint64_t result(const orr_desc_long& to) {
        const Completion done = rig.run_one(engine, to);
        return done.status == ORR_DONE_FAULT ? 100 + done.fault : done.status;
    }
    // Preempts after `events` events. The save is at kArea.
    void start_and_save(std::size_t events) {
        rig.done.clear();
        ASSERT_TRUE(engine.start(Rig::words_of(pointer()), 1));
        rig.run(events);
        ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
        rig.run();
        ASSERT_EQ(rig.done.at(0).status, ORR_DONE_PREEMPTED);
        rig.done.clear();
    }
    std::uint64_t resume() {
        rig.done.clear();
        EXPECT_TRUE(engine.resume(kArea, 1));
        rig.run();
        return rig.done.at(0).status;
    }

    Rig rig;
    CopyEngine engine{5, CopyRates{}, rig.context};
    orr_desc_box desc{};
};

TEST_F(CopyBox, OfFiveDimensions) {
    EXPECT_EQ(engine.properties().descriptor_bytes, sizeof(orr_desc_box));
    EXPECT_EQ(engine.work_of(Rig::words_of(pointer())), 0u);
    ASSERT_EQ(result(pointer()), ORR_DONE_OK);
    expect_copied();
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 100u * 5 * 4 * 3 * 7);
}

TEST_F(CopyBox, OfFewerDimensions) {
    desc.dimensions = 2;
    for (unsigned n = 2; n < ORR_BOX_DIMENSIONS; ++n)
        desc.count[n] = 0, desc.src_stride[n] = desc.dst_stride[n] = 0;
    ASSERT_EQ(result(pointer()), ORR_DONE_OK);
    desc.count[2] = desc.count[3] = 1;
    expect_copied();
}

TEST_F(CopyBox, ItsDescriptorMayCrossPages) {
    ASSERT_EQ(result(pointer(ORR_PAGE_SIZE - 48)), ORR_DONE_OK);
    expect_copied();
}

// Fetching takes the latency of the memory, and its lines; a box of one row of the same bytes as a linear
// copy no more.
TEST_F(CopyBox, TheFetchTakesTime) {
    Rig timed(64 << 20, 64 << 20, 1 << 20,
              MemoryConfig{.vram_latency_ps = 300'000, .pcie_latency_ps = 900'000});
    timed.map(kSrc, kBytes, ORR_TARGET_VRAM, 0);
    timed.map(kDescs, ORR_PAGE_SIZE, ORR_TARGET_VRAM, kDescsAt);
    CopyEngine one(5, CopyRates{}, timed.context);
    desc.src = kSrc;
    desc.dst = kSrc + (1 << 20);
    desc.dimensions = 1;
    desc.row_bytes = 4096;
    for (unsigned n = 0; n < ORR_BOX_DIMENSIONS; ++n)
        desc.count[n] = n == 0 ? 1 : 0, desc.src_stride[n] = desc.dst_stride[n] = 0;
    const auto took = [&](const auto& words) {
        const Completion done = timed.run_one(one, words);
        EXPECT_EQ(done.status, ORR_DONE_OK);
        return done.end_ps - done.start_ps;
    };
    const orr_desc_copy linear = Rig::copy(desc.src, desc.dst, 4096);
    const orr_desc_long to = pointer(0);
    std::memcpy(timed.vram.data() + kDescsAt, &desc, sizeof desc);
    const ModelTime fetch = duration_ps(2 * kMemoryLine, timed.memory.vram().bytes_per_second()) + 300'000;
    const ModelTime without = took(linear);
    EXPECT_EQ(took(to), without + fetch);
}

TEST_F(CopyBox, IsReadOnceAndGoesOnAfterPreemptions) {
    // Enough bytes for many events.
    desc.row_bytes = 1000;
    desc.count[0] = 40, desc.count[1] = 10, desc.count[2] = 2, desc.count[3] = 2;
    const std::uint64_t src[] = {1001, 50'000, 600'000, 1'300'000},
                        dst[] = {1010, 45'000, 500'000, 1'100'000};
    std::copy_n(src, 4, desc.src_stride);
    std::copy_n(dst, 4, desc.dst_stride);
    start_and_save(3);
    const std::uint64_t moved = rig.counters.get(ORR_CTR_COPY_BYTES);
    EXPECT_GT(moved, 0u);
    // Who writes over the descriptor changes nothing.
    std::memset(rig.vram.data() + kDescsAt, 0xff, ORR_PAGE_SIZE);
    unsigned saves = 1;
    for (;; ++saves) {
        rig.done.clear();
        ASSERT_TRUE(engine.resume(kArea, 1));
        rig.run(1 + saves % 3);
        ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
        rig.run();
        if (rig.done.at(0).status == ORR_DONE_OK) break;
        ASSERT_EQ(rig.done.at(0).status, ORR_DONE_PREEMPTED);
    }
    EXPECT_GT(saves, 4u);
    expect_copied();
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 1000u * 40 * 10 * 4) << "no byte twice";
}

// Saved before it was fetched, it is fetched when it goes on.
TEST_F(CopyBox, PreemptedBeforeItsFetch) {
    start_and_save(0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
    desc.row_bytes = 64;
    static_cast<void>(pointer());
    EXPECT_EQ(resume(), ORR_DONE_OK);
    expect_copied();
}

TEST_F(CopyBox, BadOnes) {
    const orr_desc_long good = pointer();
    const auto with = [&](auto change) {
        orr_desc_long to = good;
        change(to);
        return result(to);
    };
    EXPECT_EQ(with([](auto& to) { to.descriptor += 4; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.bytes = 0; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.bytes += 4; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.bytes = ORR_DESC_LONG_BYTES + 8; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.bytes += 8; }), ORR_DONE_BAD_DESC) << "longer than a box";
    EXPECT_EQ(with([](auto& to) { to.bytes = 8; }), ORR_DONE_BAD_DESC) << "shorter";
    EXPECT_EQ(with([](auto& to) { to.reserved0 = 1; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.reserved1 = 1; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.reserved2[4] = 1; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(with([](auto& to) { to.descriptor = kDescs + 2 * ORR_PAGE_SIZE - 8; }),
              100 + ORR_FAULT_NOT_MAPPED);
    EXPECT_EQ(rig.done.at(0).detail, kDescs + 2 * ORR_PAGE_SIZE);
    EXPECT_EQ(with([](auto& to) { to.descriptor = ~0ull - 7; }), 100 + ORR_FAULT_NON_CANONICAL);

    const auto boxed = [&](auto change) {
        const orr_desc_box was = desc;
        change(desc);
        const std::uint64_t status = result(pointer());
        desc = was;
        return status;
    };
    EXPECT_EQ(boxed([](auto& box) { box.op = ORR_DESC_COPY; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.op = ORR_DESC_LONG; }), ORR_DONE_BAD_DESC) << "no chain of pointers";
    EXPECT_EQ(boxed([](auto& box) { box.asid = 1; }), ORR_DONE_BAD_DESC) << "memory names no address space";
    EXPECT_EQ(boxed([](auto& box) { box.dimensions = 0; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.dimensions = 5; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.dimensions = 3; }), ORR_DONE_BAD_DESC) << "what is behind them is 0";
    EXPECT_EQ(boxed([](auto& box) { box.count[2] = 0; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.row_bytes = 1ull << 40; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.row_bytes = 0, box.count[0] = box.count[1] = ~0u; }),
              ORR_DONE_BAD_DESC)
        << "too many rows of nothing";
    EXPECT_EQ(boxed([](auto& box) { std::fill_n(box.count, 4, ~0u); }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(boxed([](auto& box) { box.src_stride[3] = 1ull << 62; }), 100 + ORR_FAULT_NON_CANONICAL)
        << "wraps";
    EXPECT_EQ(boxed([](auto& box) { box.dst_stride[1] = ~0ull; }), 100 + ORR_FAULT_NON_CANONICAL);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
    rig.map(kDescs, ORR_PAGE_SIZE, ORR_TARGET_PEER, 0, ORR_PTE_READ, 3);
    EXPECT_EQ(result(good), 100 + ORR_FAULT_PEER_READ);
}

TEST_F(CopyBox, ItsSaveIsChecked) {
    start_and_save(1);
    auto* const header = reinterpret_cast<orr_save_header*>(rig.vram.data() + kArea);
    ASSERT_EQ(header->fetched_bytes, sizeof desc);
    const orr_save_header good = *header;
    const auto expect_refused = [&](const char* what) {
        EXPECT_EQ(resume(), ORR_DONE_BAD_DESC) << what;
        *header = good;
    };
    header->fetched_bytes = 8, expect_refused("another length");
    header->fetched_bytes = ~0ull, expect_refused("a length far away");
    header->fetched[0] ^= 1, expect_refused("no box");
    header->fetched[13] = ~0ull, expect_refused("a box that wraps");
    header->row = 5 * 4 * 3 * 7, expect_refused("row");
    header->fetched_bytes = 0, header->row = 1, expect_refused("a row of what has not been fetched");
    header->descriptor[0] = ORR_DESC_COPY | 1ull << 32, expect_refused("a copy that has fetched something");
    EXPECT_EQ(resume(), ORR_DONE_OK);
    expect_copied();
}

TEST_F(CopyBox, AbortBeforeTheFetch) {
    rig.done.clear();
    ASSERT_TRUE(engine.start(Rig::words_of(pointer()), 1));
    engine.abort();
    rig.run();
    ASSERT_EQ(rig.done.at(0).status, ORR_DONE_ABORTED);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
    ASSERT_EQ(result(pointer()), ORR_DONE_OK);
    expect_copied();
}

}  // namespace
}  // namespace orrery::emu::test
