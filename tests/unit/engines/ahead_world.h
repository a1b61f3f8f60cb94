// A card's engines whose work-groups run on any number of host threads, and what must not depend on that.
#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "emulator/time/rate.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {

inline constexpr ModelTime kUs = 1'000'000;
inline constexpr std::uint64_t kArea = 32 << 20;
inline constexpr std::uint64_t kOut = 1 << 20;  // in the data
inline constexpr std::uint64_t kDataUsed = 6 << 20;
inline constexpr std::uint64_t kBandwidth = MemoryConfig{}.vram_bytes_per_second;

inline std::uint64_t digest(const std::uint8_t* data, std::size_t bytes) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < bytes; i += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, data + i, sizeof word);
        sum = (sum ^ word) * 0x9e37'79b9'7f4a'7c15;
        sum ^= sum >> 29;
    }
    return sum;
}

// What must not depend on threads.
struct Outcome {
    std::vector<std::uint64_t> memory;
    std::vector<std::vector<std::uint64_t>> completions;
    std::vector<std::uint64_t> counters;
    ModelTime end = 0;
    bool operator==(const Outcome&) const = default;
};

// A card's engines with random data, and a scenario on them.
class World {
  public:
    explicit World(unsigned threads, unsigned check = 0, std::uint64_t bandwidth = kBandwidth)
        : rig(64 << 20, 64 << 20, 8 << 20, memory(bandwidth)),
          unit(with_accounts(threads, check), rig.context) {
        load_image(rig);
        std::uint64_t random = 7;
        for (std::uint64_t i = 0; i < kDataUsed; i += 8)
            words()[i / 8] = random = random * 6364136223846793005 + 1442695040888963407;
        rig.mmu.before_change([this] { unit.settle(); });
    }
    static MemoryConfig memory(std::uint64_t bandwidth) {
        MemoryConfig config;
        config.vram_bytes_per_second = bandwidth;
        config.vram_latency_ps = 150 * kPsPerNs;
        config.pcie_latency_ps = 600 * kPsPerNs;
        return config;
    }
    static VectorConfig config(unsigned threads, unsigned check) {
        VectorConfig config;
        config.vlen = 1024;
        config.l1_bytes = 16 << 10;
        config.in_flight = 64;
        config.tlb_entries = 16;
        config.threads = threads;
        config.check = check;
        return config;
    }
    VectorConfig with_accounts(unsigned threads, unsigned check) {
        VectorConfig with = config(threads, check);
        with.account = [this](const LaunchAccount& launch) { accounts.push_back(launch); };
        return with;
    }
    std::uint64_t* words(std::uint64_t at = 0) {
        return reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + at);
    }
    orr_desc_kernel desc(Kernel kernel, std::uint64_t args, std::uint32_t groups, std::uint16_t items = 1) {
        return kernel_desc(rig, kernel, args, groups, items);
    }
    // Arguments at `at` in the data; their address there.
    std::uint64_t args(std::initializer_list<std::uint64_t> values, std::uint64_t at = 0) {
        std::ranges::copy(values, words(at));
        return kData + at;
    }
    void start(std::uint32_t port, const orr_desc_kernel& d) {
        ASSERT_TRUE(unit.port(port).start(Rig::words_of(d), port));
    }
    void run_until(ModelTime time) {
        while (rig.events.run_next(time)) {
        }
        rig.events.advance_to(time);
    }
    void finish() {
        while (rig.events.run_next(kNever - 1)) {
        }
    }
    Outcome outcome() {
        Outcome all;
        // By the megabyte, so that a difference says where.
        for (std::uint64_t at = 0; at < kDataUsed; at += 1 << 20)
            all.memory.push_back(digest(rig.vram.data() + kDataOffset + at, 1 << 20));
        all.memory.push_back(digest(rig.vram.data() + kArea, 1 << 20));
        all.memory.push_back(digest(rig.host_data, 1 << 20));
        for (const Completion& done : rig.done)
            all.completions.push_back({done.port, done.status, done.fault, done.detail, done.item, done.other,
                                       done.start_ps, done.end_ps, done.used_ps});
        // The MMU's own TLB is of the host's making, and what was ahead is what differs.
        for (unsigned counter = 0; counter < ORR_COUNTER_COUNT; ++counter) {
            const bool differs = counter == ORR_CTR_VECTOR_AHEAD || counter == ORR_CTR_MMU_TLB_HITS ||
                                 counter == ORR_CTR_MMU_TLB_MISSES;
            all.counters.push_back(differs ? 0 : rig.counters.get(counter));
        }
        all.end = rig.events.now();
        return all;
    }
    // Instructions that were computed ahead, of a hundred.
    std::uint64_t percent_ahead() const {
        return 100 * rig.counters.get(ORR_CTR_VECTOR_AHEAD) /
               std::max<std::uint64_t>(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS), 1);
    }

    Rig rig;
    std::vector<LaunchAccount> accounts;
    VectorUnit unit;
};

using Scenario = std::function<void(World&)>;

// With a sanitizer, which looks at each access by itself, everything takes ten times as long.
#ifdef ORRERY_SANITIZED
inline constexpr unsigned kThreads[] = {0, 2};
#else
inline constexpr unsigned kThreads[] = {0, 1, 2, 4};
#endif

// Without threads, and with some: gives the least percentage that was computed ahead with some.
inline std::uint64_t expect_same(const Scenario& scenario, std::uint64_t bandwidth = kBandwidth) {
    std::optional<Outcome> expected;
    std::uint64_t least = 100;
    for (const unsigned threads : kThreads) {
        World world(threads, 0, bandwidth);
        scenario(world);
        const Outcome outcome = world.outcome();
        if (!expected) {
            EXPECT_EQ(world.percent_ahead(), 0u);
            expected = outcome;
            continue;
        }
        EXPECT_EQ(outcome.memory, expected->memory) << threads << " threads";
        EXPECT_EQ(outcome.completions, expected->completions) << threads << " threads";
        EXPECT_EQ(outcome.counters, expected->counters) << threads << " threads";
        EXPECT_EQ(outcome.end, expected->end) << threads << " threads";
        least = std::min(least, world.percent_ahead());
    }
    return least;
}

inline Scenario launch(Kernel kernel, std::initializer_list<std::uint64_t> args, std::uint32_t groups,
                       std::uint16_t items = 1, std::uint32_t local = 0) {
    const std::vector<std::uint64_t> values(args);
    return [=](World& world) {
        std::ranges::copy(values, world.words());
        orr_desc_kernel d = world.desc(kernel, kData, groups, items);
        d.local_bytes = local;
        world.start(0, d);
        world.finish();
        ASSERT_EQ(world.rig.done.size(), 1u);
    };
}

}  // namespace orrery::emu::test
