// How fast a recording of 10 s of model time is opened and stepped, forward and backward, from random places.
// Times are the thread's own: other programs on the host do not count.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <vector>

#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"
#include "tools/scenario/runner.h"
#include "tools/step/commands/debugger.h"

namespace {

using namespace orrery;
using namespace orrery::step;

constexpr int kMoves = 400;

[[noreturn]] void stop(const std::string& why) {
    fmt::print(stderr, "bench_step: {}\n", why);
    std::exit(1);
}

const std::string& recording() {
    static const std::string file = [] {
        const std::string name =
            (std::filesystem::temp_directory_path() / fmt::format("orrery-bench-step-{}.otrace", getpid()))
                .string();
        const auto scenario = scenario::Scenario::load(SCENARIO);
        if (!scenario) stop(scenario.error());
        scenario::Options options;
        options.record = {name};
        if (const auto result = scenario::run(*scenario, options); !result) stop(result.error());
        return name;
    }();
    return file;
}

std::unique_ptr<Debugger> debugger() {
    auto session = open_session(recording(), {});
    if (!session) stop(session.error().text);
    auto made = Debugger::make(std::move(*session), {});
    if (!made) stop(made.error().text);
    return std::move(*made);
}

// One move each from a random position.
template <class Move>
void measure(bench::Measured& measured, const char* name, Debugger& debugger, Move move) {
    Session& session = debugger.session();
    std::mt19937_64 random(1);
    std::vector<double> times;
    for (int i = 0; i < kMoves; ++i) {
        session.seek(session.end() / 20 + random() % (session.end() / 10 * 9));
        const std::uint64_t number = random();
        times.push_back(1e3 * bench::thread_seconds_of([&] { move(number); }));
    }
    measured.add({name, {}, std::move(times), {}});
}

}  // namespace

int main() {
    static_cast<void>(recording());
    const double begin = bench::thread_seconds();
    const auto with = debugger();
    const double open = bench::thread_seconds() - begin;
    Session& session = with->session();
    fmt::print(stderr, "a recording of {:.1f} s of model time: {} steps, {} events\n",
               static_cast<double>(session.end_time()) * 1e-12, session.end(), session.records().size());
    bench::Measured measured;
    measured.add({"opening a scenario", {}, {open}, {}});
    const auto command = [&](const char* line) {
        return [&with, line](std::uint64_t) {
            if (const auto reply = with->execute(line); !reply) stop(reply.error().text);
        };
    };
    for (const char* line : {"back insn", "back event", "back decision", "step decision", "why"})
        measure(measured, line, *with, command(line));
    measure(measured, "goto anywhere", *with,
            [&](std::uint64_t number) { session.seek(number % session.end()); });
    std::error_code error;
    std::filesystem::remove(recording(), error);
    return measured.print() ? 0 : 1;
}
