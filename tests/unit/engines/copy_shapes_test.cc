// Copies of several planes, and lists of copies.
#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "emulator/engines/save_area.h"
#include "tests/unit/engines/rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kSrc = 0x10'0000'0000, kDst = 0x20'0000'0000, kList = 0x30'0000'0000;
constexpr std::uint64_t kArea = 48 << 20, kListAt = 16 << 20;

class CopyShapes : public testing::Test {
  protected:
    CopyShapes() {
        rig.map(kSrc, 4 << 20, ORR_TARGET_HOST, Rig::kHostBase, ORR_PTE_READ);
        rig.map(kDst, 4 << 20, ORR_TARGET_VRAM, 0, ORR_PTE_WRITE);
        rig.map(kList, 1 << 20, ORR_TARGET_VRAM, kListAt, ORR_PTE_READ);
        std::mt19937_64 random(1);
        for (std::uint64_t i = 0; i < (4u << 20); i += 8) {
            const std::uint64_t word = random();
            std::memcpy(rig.host_data + i, &word, 8);
        }
    }
    static orr_desc_copy box(std::uint64_t width, std::uint32_t height, std::uint32_t depth) {
        orr_desc_copy desc{};
        desc.op = ORR_DESC_COPY;
        desc.asid = 1;
        desc.src = kSrc + 17;
        desc.dst = kDst + 5;
        desc.row_bytes = width;
        desc.rows = height;
        desc.planes = depth;
        desc.src_pitch = width + 13;
        desc.dst_pitch = width + 3;
        desc.pattern = (height + 2) | std::uint64_t{height + 1} << 32;
        return desc;
    }
    void expect_box(std::uint64_t width, std::uint32_t height, std::uint32_t depth) const {
        std::vector<std::uint8_t> want(4 << 20);
        for (std::uint64_t plane = 0; plane < depth; ++plane) {
            for (std::uint64_t row = 0; row < height; ++row) {
                const std::uint64_t to = 5 + (plane * (height + 1) + row) * (width + 3);
                const std::uint64_t from = 17 + (plane * (height + 2) + row) * (width + 13);
                std::memcpy(want.data() + to, rig.host_data + from, width);
            }
        }
        ASSERT_EQ(std::memcmp(rig.vram.data(), want.data(), want.size()), 0);
    }

    // Entries of random lengths, some of none, that fill `bytes` of the destination from random places.
    orr_desc_copies make_list(std::uint64_t bytes) {
        std::mt19937 random(9);
        auto* entries = reinterpret_cast<orr_copy_entry*>(rig.vram.data() + kListAt);
        orr_desc_copies desc{};
        desc.op = ORR_DESC_COPIES;
        desc.asid = 1;
        desc.list = kList;
        desc.bytes = bytes;
        for (std::uint64_t at = 0; at < bytes;) {
            const std::uint64_t length =
                std::min<std::uint64_t>(random() % 5 == 0 ? 0 : random() % 9000, bytes - at);
            const std::uint64_t from = random() % ((4u << 20) - 9000);
            entries[desc.entries++] = {kSrc + from, kDst + at, length, 0};
            std::memcpy(wanted.data() + at, rig.host_data + from, length);
            at += length;
        }
        entries[desc.entries++] = {kSrc, kDst, 0, 0};
        return desc;
    }
    orr_copy_entry& entry(std::size_t number) {
        return reinterpret_cast<orr_copy_entry*>(rig.vram.data() + kListAt)[number];
    }
    // Preempts and resumes until it is done. Returns how often.
    template <class Desc>
    unsigned run_in_parts(const Desc& desc) {
        std::mt19937 random(11);
        rig.done.clear();
        EXPECT_TRUE(engine.start(Rig::words_of(desc), 1));
        for (unsigned preempted = 0;; ++preempted) {
            rig.run(random() % 4);
            EXPECT_TRUE(engine.preempt(Preempt::kNow, kArea));
            rig.run();
            if (rig.done.size() != 1 || rig.done[0].status != ORR_DONE_PREEMPTED) {
                EXPECT_EQ(rig.done.at(0).status, ORR_DONE_OK);
                return preempted;
            }
            rig.done.clear();
            EXPECT_TRUE(engine.resume(kArea, 1));
        }
    }

    Rig rig;
    CopyEngine engine{5, CopyRates{}, rig.context};
    std::vector<std::uint8_t> wanted = std::vector<std::uint8_t>(4 << 20);
};

TEST_F(CopyShapes, Planes) {
    const orr_desc_copy desc = box(1000, 30, 40);
    EXPECT_EQ(engine.work_of(Rig::words_of(desc)), 1'200'000u);
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    expect_box(1000, 30, 40);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 1'200'000u);
}

TEST_F(CopyShapes, PlanesGoOnAfterAPreemption) {
    EXPECT_GT(run_in_parts(box(1000, 30, 40)), 10u);
    expect_box(1000, 30, 40);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 1'200'000u) << "no byte twice";
}

TEST_F(CopyShapes, APlaneCanBeReadManyTimes) {
    orr_desc_copy desc = box(100, 3, 7);
    desc.pattern &= ~0xffffffffull;  // no height at the source
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    for (std::uint64_t plane = 0; plane < 7; ++plane) {
        for (std::uint64_t row = 0; row < 3; ++row)
            ASSERT_EQ(std::memcmp(rig.vram.data() + 5 + (plane * 4 + row) * 103,
                                  rig.host_data + 17 + row * 113, 100),
                      0);
    }
}

TEST_F(CopyShapes, SizesOfPlanesAreChecked) {
    const auto status = [&](auto change) {
        orr_desc_copy desc = box(16, 2, 2);
        change(desc);
        const Completion done = rig.run_one(engine, desc);
        return done.status == ORR_DONE_FAULT ? 100 + done.fault : done.status;
    };
    EXPECT_EQ(status([](auto&) {}), ORR_DONE_OK);
    EXPECT_EQ(status([](auto& desc) { desc.planes = 1; }), ORR_DONE_BAD_DESC) << "heights of one plane";
    EXPECT_EQ(status([](auto& desc) { desc.planes = 0; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(status([](auto& desc) {
                  desc.rows = desc.planes = 0x2'0000;
                  desc.row_bytes = 65;
              }),
              ORR_DONE_BAD_DESC);
    EXPECT_EQ(status([](auto& desc) { desc.rows = desc.planes = 0xffff'ffff; }), ORR_DONE_BAD_DESC);
    EXPECT_EQ(status([](auto& desc) {
                  desc.pattern = 0xffff'ffff'ffff'ffff;
                  desc.src_pitch = 0x1'0000'0000;
              }),
              100 + ORR_FAULT_NON_CANONICAL)
        << "wraps by its height";
    EXPECT_EQ(status([](auto& desc) {
                  desc.rows = desc.planes = 0xffff'ffff;
                  desc.row_bytes = 0;
                  desc.src_pitch = desc.dst_pitch = ~0ull;
                  desc.pattern = ~0ull;
              }),
              100 + ORR_FAULT_NON_CANONICAL);
    orr_desc_copy fill = box(16, 2, 2);
    fill.op = ORR_DESC_FILL;
    fill.src = fill.src_pitch = 0;
    fill.pattern_bytes = 1;
    EXPECT_EQ(rig.run_one(engine, fill).status, ORR_DONE_BAD_DESC) << "a fill has no planes";
}

TEST_F(CopyShapes, AList) {
    const orr_desc_copies desc = make_list(3 << 20);
    ASSERT_GT(desc.entries, 500u);
    EXPECT_EQ(engine.work_of(Rig::words_of(desc)), 3u << 20);
    ASSERT_EQ(rig.run_one(engine, desc).status, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig.vram.data(), wanted.data(), wanted.size()), 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 3u << 20);
}

TEST_F(CopyShapes, AListGoesOnAfterAPreemption) {
    const orr_desc_copies desc = make_list(3 << 20);
    EXPECT_GT(run_in_parts(desc), 20u);
    EXPECT_EQ(std::memcmp(rig.vram.data(), wanted.data(), wanted.size()), 0);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 3u << 20) << "no byte twice";
}

// Whoever changes an entry that has been read changes nothing; one that has shrunk meanwhile is refused.
TEST_F(CopyShapes, AnEntryIsReadOnce) {
    orr_desc_copies desc{};
    desc.op = ORR_DESC_COPIES;
    desc.asid = 1;
    desc.list = kList;
    desc.entries = 1;
    desc.bytes = 2 << 20;
    entry(0) = {kSrc, kDst, 2 << 20, 0};
    ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
    rig.run(2);
    ASSERT_GT(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
    entry(0) = {~0ull, ~0ull, ~0ull, ~0ull};
    rig.run();
    ASSERT_EQ(rig.done.at(0).status, ORR_DONE_OK);
    EXPECT_EQ(std::memcmp(rig.vram.data(), rig.host_data, 2 << 20), 0);

    entry(0) = {kSrc, kDst, 2 << 20, 0};
    rig.done.clear();
    ASSERT_TRUE(engine.start(Rig::words_of(desc), 1));
    rig.run(3);
    ASSERT_TRUE(engine.preempt(Preempt::kNow, kArea));
    rig.run();
    ASSERT_EQ(rig.done.at(0).status, ORR_DONE_PREEMPTED);
    entry(0).bytes = 64;
    rig.done.clear();
    const std::uint64_t copied = rig.counters.get(ORR_CTR_COPY_BYTES);
    ASSERT_TRUE(engine.resume(kArea, 1));
    rig.run();
    EXPECT_EQ(rig.done.at(0).status, ORR_DONE_BAD_DESC);
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), copied);
}

TEST_F(CopyShapes, BadLists) {
    const orr_desc_copies good = make_list(1 << 20);
    const auto result = [&](const orr_desc_copies& desc) {
        const Completion done = rig.run_one(engine, desc);
        return std::pair{done.status == ORR_DONE_FAULT ? 100 + done.fault : done.status, done.detail};
    };
    const auto bad = [](std::uint64_t status, std::uint64_t detail = 0) { return std::pair{status, detail}; };
    const auto changed = [&](auto change) {
        orr_desc_copies desc = good;
        change(desc);
        return result(desc);
    };
    EXPECT_EQ(changed([](auto& desc) { desc.list += 16; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(changed([](auto& desc) { desc.entries = 0; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(changed([](auto& desc) { desc.bytes = (1ull << 40) + 1; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(changed([](auto& desc) { desc.reserved1 = 1; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(changed([](auto& desc) { desc.reserved2 = 1; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(changed([](auto& desc) { desc.reserved3[2] = 1; }), bad(ORR_DONE_BAD_DESC));
    EXPECT_EQ(rig.counters.get(ORR_CTR_COPY_BYTES), 0u);
    EXPECT_EQ(changed([](auto& desc) { ++desc.bytes; }), bad(ORR_DONE_BAD_DESC))
        << "more than its entries have";
    EXPECT_EQ(changed([](auto& desc) { --desc.bytes; }), bad(ORR_DONE_BAD_DESC)) << "less";
    EXPECT_EQ(changed([](auto& desc) {
                  desc.list = kList + (1 << 20) - 32;
                  desc.bytes = 0;
                  desc.entries = 2;
              }),
              bad(100 + ORR_FAULT_NOT_MAPPED, kList + (1 << 20)));
    EXPECT_EQ(changed([](auto& desc) { desc.list = ~0ull - 31; }),
              bad(100 + ORR_FAULT_NON_CANONICAL, ~0ull - 31));
    const orr_copy_entry third = entry(2);
    entry(2).reserved = 1;
    EXPECT_EQ(result(good), bad(ORR_DONE_BAD_DESC));
    entry(2) = {~0ull - 15, kDst, third.bytes, 0};
    EXPECT_EQ(result(good), bad(100 + ORR_FAULT_NON_CANONICAL, ~0ull - 15));
    entry(2) = third;
    EXPECT_EQ(rig.run_one(engine, good).other, 0u) << "nothing is wrong any more";
    rig.map(kList, 1 << 20, ORR_TARGET_PEER, 0, ORR_PTE_READ, 3);
    EXPECT_EQ(result(good), bad(100 + ORR_FAULT_PEER_READ, kList));
}

// Whatever is wrong with a list, the completion says at which of its entries; also after preemptions, when
// the engine knows the rest of the list only.
TEST_F(CopyShapes, ABadEntryIsNamed) {
    const orr_desc_copies desc = make_list(3 << 20);
    const auto at = [](std::uint64_t number) { return kList + number * sizeof(orr_copy_entry); };
    const auto other_with = [&](std::size_t number, orr_copy_entry is) {
        const orr_copy_entry was = std::exchange(entry(number), is);
        const std::uint64_t whole = rig.run_one(engine, desc).other;
        rig.done.clear();
        EXPECT_TRUE(engine.start(Rig::words_of(desc), 1));
        for (;;) {
            rig.run(2);
            if (rig.done.empty() && engine.preempt(Preempt::kNow, kArea)) rig.run();
            if (!rig.done.empty() && rig.done.back().status != ORR_DONE_PREEMPTED) break;
            if (!rig.done.empty()) EXPECT_TRUE(engine.resume(kArea, 1));
            rig.done.clear();
        }
        EXPECT_EQ(rig.done.back().other, whole);
        entry(number) = was;
        return whole;
    };
    EXPECT_EQ(other_with(0, {kSrc, kDst, 1, 1}), at(0));
    EXPECT_EQ(other_with(17, {kSrc, kDst, 4 << 20, 0}), at(17)) << "more than is left";
    EXPECT_EQ(other_with(99, {0x666000, kDst, 8, 0}), at(99));
    EXPECT_EQ(other_with(99, {kSrc, 0x666000, 8, 0}), at(99));
    orr_desc_copies less = desc;
    less.entries -= 300;
    EXPECT_EQ(rig.run_one(engine, less).other, at(less.entries)) << "behind the last";
}

// Each entry costs something, so a list of nothing ends in model time and in bounded pieces of host time.
TEST_F(CopyShapes, EntriesOfNothing) {
    orr_desc_copies desc{};
    desc.op = ORR_DESC_COPIES;
    desc.asid = 1;
    desc.list = kList;
    desc.entries = (1 << 20) / sizeof(orr_copy_entry);
    for (std::size_t i = 0; i < desc.entries; ++i)
        entry(i) = {};
    const Completion done = rig.run_one(engine, desc);
    EXPECT_EQ(done.status, ORR_DONE_OK);
    EXPECT_GE(rig.events.fired(), desc.entries / CopyEngine::kChunkPieces);
    EXPECT_GT(done.end_ps - done.start_ps, CopyRates{}.setup_ps + desc.entries);
}

}  // namespace
}  // namespace orrery::emu::test
