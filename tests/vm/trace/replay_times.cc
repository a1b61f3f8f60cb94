// Replays recordings again and again, and holds every replay against the recorded state hashes and against
// the first replay.
//   replay_times [--crashed] TIMES FILE...
// Each file must have been ended in order (or, of a card that was killed, not), have the notes that a VM
// makes, and hold.
#include <xxhash.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "emulator/api/replayer.h"

namespace orrery::emu {
namespace {

struct Result {
    std::uint64_t end = 0, time = 0, hashes = 0, sram = 0;
    std::size_t records = 0, notes = 0;
    bool operator==(const Result&) const = default;
};

std::optional<Result> replay(const TraceReader& reader) {
    const auto opened = Replayer::open(reader, {}, Opening::kWhole);
    if (!opened) {
        fmt::print(stderr, "{}\n", opened.error());
        return std::nullopt;
    }
    Replayer& replayer = **opened;
    if (const auto& bad = replayer.divergence()) {
        fmt::print(stderr, "{}: diverged at step {}: {}\n", reader.name(), bad->step, bad->reason);
        return std::nullopt;
    }
    if (replayer.seek(replayer.end()).stop != ReplayStop::kTarget) return std::nullopt;
    const auto sram = replayer.sram();
    return Result{replayer.end(),
                  replayer.time(),
                  replayer.hashes_checked(),
                  XXH3_64bits(sram.data(), sram.size()),
                  replayer.record_count(),
                  replayer.notes().size()};
}

bool check(const char* file, int times, bool crashed) {
    const auto reader = TraceReader::open(file);
    if (!reader) {
        fmt::print(stderr, "{}\n", reader.error());
        return false;
    }
    if (reader->info().crashed != crashed) {
        fmt::print(stderr, "{}: the recording was {}ended in order\n", file, crashed ? "" : "not ");
        return false;
    }
    const auto first = replay(*reader);
    if (!first) return false;
    if (first->hashes < 3 || first->notes == 0 || first->end < 10'000) {
        fmt::print(stderr, "{}: {} steps, {} hashes, {} notes: this is no recording of a VM's run\n", file,
                   first->end, first->hashes, first->notes);
        return false;
    }
    for (int i = 1; i < times; ++i) {
        const auto again = replay(*reader);
        if (!again || *again != *first) {
            fmt::print(stderr, "{}: replay {} of {} differs\n", file, i + 1, times);
            return false;
        }
    }
    fmt::print("{}: {} of {} replays bit-exact: {} steps, {} ps, {} hashes, {} port records, {} notes\n",
               file, times, times, first->end, first->time, first->hashes, first->records, first->notes);
    return true;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    const bool crashed = argc > 1 && std::string_view(argv[1]) == "--crashed";
    const int first = crashed ? 2 : 1;
    const int times = argc > first ? std::atoi(argv[first]) : 0;
    if (times < 1 || argc < first + 2) {
        std::fputs("usage: replay_times [--crashed] TIMES FILE...\n", stderr);
        return 2;
    }
    bool good = true;
    for (int i = first + 1; i < argc; ++i)
        good = orrery::emu::check(argv[i], times, crashed) && good;
    return good ? 0 : 1;
}
