// What recording costs, and how fast a recording is stepped back.
//   bench_trace SECONDS-OF-MODEL-TIME
// Slowdown: the same work on cards that record and on cards that do not, in turns, as the ratios.
// Stepping: from random positions of a recording of firmware that never sleeps, and of the real firmware.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

#include <fmt/format.h>

#include "emulator/api/flight.h"
#include "tests/unit/trace/recordings.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"

namespace orrery::emu {
namespace {

using bench::thread_seconds;

// Of the card's thread on a CPU; and of real time, in which it may wait for the one that writes.
struct Took {
    double thread = 0, real = 0;
    Took& operator+=(const Took& other) {
        thread += other.thread;
        real += other.real;
        return *this;
    }
};

template <typename Work>
Took took(Work&& work) {
    const auto begin = std::chrono::steady_clock::now();
    const double thread = bench::thread_seconds_of(work);
    return {thread, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

// A file to record to, the memory of a flight recorder, or nothing.
struct Recording {
    std::filesystem::path file;
    bool flight = false;
    CardConfig& of(CardConfig& config) const {
        if (flight)
            config.flight_segment = flight_segment(64);
        else
            config.record = file;
        return config;
    }
};

std::vector<std::uint8_t> program() {
    std::ifstream in(ORRERY_BENCH_PROGRAM, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

// A card with the firmware that never sleeps.
class BusyCard {
  public:
    explicit BusyCard(const Recording& recording) {
        CardConfig config = CardRig::config();
        card_ = *Card::create(std::move(recording.of(config)));
        std::ranges::copy(program(), card_->core().sram().begin());
        card_->start_core_for_test(ORR_SRAM_BASE);
    }
    // `ps` more of model time.
    Took run(ModelTime ps) {
        const ModelTime end = card_->events().now() + ps;
        return took([&] {
            while (card_->events().now() < end) {
                if (card_->step()) continue;
                fmt::print(stderr, "the firmware has stopped\n");
                std::exit(1);
            }
        });
    }
    std::filesystem::path recording() {
        card_->store_recording();
        return card_->recording();
    }
    std::uint64_t instructions() { return card_->counters().get(ORR_CTR_CORE_INSTRUCTIONS); }

  private:
    std::unique_ptr<Card> card_;
};

// A card with the real firmware and packets that cost the core most and the engines nothing.
class FirmwareCard {
  public:
    explicit FirmwareCard(const Recording& recording) : fw_(config(recording)) {
        fw_.boot();
        for (std::uint32_t asid = 1; asid <= kQueues; ++asid)
            fw_.make_queue(asid);
    }
    Took run(unsigned rounds) {
        orr_packet_fill nop{};
        nop.header.opcode = ORR_PKT_NOP;
        Took total;
        for (unsigned round = 0; round < rounds; ++round) {
            for (std::uint32_t asid = 1; asid <= kQueues; ++asid) {
                for (unsigned i = 0; i < 32; ++i)
                    fw_.push(asid, nop);
                fw_.submit(asid);
            }
            total += took([&] { fw_.rig().settle(); });
        }
        return total;
    }
    ModelTime now() { return fw_.card().events().now(); }

  private:
    static constexpr std::uint32_t kQueues = 4;
    static CardConfig config(const Recording& recording) {
        CardConfig config = FirmwareRig::config();
        return recording.of(config);
    }
    FirmwareRig fw_;
};

constexpr int kPairs = 20;
constexpr int kTurns = 6;
template <class CardType, class Amount>
void slowdown(bench::Measured& measured, const char* name, Amount amount) {
    std::vector<double> ratios, real_ratios, flights, to_file;
    // Where memory happens to lie changes the speed of a card for its life, by more than recording does:
    // several pairs, made in both orders.
    for (int pair = 0; pair < kPairs; ++pair) {
        const TemporaryFile file;
        std::unique_ptr<CardType> plain, recorded, flight;
        if (pair % 2 == 0) plain = std::make_unique<CardType>(Recording{});
        recorded = std::make_unique<CardType>(Recording{file.path(), false});
        flight = std::make_unique<CardType>(Recording{{}, true});
        if (pair % 2 != 0) plain = std::make_unique<CardType>(Recording{});
        for (int turn = 0; turn <= kTurns; ++turn) {
            const Took without = plain->run(amount);
            const Took with = recorded->run(amount);
            const Took in_flight = flight->run(amount);
            if (turn == 0) continue;
            ratios.push_back(with.thread / without.thread);
            real_ratios.push_back(with.real / without.real);
            flights.push_back(in_flight.thread / without.thread);
            to_file.push_back(in_flight.thread / with.thread);
        }
    }
    measured.add({fmt::format("recording, {}", name), {}, std::move(ratios), {}});
    measured.add({fmt::format("recording, {}, real time", name), {}, std::move(real_ratios), {}});
    measured.add({fmt::format("flight recorder, {}", name), {}, std::move(flights), {}});
    measured.add(
        {fmt::format("flight recorder, {}, of recording to a file", name), {}, std::move(to_file), {}});
}

// of: seconds of model time, for the figures that say it.
void step_back(bench::Measured& measured, const char* name, const char* opening,
               std::optional<std::uint64_t> of, const std::filesystem::path& file) {
    const double start = thread_seconds();
    auto opened = Replayer::open(file, {});
    const double open_seconds = thread_seconds() - start;
    if (!opened || (*opened)->divergence()) throw std::runtime_error("a recording does not replay");
    Replayer& replayer = **opened;
    std::mt19937_64 random(1);
    std::vector<double> ms;
    for (int i = 0; i < 300; ++i) {
        replayer.seek(1 + random() % replayer.end());
        const double before = thread_seconds();
        replayer.step_back();
        ms.push_back(1e3 * (thread_seconds() - before));
    }
    fmt::print(stderr,
               "{}: {:.3f} s of model time, {} steps, {} records, {:.1f} MB, {} snapshots of {:.1f} MB\n",
               name, static_cast<double>(replayer.end_time()) / 1e12, replayer.end(), replayer.record_count(),
               static_cast<double>(replayer.info().file_bytes) / 1e6, replayer.snapshots(),
               static_cast<double>(replayer.snapshot_bytes()) / 1e6);
    if (opening != nullptr) measured.add({opening, of, {open_seconds}, {}});
    measured.add({name, of, std::move(ms), {}});
}

// What a full one takes, and how much of such a core that is.
void say_flight_memory(std::uint64_t seconds) {
    BusyCard card(Recording{{}, true});
    card.run(static_cast<ModelTime>(seconds) * 1'000'000'000'000);
    struct stat status{};
    const auto reader = TraceReader::open(card.recording());
    if (::stat(card.recording().c_str(), &status) != 0 || !reader)
        throw std::runtime_error("a flight recorder does not open");
    fmt::print(stderr, "flight recorder, busy core: {:.1f} MiB of memory, the last {:.3f} s of model time\n",
               static_cast<double>(status.st_blocks) * 512 / (1 << 20),
               static_cast<double>(reader->last_ps() - reader->info().start_ps) / 1e12);
}

bench::Measured run(std::uint64_t seconds) {
    bench::Measured measured;
    slowdown<BusyCard, ModelTime>(measured, "busy core", 20'000'000'000);
    slowdown<FirmwareCard, unsigned>(measured, "firmware", 60);
    say_flight_memory(seconds);
    {
        const TemporaryFile file;
        BusyCard(Recording{file.path(), false}).run(static_cast<ModelTime>(seconds) * 1'000'000'000'000);
        step_back(measured, "step back, busy core", "opening, busy core", seconds, file.path());
    }
    {
        const TemporaryFile file;
        FirmwareCard(Recording{file.path(), false}).run(2000);
        step_back(measured, "step back, firmware", nullptr, {}, file.path());
    }
    return measured;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    const int seconds = argc == 2 ? std::atoi(argv[1]) : 0;
    if (seconds <= 0) {
        fmt::print(stderr, "usage: bench_trace SECONDS-OF-MODEL-TIME\n");
        return 2;
    }
    try {
        return orrery::emu::run(static_cast<std::uint64_t>(seconds)).print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_trace: {}\n", error.what());
        return 1;
    }
}
