#include "tests/unit/policy/special.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>

#include "tests/unit/policy/generate.h"
#include "tests/unit/scenario/jobs.h"

namespace orrery::policy {

namespace {

using namespace scenario;

class Random {
  public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    // Not std::uniform_int_distribution: its results differ from library to library.
    std::uint64_t pick(std::uint64_t low, std::uint64_t high) { return low + engine_() % (high - low + 1); }
    std::uint32_t pick32(std::uint64_t low, std::uint64_t high) {
        return static_cast<std::uint32_t>(pick(low, high));
    }

  private:
    std::mt19937_64 engine_;
};

Job semaphore(Op op, std::uint32_t number, std::uint64_t value) {
    Job job;
    job.op = op;
    job.semaphore = number;
    job.value = value;
    return job;
}

Scenario named(const char* what, std::uint64_t seed, std::size_t contexts) {
    Scenario made;
    made.name = fmt::format("{} {}", what, seed);
    made.seed = seed;
    made.until = 400 * kMs;
    made.cards[0].vram_bytes = 64u << 20;
    for (std::size_t n = 0; n < contexts; ++n)
        made.contexts.push_back({fmt::format("c{}", n), 0, 0, 0});
    return made;
}

std::uint32_t add_queue(Scenario& to, std::uint32_t context, std::uint32_t priority) {
    Queue queue;
    queue.name = fmt::format("q{}", to.queues.size());
    queue.context = context;
    queue.priority = priority;
    to.queues.push_back(queue);
    return static_cast<std::uint32_t>(to.queues.size() - 1);
}

}  // namespace

Scenario gang_scenario(std::uint64_t seed) {
    Random random(seed);
    Scenario made = named("gangs", seed, 3);
    for (std::uint32_t n = 0; n < 3 && seed % 2 == 0; ++n)
        made.contexts[n].user = made.contexts[n].process = n;
    Card& card = made.cards[0];
    card.sku.vector_ports = random.pick32(2, 4);
    card.sku.vector_cores = 8;
    for (std::uint64_t gangs = random.pick(1, 3); gangs > 0; --gangs) {
        const auto gang = static_cast<std::uint32_t>(made.gangs.size());
        const std::uint32_t members = random.pick32(1, card.sku.vector_ports);
        made.gangs.push_back({fmt::format("g{}", gang), {members}});
        const std::uint32_t context = random.pick32(0, 2);
        const std::uint32_t priority = random.pick32(0, 2);
        const std::uint32_t groups = random.pick32(1, 8 / members);
        const std::uint64_t rounds = random.pick(1, 4);
        // Some are longer than a slice.
        const std::uint64_t most = random.pick(0, 2) == 0 ? 4'000'000 : 60'000;
        for (std::uint32_t member = 0; member < members; ++member) {
            const std::uint32_t queue = add_queue(made, context, priority);
            Ps at = 10 * kUs;
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                at += random.pick(0, 400) * kUs;
                Job join;
                join.op = Op::kGang;
                join.gang = gang;
                join.round = round;
                Job together = kernel(groups, random.pick(1'000, most));
                together.resident = true;
                Submit submit{at, queue, {join, together}};
                if (random.pick(0, 1) == 0) submit.jobs.insert(submit.jobs.begin(), kernel(2, 5'000));
                made.submits.push_back(submit);
            }
        }
    }
    for (std::uint64_t others = random.pick(1, 6); others > 0; --others) {
        const std::uint32_t queue = add_queue(made, random.pick32(0, 2), random.pick32(0, 3));
        for (std::uint64_t bursts = random.pick(1, 8); bursts > 0; --bursts)
            made.submits.push_back({random.pick(10, 1500) * kUs,
                                    queue,
                                    {kernel(random.pick32(1, 12), random.pick(2'000, 80'000))}});
    }
    return made;
}

Scenario many_queues_scenario(std::uint64_t seed) {
    Random random(seed);
    Scenario made = named("many queues", seed, 4);
    for (std::uint32_t n = 0; n < 1024; ++n) {
        const std::uint32_t queue = add_queue(made, n % 4, random.pick32(0, 2));
        made.queues[queue].weight = random.pick32(32, 256);
        made.semaphores.push_back({fmt::format("s{}", n), 0});
        Submit submit{random.pick(10, 1000) * kUs, queue, {}};
        for (std::uint64_t jobs = random.pick(1, 2); jobs > 0; --jobs) {
            Job job = kernel(random.pick32(1, 2), random.pick(500, 3'000));
            if (random.pick(0, 2) == 0) {
                job = {};
                job.op = Op::kCopy;
                job.bytes = random.pick(1, 16) << 12;
            }
            submit.jobs.push_back(job);
        }
        // Some wait for one of a lower number.
        if (n > 0 && random.pick(0, 3) == 0)
            submit.jobs.insert(submit.jobs.begin(), semaphore(Op::kWait, random.pick32(0, n - 1), 1));
        submit.jobs.push_back(semaphore(Op::kSignal, n, 1));
        made.submits.push_back(submit);
    }
    return made;
}

Scenario quota_scenario(std::uint64_t seed) {
    Random random(seed);
    Scenario made = named("quotas", seed, 3);
    made.until = 60 * kMs;
    made.cards[0].sku.vector_ports = random.pick32(1, 4);
    made.cards[0].sku.vector_cores = 4;
    for (std::uint32_t n = 0; n < 2; ++n) {
        made.contexts[n].quota = random.pick32(100, 500);
        made.contexts[n].period_us = random.pick32(1, 5) * 1000;
    }
    for (std::uint32_t context = 0; context < 3; ++context) {
        for (std::uint64_t queues = random.pick(1, 3); queues > 0; --queues) {
            const std::uint32_t queue = add_queue(made, context, random.pick32(0, 2));
            Submit submit{10 * kUs, queue, {}};
            const bool long_ones = random.pick(0, 2) == 0;
            for (std::uint64_t jobs = long_ones ? 4 : 40; jobs > 0; --jobs)
                submit.jobs.push_back(
                    kernel(random.pick32(1, 8), random.pick(5'000, long_ones ? 3'000'000 : 100'000)));
            made.submits.push_back(submit);
        }
    }
    return made;
}

Scenario restart_scenario(std::uint64_t seed, bool guilty) {
    Random random(seed);
    Scenario made = random_scenario(seed);
    made.name = fmt::format("restart {}", seed);
    if (guilty) {
        for (Submit& submit : made.submits)
            std::erase_if(submit.jobs, [](const Job& job) { return job.op == Op::kWait; });
        std::erase_if(made.submits, [](const Submit& submit) { return submit.jobs.empty(); });
    }
    for (std::uint64_t crashes = random.pick(1, 3), at = 0; crashes > 0; --crashes) {
        at += random.pick(50, 3000);
        Action crash;
        crash.kind = Action::Kind::kCrash;
        crash.at = at * kUs;
        crash.queue =
            guilty && random.pick(0, 1) == 0 ? random.pick32(0, made.queues.size() - 1) : Action::kNobody;
        made.actions.push_back(crash);
    }
    return made;
}

Scenario load_scenario(std::uint64_t seed, std::uint32_t& first_low) {
    Random random(seed);
    Scenario made = named("load", seed, 2);
    made.until = 70 * kMs;
    made.cards[0].sku.vector_ports = random.pick32(1, 4);
    const std::uint32_t cores = made.cards[0].sku.vector_cores = random.pick32(1, 4);
    for (std::uint64_t n = random.pick(1, 4); n > 0; --n) {
        for (const std::uint32_t priority : {ORR_PRIORITY_HIGH, ORR_PRIORITY_NORMAL}) {
            const std::uint32_t queue = add_queue(made, 0, priority);
            const std::uint64_t cycles = random.pick(20'000, 2'000'000);
            made.submits.push_back(
                {10 * kUs, queue, std::vector<Job>(made.until / (cycles * 1000) + 8, kernel(cores, cycles))});
        }
    }
    const std::uint32_t urgent = add_queue(made, 0, ORR_PRIORITY_REALTIME);
    const std::uint64_t cycles = random.pick(20'000, 200'000);
    for (Ps at = 100 * kUs; at < made.until; at += 2 * cycles * 1000)
        made.submits.push_back({at, urgent, {kernel(cores, cycles)}});
    first_low = static_cast<std::uint32_t>(made.queues.size());
    for (std::uint64_t n = random.pick(1, 2); n > 0; --n) {
        const std::uint32_t low = add_queue(made, 1, ORR_PRIORITY_LOW);
        for (Ps at = random.pick(100, 3000) * kUs; at < 30 * kMs; at += random.pick(14'000, 20'000) * kUs)
            made.submits.push_back({at, low, {kernel(random.pick32(1, 4), random.pick(2'000, 50'000))}});
    }
    return made;
}

Scenario wait_scenario(std::uint64_t seed, std::vector<std::vector<std::uint32_t>>& cycles) {
    Random random(seed);
    Scenario made = named("waits", seed, 3);
    made.until = 60 * kMs;
    const std::uint32_t queues = random.pick32(2, 24);
    std::vector<std::uint32_t> after(queues);  // itself: nobody
    for (std::uint32_t n = 0; n < queues; ++n) {
        add_queue(made, random.pick32(0, 2), random.pick32(0, 3));
        made.semaphores.push_back({fmt::format("s{}", n), 0});
        after[n] = random.pick(0, 3) == 0 ? n : random.pick32(0, queues - 1);
    }
    for (std::uint32_t n = 0; n < queues; ++n) {
        Submit submit{random.pick(10, 2000) * kUs, n, {}};
        if (random.pick(0, 1) == 0) submit.jobs.push_back(kernel(1, random.pick(1'000, 50'000)));
        if (after[n] != n) submit.jobs.push_back(semaphore(Op::kWait, after[n], 1));
        if (random.pick(0, 1) == 0) submit.jobs.push_back(kernel(2, random.pick(1'000, 50'000)));
        submit.jobs.push_back(semaphore(Op::kSignal, n, 1));
        made.submits.push_back(submit);
    }
    cycles.clear();
    for (std::uint32_t n = 0; n < queues; ++n) {
        // Once round from n; a circle is noted at its lowest number.
        std::vector<std::uint32_t> way{n};
        while (after[way.back()] != way.back() && after[way.back()] != n && way.size() <= queues)
            way.push_back(after[way.back()]);
        if (way.size() <= queues && after[way.back()] == n && after[n] != n && std::ranges::min(way) == n)
            cycles.push_back(way);
    }
    return made;
}

}  // namespace orrery::policy
