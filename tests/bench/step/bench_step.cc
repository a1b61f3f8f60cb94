// How fast a recording of 10 s of model time is opened and stepped, forward and backward, from random places.
#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <random>

#include "tools/step/commands/debugger.h"
#include "tools/step/scenario/runner.h"

namespace {

using namespace orrery;
using namespace orrery::step;
using Clock = std::chrono::steady_clock;

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

void open(benchmark::State& state) {
    std::uint64_t steps = 0;
    for (auto _ : state)
        steps += debugger()->session().end();
    state.counters["steps/s"] = benchmark::Counter(static_cast<double>(steps), benchmark::Counter::kIsRate);
    state.counters["model_s"] = static_cast<double>(debugger()->session().end_time()) * 1e-12;
}

// One move from a random position; only the move is timed. "max_ms" is the slowest of all.
void move(benchmark::State& state, const char* command) {
    const auto with = debugger();
    Session& session = with->session();
    std::mt19937_64 random(1);
    double slowest = 0;
    for (auto _ : state) {
        session.seek(session.end() / 20 + random() % (session.end() / 10 * 9));
        const auto begin = Clock::now();
        const auto reply = with->execute(command);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        if (!reply) stop(reply.error().text);
        state.SetIterationTime(seconds);
        slowest = std::max(slowest, seconds);
    }
    state.counters["max_ms"] = slowest * 1e3;
}

void jump(benchmark::State& state) {
    const auto with = debugger();
    Session& session = with->session();
    std::mt19937_64 random(2);
    double slowest = 0;
    for (auto _ : state) {
        const std::uint64_t to = random() % session.end();
        const auto begin = Clock::now();
        session.seek(to);
        const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
        state.SetIterationTime(seconds);
        slowest = std::max(slowest, seconds);
    }
    state.counters["max_ms"] = slowest * 1e3;
}

BENCHMARK(open)->Unit(benchmark::kMillisecond)->Iterations(2);
BENCHMARK_CAPTURE(move, back_instruction, "back insn")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(400);
BENCHMARK_CAPTURE(move, back_event, "back event")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(400);
BENCHMARK_CAPTURE(move, back_decision, "back decision")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(400);
BENCHMARK_CAPTURE(move, step_decision, "step decision")
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->Iterations(400);
BENCHMARK_CAPTURE(move, why, "why")->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(400);
BENCHMARK(jump)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(400);

}  // namespace

int main(int argc, char** argv) {
    benchmark::Initialize(&argc, argv);
    if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
    benchmark::RunSpecifiedBenchmarks();
    std::error_code error;
    std::filesystem::remove(recording(), error);
    return 0;
}
