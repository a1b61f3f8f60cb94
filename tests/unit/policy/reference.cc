#include "tests/unit/policy/reference.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include <orrery/hw/engine.h>

namespace orrery::policy {

namespace {

using Kind = Happening::Kind;

constexpr Ps kSettle = 60 * scenario::kUs;
// How far apart two queues may be and still count as equal: a bucket of the firmware's calendar
// (docs/firmware.md), and what the last job of one still had to be charged.
constexpr double kEqual = 2 * 33.6e6;

struct Account {
    std::uint64_t waiting = 0;  // kernels that have not started
    bool running = false, suspended = false;
    double vtime = 0;
};

}  // namespace

Judgement judge(const scenario::Scenario& scenario, const History& history) {
    Judgement out;
    std::vector<Account> accounts(scenario.queues.size());
    for (const auto& submit : scenario.submits)
        accounts[submit.queue].waiting += submit.jobs.size();
    const Ps begin = scenario.submits.front().at;
    const auto wants = [](const Account& account) { return account.waiting > 0 || account.suspended; };
    for (const Happening& one : history.all) {
        if (one.queue >= accounts.size()) continue;
        Account& chosen = accounts[one.queue];
        if (one.kind == Kind::kEnd) {
            chosen.running = false;
            chosen.suspended = one.status == ORR_DONE_PREEMPTED;
            chosen.vtime +=
                static_cast<double>(one.used_ps) * ORR_WEIGHT_DEFAULT / scenario.queues[one.queue].weight;
            continue;
        }
        if (one.kind != Kind::kStart && one.kind != Kind::kResume) continue;
        if (one.at > begin + kSettle) {
            const std::uint32_t level = scenario.queues[one.queue].priority;
            std::uint64_t others = 0;
            for (std::size_t n = 0; n < accounts.size() && out.wrong.empty(); ++n) {
                const Account& other = accounts[n];
                if (n == one.queue || !wants(other)) continue;
                ++others;
                const std::uint32_t theirs = scenario.queues[n].priority;
                const auto complain = [&](const char* why) {
                    out.wrong = fmt::format(
                        "at {:.3f} us queue {} (class {}, weight {}, vtime {:.3f} us) goes before queue {} "
                        "(class {}, weight {}, vtime {:.3f} us): {}",
                        static_cast<double>(one.at) / 1e6, one.queue, level,
                        scenario.queues[one.queue].weight, chosen.vtime / 1e6, n, theirs,
                        scenario.queues[n].weight, other.vtime / 1e6, why);
                };
                if (theirs > level) complain("of a higher class");
                if (theirs != level || one.kind == Kind::kResume) continue;
                if (other.suspended) complain("preempted, and first of its class");
                if (!other.suspended && other.vtime + kEqual < chosen.vtime)
                    complain("has used less for its weight");
            }
            out.choices += others != 0 ? 1 : 0;
        }
        if (one.kind == Kind::kStart) --chosen.waiting;
        chosen.running = true;
        chosen.suspended = false;
        if (!out.wrong.empty()) break;
    }
    return out;
}

scenario::Scenario one_port_scenario(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto pick = [&](std::uint64_t low, std::uint64_t high) {
        return low + random() % (high - low + 1);
    };
    scenario::Scenario made;
    made.name = fmt::format("one port {}", seed);
    made.seed = seed;
    made.until = 100 * scenario::kMs;
    made.cards[0].vram_bytes = 64u << 20;
    made.cards[0].sku.vector_ports = 1;
    made.cards[0].sku.vector_cores = 1;
    made.contexts.resize(1);
    made.contexts[0].name = "c";
    const std::uint64_t queues = pick(2, 7);
    constexpr std::uint32_t kWeights[] = {64, 64, 32, 128, 256};
    Ps left = 4 * scenario::kMs;
    for (std::uint32_t n = 0; n < queues; ++n) {
        scenario::Queue queue;
        queue.name = fmt::format("q{}", n);
        queue.priority = static_cast<std::uint32_t>(pick(0, 3));
        queue.weight = kWeights[random() % std::size(kWeights)];
        queue.ring_in_vram = pick(0, 1) != 0;
        made.queues.push_back(queue);
        scenario::Submit submit;
        submit.at = 10 * scenario::kUs;
        submit.queue = n;
        const std::uint64_t cycles = pick(10'000, 60'000);
        for (std::uint64_t jobs = pick(4, 14); jobs > 0; --jobs) {
            scenario::Job job;
            job.op = scenario::Op::kKernel;
            job.cycles = cycles;
            if (left < cycles * 1000) break;
            left -= cycles * 1000;
            submit.jobs.push_back(job);
        }
        if (!submit.jobs.empty()) made.submits.push_back(submit);
    }
    return made;
}

}  // namespace orrery::policy
