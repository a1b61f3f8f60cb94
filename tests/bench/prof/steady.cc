#include "tests/bench/prof/steady.h"

#include <orrery/prof.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <orrery/orrery.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include "tests/bench/prof/quick_card.h"
#include "tests/bench/prof/shape.h"
#include "tools/bench/measured.h"
#include "umd/runtime/clock.h"

namespace orrery::bench {
namespace {

using umd::now_ns;

struct Told {
    std::atomic<std::uint64_t> work{0}, lost{0};
    // Of the library's thread: so many records, and its time on a CPU for them.
    std::uint64_t counted = 0, cpu_ns = 0;
    const std::thread::id program = std::this_thread::get_id();

    static void told(void* user, const orrProfRecord* record) {
        auto& all = *static_cast<Told*>(user);
        if (record->kind == orrProfWorkLost)
            all.lost += std::max<std::uint64_t>(static_cast<const orrProfWork*>(record->params)->lost, 1);
        if (record->kind != orrProfWorkDone) return;
        // A look at the thread's clock for each would be most of what it takes.
        const std::uint64_t work = all.work.fetch_add(1, std::memory_order_relaxed) + 1;
        if (work % 4096 == 0 && std::this_thread::get_id() != all.program) all.look(work);
    }
    void look(std::uint64_t so_far) {
        timespec now{};
        ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        const std::uint64_t cpu =
            static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
        if (last_work_ != 0) {
            counted += so_far - last_work_;
            cpu_ns += cpu - last_cpu_;
        }
        last_work_ = so_far;
        last_cpu_ = cpu;
    }

  private:
    std::uint64_t last_work_ = 0, last_cpu_ = 0;
};

struct Drained {
    double per_second = 0, cpu_ns_each = 0, lost = 0, most_waiting = 0;
};

// each_second 0: as many as it can.
Drained drain(double seconds, std::uint64_t each_second) {
    constexpr std::uint64_t kAtOnce = 100;
    QuickSystem system;
    Told told;
    orrProfSubscription_t subscription = nullptr;
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantWork;
    check(orrProfSubscribe(&subscription, Told::told, &told, &options));
    Drained all;
    {
        const DeviceArray<std::uint64_t> memory(8);
        const Stream stream;
        orrery::fill(memory.data(), 0, memory.bytes(), stream);
        stream.synchronize();
        check(orrProfFlush());
        (void)system.most_waiting();
        const std::uint64_t before = told.work, recorded = system.recorded();
        const std::int64_t begin = now_ns(), end = begin + static_cast<std::int64_t>(seconds * 1e9);
        std::uint64_t given = 0;
        while (now_ns() < end) {
            for (std::uint64_t i = 0; i < kAtOnce; ++i)
                orrery::fill(memory.data(), 0, memory.bytes(), stream);
            given += kAtOnce;
            if (each_second == 0) continue;
            // The host has other threads for this CPU: the library's is one.
            const auto due = begin + static_cast<std::int64_t>(given * 1'000'000'000 / each_second);
            while (now_ns() < due)
                std::this_thread::sleep_for(std::chrono::microseconds(20));
        }
        stream.synchronize();
        check(orrProfFlush());
        const double took = static_cast<double>(now_ns() - begin) * 1e-9;
        if (system.recorded() - recorded != given) throw std::runtime_error("the card has not recorded all");
        all.per_second = static_cast<double>(told.work - before) / took;
        all.lost = static_cast<double>(given - (told.work - before));
        if ((told.lost == 0) != (all.lost == 0)) throw std::runtime_error("what is lost is not told as lost");
        all.most_waiting = static_cast<double>(system.most_waiting());
        all.cpu_ns_each =
            static_cast<double>(told.cpu_ns) / static_cast<double>(std::max<std::uint64_t>(told.counted, 1));
    }
    check(orrProfUnsubscribe(subscription));
    return all;
}

}  // namespace

void add_steady_drains(Measured& measured) {
    for (const auto& [name, rate] : {std::pair("a million a second", std::uint64_t{1'000'000}),
                                     std::pair("as many as can be", std::uint64_t{0})}) {
        const std::string whole = std::string("records while others come, ") + name;
        Measurement told{whole, {}, {}, {}}, cpu{whole + ", time on a CPU", {}, {}, {}},
            lost{whole + ", lost", {}, {}, {}}, waiting{whole + ", waiting at most", {}, {}, {}};
        for (int i = 0; i < kSteadyRuns; ++i) {
            const Drained one = drain(kSteadySeconds, rate);
            told.samples.push_back(1e9 / one.per_second);
            cpu.samples.push_back(one.cpu_ns_each);
            lost.samples.push_back(one.lost);
            waiting.samples.push_back(one.most_waiting);
        }
        for (Measurement* const each : {&told, &cpu, &lost, &waiting})
            measured.add(std::move(*each));
    }
}

}  // namespace orrery::bench
