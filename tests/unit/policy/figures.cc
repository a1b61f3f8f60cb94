#include "tests/unit/policy/figures.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <orrery/hw/counters.h>

#include "tests/unit/scenario/jobs.h"
#include "tools/records/statistics.h"

namespace orrery::policy {

namespace {

using namespace scenario;

Job plain(Op op) {
    Job job;
    job.op = op;
    return job;
}

// One card, queues spread over contexts of 256.
Scenario with_queues(const std::string& name, std::size_t count) {
    Scenario made;
    made.name = name;
    made.contexts.resize((count + 255) / 256);
    for (std::size_t n = 0; n < made.contexts.size(); ++n)
        made.contexts[n].name = fmt::format("context {}", n);
    made.queues.resize(count);
    for (std::size_t n = 0; n < count; ++n) {
        made.queues[n].name = fmt::format("queue {}", n);
        made.queues[n].context = static_cast<std::uint32_t>(n / 256);
    }
    return made;
}

std::uint32_t add_queue(Scenario& to, const std::string& name) {
    Queue queue;
    queue.name = name;
    to.queues.push_back(queue);
    return static_cast<std::uint32_t>(to.queues.size() - 1);
}

std::expected<Result, std::string> play(const Scenario& scenario, bool to_the_end = true) {
    auto result = run(scenario, Options{});
    if (result && to_the_end && !result->done) return std::unexpected(scenario.name + ": not done in time");
    if (!result) return std::unexpected(scenario.name + ": " + result.error());
    return result;
}

std::expected<double, std::string> cycles_a_packet(std::size_t queues, std::size_t packets, const Job& job) {
    Scenario made = with_queues("dispatch", queues);
    made.until = 1000 * kMs;
    for (std::uint32_t n = 0; n < queues; ++n)
        made.submits.push_back({10 * kUs, n, std::vector<Job>(packets, job)});
    const auto result = play(made);
    if (!result) return std::unexpected(result.error());
    return static_cast<double>(result->counter(0, ORR_CTR_CORE_BUSY_PS)) / 1000 /
           static_cast<double>(queues * packets);
}

}  // namespace

Figures dispatch_figures() {
    struct Case {
        const char* name;
        std::size_t queues, packets;
        Job job;
        double goal;
    };
    Job copy = plain(Op::kCopy);
    copy.bytes = 4096;
    const Case cases[] = {
        {"dispatch, 1 queue, kernels", 1, 1024, kernel(1, 1000), 400},
        {"dispatch, 1 queue, copies", 1, 1024, copy, 400},
        {"dispatch, 1024 queues, kernels", 1024, 8, kernel(1, 1000), 800},
        {"dispatch, 1024 queues, copies", 1024, 8, copy, 800},
        {"dispatch, 1024 queues, one kernel each", 1024, 1, kernel(1, 1000), 800},
    };
    std::vector<Figure> out;
    for (const Case& one : cases) {
        const auto cycles = cycles_a_packet(one.queues, one.packets, one.job);
        if (!cycles) return std::unexpected(cycles.error());
        out.push_back({one.name, *cycles, "cycles", one.goal, true});
    }
    return out;
}

Figures share_figures() {
    std::vector<Figure> out;
    {
        // Equal weights, unequal jobs.
        Scenario made = with_queues("equal weights", 16);
        made.cards[0].sku.vector_cores = 4;
        made.until = 40 * kMs;
        for (std::uint32_t n = 0; n < made.queues.size(); ++n)
            made.submits.push_back(
                {10 * kUs, n, std::vector<Job>(1'600, kernel(1 + n % 4, 10'000 + 4'000 * n))});
        const auto result = play(made, false);
        if (!result) return std::unexpected(result.error());
        std::vector<double> used;
        for (const QueueResult& queue : result->queues)
            used.push_back(static_cast<double>(queue.vector_ps));
        out.push_back({"Jain's index, 16 equal queues", records::jain(used), "", 0.99, false});
    }
    for (const bool copies : {false, true}) {
        Scenario made = with_queues("weights 1:2:4", 3);
        made.cards[0].sku.vector_cores = 4;
        made.until = 40 * kMs;
        Job job = kernel(4, 20'000);
        if (copies) {
            job = plain(Op::kCopy);
            job.bytes = 1 << 20;
        }
        constexpr std::uint32_t kWeights[] = {64, 128, 256};
        for (std::uint32_t n = 0; n < 3; ++n) {
            made.queues[n].weight = kWeights[n];
            made.submits.push_back({10 * kUs, n, std::vector<Job>(copies ? 30'000 : 4'000, job)});
        }
        const auto result = play(made, false);
        if (!result) return std::unexpected(result.error());
        double sum = 0, worst = 0;
        for (const QueueResult& queue : result->queues)
            sum += static_cast<double>(copies ? queue.copy_ps : queue.vector_ps);
        for (std::uint32_t n = 0; n < 3; ++n) {
            const QueueResult& queue = result->queues[n];
            const double share = static_cast<double>(copies ? queue.copy_ps : queue.vector_ps) / sum;
            worst = std::max(worst, std::abs(share / (kWeights[n] / 448.0) - 1));
        }
        out.push_back(
            {copies ? "shares 1:2:4 of copy engines, deviation" : "shares 1:2:4 of vector cores, deviation",
             100 * worst, "%", 2, true});
    }
    return out;
}

Figures preemption_figures() {
    std::vector<Figure> out;
    for (const bool many : {false, true}) {
        Scenario made = with_queues("preemption", 0);
        made.contexts.resize(1);
        made.contexts[0].name = "context";
        made.until = 8 * kMs;
        // One kernel of seconds on all cores; or one of them on each port.
        const std::uint32_t holders = many ? 4 : 1;
        for (std::uint32_t n = 0; n < holders; ++n) {
            const std::uint32_t low = add_queue(made, fmt::format("seconds {}", n));
            made.queues[low].priority = ORR_PRIORITY_LOW;
            made.queues[low].limit_us = 60'000'000;
            made.submits.push_back({10 * kUs, low, {kernel(64, 4'000'000'000)}});
        }
        const std::uint32_t high = add_queue(made, "high");
        made.queues[high].priority = ORR_PRIORITY_HIGH;
        for (Ps at = kMs; at < 7 * kMs; at += 237 * kUs)
            made.submits.push_back({at, high, {kernel(8, 5'000)}});
        const auto result = play(made, false);
        if (!result) return std::unexpected(result.error());
        Ps longest_start = 0, longest_core = 0;
        for (const JobResult& job : result->jobs) {
            if (job.queue != high) continue;
            if (job.started == kUnknown || job.finished == kUnknown)
                return std::unexpected("preemption: a kernel of the high queue did not run");
            longest_start = std::max(longest_start, job.started - job.submitted);
            // What it takes when the card is its own: launch, a group to each core, its cycles.
            const auto& sku = made.cards[0].sku;
            const Ps alone = sku.vector_launch_ps + sku.vector_group_ps + job.job.cycles * 1000;
            longest_core = std::max(
                longest_core, job.finished - job.submitted - std::min(alone, job.finished - job.submitted));
        }
        const char* const where = many ? "every port" : "one port";
        out.push_back({fmt::format("doorbell to engine, kernels of seconds on {}", where),
                       static_cast<double>(longest_start) / 1e6, "us", 10, true});
        out.push_back({fmt::format("delay of a kernel, kernels of seconds on {}", where),
                       static_cast<double>(longest_core) / 1e6, "us", 10, true});
    }
    return out;
}

Figures waiting_figures() {
    Scenario made = with_queues("waiting", 8);
    made.cards[0].sku.vector_cores = 4;
    made.until = 60 * kMs;
    for (std::uint32_t n = 0; n < 8; ++n) {
        made.queues[n].priority = n < 4 ? ORR_PRIORITY_HIGH : ORR_PRIORITY_NORMAL;
        made.submits.push_back({10 * kUs, n, std::vector<Job>(1'000, kernel(4, 50'000))});
    }
    const std::uint32_t low = add_queue(made, "low");
    made.queues[low].priority = ORR_PRIORITY_LOW;
    for (Ps at = kMs; at < 40 * kMs; at += 9 * kMs)
        made.submits.push_back({at, low, {kernel(4, 20'000)}});
    const auto result = play(made, false);
    if (!result) return std::unexpected(result.error());
    Ps longest = 0;
    for (const JobResult& job : result->jobs) {
        if (job.queue != low) continue;
        // One that has not started by the end has waited until then.
        longest = std::max(longest, std::min(job.started, result->end) - job.submitted);
    }
    // The policy's bound, a slice for each higher class, and the jobs of this queue before this one.
    return std::vector<Figure>{
        {"longest wait of the lowest class under load", static_cast<double>(longest) / 1e9, "ms", 7, true}};
}

Figures guard_figures() {
    enum class Crime { kNone, kHang, kRunaway, kMalformed, kStorm, kFaults };
    constexpr const char* kNames[] = {
        "", "watchdog", "runaway queue", "malformed packets", "semaphore storm", "traps"};
    // Jobs of the others that are done when the time is over.
    const auto done = [](Crime crime) -> std::expected<double, std::string> {
        Scenario made = with_queues("guards", 6);
        made.cards[0].sku.vector_cores = 4;
        made.until = 20 * kMs;
        made.semaphores.push_back({"storm", 0});
        Job copy = plain(Op::kCopy);
        copy.bytes = 256 << 10;
        for (std::uint32_t n = 0; n < 6; ++n)
            made.submits.push_back(
                {10 * kUs, n, std::vector<Job>(4'000, n % 3 == 2 ? copy : kernel(1 + n % 2, 10'000))});
        const std::uint32_t bad = add_queue(made, "bad");
        std::vector<Job> jobs;
        switch (crime) {
            case Crime::kNone:
                break;
            case Crime::kHang:
                made.queues[bad].limit_us = 500;
                jobs.push_back(kernel(4, 1'000'000'000));
                break;
            case Crime::kRunaway:
                jobs.assign(60'000, plain(Op::kNop));
                break;
            case Crime::kMalformed:
                jobs = {plain(Op::kNop), plain(Op::kMalformed)};
                break;
            case Crime::kStorm:
                for (std::uint64_t n = 1; n <= 30'000; ++n) {
                    Job signal = plain(Op::kSignal);
                    signal.value = n;
                    Job wait = plain(Op::kWait);
                    wait.value = n;
                    jobs.push_back(signal);
                    jobs.push_back(wait);
                }
                break;
            case Crime::kFaults: {
                Job trap = kernel(4, 1000);
                trap.traps = true;
                jobs.push_back(trap);
                break;
            }
        }
        if (!jobs.empty()) made.submits.push_back({100 * kUs, bad, jobs});
        const auto result = play(made, false);
        if (!result) return std::unexpected(result.error());
        double count = 0;
        for (std::uint32_t n = 0; n < 6; ++n)
            count += static_cast<double>(result->queues[n].completed);
        return count;
    };
    const auto alone = done(Crime::kNone);
    if (!alone) return std::unexpected(alone.error());
    std::vector<Figure> out;
    for (const Crime crime :
         {Crime::kHang, Crime::kRunaway, Crime::kMalformed, Crime::kStorm, Crime::kFaults}) {
        const auto beside = done(crime);
        if (!beside) return std::unexpected(beside.error());
        out.push_back({fmt::format("others' loss beside: {}", kNames[static_cast<int>(crime)]),
                       100 * (1 - *beside / *alone), "%", 5, true});
    }
    return out;
}

}  // namespace orrery::policy
