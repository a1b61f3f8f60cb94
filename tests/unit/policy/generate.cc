#include "tests/unit/policy/generate.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

namespace orrery::policy {

using scenario::Job;
using scenario::kUs;
using scenario::Op;
using scenario::Scenario;

scenario::Scenario random_scenario(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    // Not std::uniform_int_distribution: its results differ from library to library.
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return low + random() % (high - low + 1);
    };
    Scenario made;
    made.name = fmt::format("random {}", seed);
    made.seed = seed;
    made.until = 400 * scenario::kMs;
    made.cards[0].vram_bytes = 64u << 20;
    made.cards[0].sku.vector_ports = static_cast<std::uint32_t>(pick(1, 4));
    made.cards[0].sku.copy_engines = static_cast<std::uint32_t>(pick(1, 2));
    made.cards[0].sku.vector_cores = 2;
    made.contexts.resize(pick(1, 3));
    for (std::size_t n = 0; n < made.contexts.size(); ++n)
        made.contexts[n] = {fmt::format("c{}", n), 0, 1, static_cast<std::uint32_t>(pick(1, 2)), 0, 0};
    made.queues.resize(pick(2, 24));
    constexpr std::uint32_t kWeights[] = {64, 64, 64, 16, 128, 256, 1, 1024};
    for (std::size_t n = 0; n < made.queues.size(); ++n) {
        auto& queue = made.queues[n];
        queue.name = fmt::format("q{}", n);
        queue.context = static_cast<std::uint32_t>(random() % made.contexts.size());
        queue.priority = static_cast<std::uint32_t>(pick(0, 9) == 0 ? ORR_PRIORITY_REALTIME : pick(0, 2));
        queue.weight = pick(0, 1) == 0 ? kWeights[random() % std::size(kWeights)]
                                       : static_cast<std::uint32_t>(pick(1, ORR_WEIGHT_MAX));
        // A second at most; below 50 us the firmware takes 50.
        queue.slice_us =
            pick(0, 1) == 0 ? static_cast<std::uint32_t>(pick(1, std::uint64_t{1} << pick(0, 20))) : 0;
        queue.limit_us = pick(0, 3) == 0 ? pick(20'000'000, 0xffffffff) : 0;
        queue.ring_in_vram = pick(0, 1) != 0;
        made.semaphores.push_back({fmt::format("s{}", n), 0});
    }
    std::vector<std::uint64_t> packets(made.queues.size()), signalled(made.queues.size());
    const std::uint64_t bursts = pick(10, 60);
    scenario::Ps at = 10 * kUs;
    for (std::uint64_t burst = 0; burst < bursts; ++burst) {
        at += pick(0, 2) == 0 ? 0 : pick(1, 200) * kUs;
        scenario::Submit submit;
        submit.at = at;
        submit.queue = static_cast<std::uint32_t>(random() % made.queues.size());
        const std::uint32_t queue = submit.queue;
        for (std::uint64_t jobs = pick(1, 6); jobs > 0 && packets[queue] < 60; --jobs) {
            Job job;
            job.ordered = pick(0, 4) == 0;
            const std::uint64_t what = pick(0, 19);
            if (what < 9) {
                job.op = Op::kKernel;
                job.groups = static_cast<std::uint32_t>(pick(1, 6));
                // Mostly short; now and then longer than a slice and a bound.
                job.cycles = pick(0, 9) == 0 ? pick(100'000, 1'500'000) : pick(500, 40'000);
            } else if (what < 12) {
                job.op = Op::kCopy;
                job.bytes = pick(1, 64) << 14;
            } else if (what < 14) {
                job.op = Op::kFill;
                job.bytes = pick(1, 64) << 12;
            } else if (what < 16) {
                job.op = Op::kSignal;
                job.semaphore = queue;
                job.value = ++signalled[queue];
            } else if (what < 17) {
                // For a signal that is in a ring already, whose queue waits for earlier ones only: no cycle
                // can be.
                const auto other = static_cast<std::uint32_t>(random() % made.queues.size());
                if (signalled[other] == 0 || other == queue) continue;
                job.op = Op::kWait;
                job.semaphore = other;
                job.value = signalled[other];
            } else if (what < 18) {
                job.op = Op::kBarrier;
            } else if (what < 19) {
                job.op = Op::kTimestamp;
            } else {
                job.op = Op::kNop;
            }
            if (job.op != Op::kKernel && job.op != Op::kCopy && job.op != Op::kFill && job.op != Op::kNop)
                job.ordered = false;
            ++packets[queue];
            submit.jobs.push_back(job);
        }
        if (!submit.jobs.empty()) made.submits.push_back(submit);
    }
    return made;
}

}  // namespace orrery::policy
