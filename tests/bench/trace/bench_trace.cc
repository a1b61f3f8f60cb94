// What recording costs, and how fast a recording is stepped back.
//   bench_trace [SECONDS-OF-MODEL-TIME [FILE]]    (default 10; FILE: the figures as JSON too)
// Slowdown: the same work on cards that record and on cards that do not, in turns, medians of the ratios.
// Stepping: from random positions of a recording of firmware that never sleeps, and of the real firmware.
// Ends with 1 if a goal does not hold.
#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "tests/unit/trace/recordings.h"

namespace orrery::emu {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of this thread's own time: other programs on the host do not count.
double cpu_now() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double median(std::vector<double> values) {
    std::ranges::sort(values);
    return values[values.size() / 2];
}

std::vector<std::uint8_t> program() {
    std::ifstream in(ORRERY_BENCH_PROGRAM, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A card with the firmware that never sleeps.
class BusyCard {
  public:
    explicit BusyCard(const std::filesystem::path& record) {
        CardConfig config = CardRig::config();
        config.record = record;
        card_ = *Card::create(std::move(config));
        std::ranges::copy(program(), card_->core().sram().begin());
        card_->start_core_for_test(ORR_SRAM_BASE);
    }
    // Host seconds of this thread for `ps` more of model time.
    double run(ModelTime ps) {
        const ModelTime end = card_->events().now() + ps;
        const double start = cpu_now();
        while (card_->events().now() < end) {
            if (card_->step()) continue;
            fmt::print(stderr, "the firmware has stopped\n");
            std::exit(1);
        }
        return cpu_now() - start;
    }
    std::uint64_t instructions() { return card_->counters().get(ORR_CTR_CORE_INSTRUCTIONS); }

  private:
    std::unique_ptr<Card> card_;
};

// A card with the real firmware and packets that cost the core most and the engines nothing.
class FirmwareCard {
  public:
    explicit FirmwareCard(const std::filesystem::path& record) : fw_(config(record)) {
        fw_.boot();
        for (std::uint32_t asid = 1; asid <= kQueues; ++asid)
            fw_.make_queue(asid);
    }
    double run(unsigned rounds) {
        orr_packet_fill nop{};
        nop.header.opcode = ORR_PKT_NOP;
        double total = 0;
        for (unsigned round = 0; round < rounds; ++round) {
            for (std::uint32_t asid = 1; asid <= kQueues; ++asid) {
                for (unsigned i = 0; i < 32; ++i)
                    fw_.push(asid, nop);
                fw_.submit(asid);
            }
            const double start = cpu_now();
            fw_.rig().settle();
            total += cpu_now() - start;
        }
        return total;
    }
    ModelTime now() { return fw_.card().events().now(); }

  private:
    static constexpr std::uint32_t kQueues = 4;
    static CardConfig config(const std::filesystem::path& record) {
        CardConfig config = FirmwareRig::config();
        config.record = record;
        return config;
    }
    FirmwareRig fw_;
};

// What make bench puts into its table.
nlohmann::ordered_json figures = nlohmann::ordered_json::array();

constexpr int kPairs = 20;
constexpr int kTurns = 6;
constexpr double kMostSlowdown = 1.05;
constexpr double kMostBackMs = 50;

template <class CardType, class Amount>
bool slowdown(const char* name, Amount amount) {
    std::vector<double> ratios;
    // Where memory happens to lie changes the speed of a card for its life, by more than recording does:
    // several pairs, made in both orders.
    for (int pair = 0; pair < kPairs; ++pair) {
        const TemporaryFile file;
        std::unique_ptr<CardType> plain, recorded;
        if (pair % 2 == 0) plain = std::make_unique<CardType>(std::filesystem::path());
        recorded = std::make_unique<CardType>(file.path());
        if (pair % 2 != 0) plain = std::make_unique<CardType>(std::filesystem::path());
        for (int turn = 0; turn <= kTurns; ++turn) {
            const double without = plain->run(amount);
            const double with = recorded->run(amount);
            if (turn > 0) ratios.push_back(with / without);
        }
    }
    std::ranges::sort(ratios);
    const double middle = ratios[ratios.size() / 2];
    fmt::print("recording, {}: {:.3f} of the time without (p10 {:.3f}, p90 {:.3f})\n", name, middle,
               ratios[ratios.size() / 10], ratios[ratios.size() * 9 / 10]);
    const bool good = middle <= kMostSlowdown;
    figures.push_back({{"name", fmt::format("recording, {}", name)},
                       {"value", middle},
                       {"unit", "x"},
                       {"goal", fmt::format("<= {:.2f} of time without", kMostSlowdown)},
                       {"holds", good},
                       {"p10", ratios[ratios.size() / 10]},
                       {"p90", ratios[ratios.size() * 9 / 10]}});
    return good;
}

bool step_back(const char* name, const std::filesystem::path& file) {
    const auto start = Clock::now();
    unsigned shown = 0;
    auto opened = Replayer::open(file, [&](double) { return ++shown > 0; });
    const double open_seconds = seconds_since(start);
    if (!opened || (*opened)->divergence()) {
        fmt::print("{}: does not replay\n", name);
        return false;
    }
    Replayer& replayer = **opened;
    std::mt19937_64 random(1);
    std::vector<double> ms;
    for (int i = 0; i < 300; ++i) {
        replayer.seek(1 + random() % replayer.end());
        const double before = cpu_now();
        replayer.step_back();
        ms.push_back(1e3 * (cpu_now() - before));
    }
    const double worst = std::ranges::max(ms);
    fmt::print(
        "stepping back, {}: {:.3f} s of model time, {} steps, {} records, file {:.1f} MB; opened in {:.2f} s "
        "({} progress calls), {} snapshots of {:.1f} MB; a step back {:.2f} ms median, {:.2f} ms worst\n",
        name, static_cast<double>(replayer.end_time()) / 1e12, replayer.end(), replayer.record_count(),
        static_cast<double>(replayer.info().file_bytes) / 1e6, open_seconds, shown, replayer.snapshots(),
        static_cast<double>(replayer.snapshot_bytes()) / 1e6, median(ms), worst);
    const bool good = worst <= kMostBackMs;
    std::ranges::sort(ms);
    figures.push_back({{"name", fmt::format("step back, {}", name)},
                       {"value", worst},
                       {"unit", "ms"},
                       {"goal", fmt::format("<= {:.0f} ms", kMostBackMs)},
                       {"holds", good},
                       {"median", median(ms)},
                       {"p10", ms[ms.size() / 10]},
                       {"p90", ms[ms.size() * 9 / 10]}});
    return good;
}

bool run(double seconds) {
    bool good = slowdown<BusyCard, ModelTime>("core that never sleeps", 20'000'000'000);
    good = slowdown<FirmwareCard, unsigned>("firmware under full load", 60) && good;
    {
        const TemporaryFile file;
        {
            BusyCard card(file.path());
            const double host = card.run(static_cast<ModelTime>(seconds * 1e12));
            fmt::print("recorded {} instructions in {:.1f} s, {:.0f} MIPS\n", card.instructions(), host,
                       static_cast<double>(card.instructions()) / host / 1e6);
        }
        good = step_back("core that never sleeps", file.path()) && good;
    }
    {
        const TemporaryFile file;
        {
            FirmwareCard card(file.path());
            card.run(2000);
        }
        good = step_back("firmware under full load", file.path()) && good;
    }
    return good;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
    const bool good = orrery::emu::run(seconds);
    if (argc > 2) {
        std::ofstream out(argv[2]);
        out << orrery::emu::figures.dump(2) << '\n';
        if (!out.flush()) {
            fmt::print(stderr, "{} cannot be written\n", argv[2]);
            return 1;
        }
    }
    std::puts(good ? "all goals hold" : "a goal does not hold");
    return good ? 0 : 1;
}
