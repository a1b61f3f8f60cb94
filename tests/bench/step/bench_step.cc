// How fast a recording of 10 s of model time is opened and stepped, forward and backward, from random places.
//   bench_step [FILE]    FILE: the figures as JSON too
// Times are the thread's own: other programs on the host do not count. Ends with 1 if a step back takes
// longer than its goal.
#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <vector>

#include <nlohmann/json.hpp>

#include "tools/scenario/runner.h"
#include "tools/step/commands/debugger.h"

namespace {

using namespace orrery;
using namespace orrery::step;

constexpr int kMoves = 400;
constexpr double kGoalMs = 50;  // back, anywhere

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

double cpu_ms() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

std::unique_ptr<Debugger> debugger() {
    auto session = open_session(recording(), {});
    if (!session) stop(session.error().text);
    auto made = Debugger::make(std::move(*session), {});
    if (!made) stop(made.error().text);
    return std::move(*made);
}

struct Figure {
    std::string name;
    bool has_goal = false;
    double median = 0, p10 = 0, p90 = 0, slowest = 0;
    bool holds() const { return !has_goal || slowest <= kGoalMs; }
};

// One move each from a random position.
template <class Move>
Figure measure(const char* name, bool has_goal, Debugger& debugger, Move move) {
    Session& session = debugger.session();
    std::mt19937_64 random(1);
    std::vector<double> times;
    for (int i = 0; i < kMoves; ++i) {
        session.seek(session.end() / 20 + random() % (session.end() / 10 * 9));
        const std::uint64_t number = random();
        const double begin = cpu_ms();
        move(number);
        times.push_back(cpu_ms() - begin);
    }
    std::ranges::sort(times);
    return {name, has_goal, times[kMoves / 2], times[kMoves / 10], times[kMoves * 9 / 10], times.back()};
}

nlohmann::ordered_json to_json(const std::vector<Figure>& figures) {
    auto list = nlohmann::ordered_json::array();
    for (const Figure& f : figures) {
        list.push_back({{"name", f.name + ", slowest of 400"},
                        {"value", f.slowest},
                        {"unit", "ms"},
                        {"goal", f.has_goal ? nlohmann::ordered_json(fmt::format("<= {:.0f} ms", kGoalMs))
                                            : nlohmann::ordered_json(nullptr)},
                        {"holds", f.holds()},
                        {"median", f.median},
                        {"p10", f.p10},
                        {"p90", f.p90}});
    }
    return list;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2) {
        fmt::print(stderr, "usage: bench_step [FILE]\n");
        return 2;
    }
    static_cast<void>(recording());
    const double begin = cpu_ms();
    const auto with = debugger();
    const double open = cpu_ms() - begin;
    Session& session = with->session();
    fmt::print(
        "a recording of {:.1f} s of model time: {} steps, {} events; opened in {:.2f} s, {:.0f} M steps/s\n",
        static_cast<double>(session.end_time()) * 1e-12, session.end(), session.records().size(), open / 1e3,
        static_cast<double>(session.end()) / open / 1e3);
    const auto command = [&](const char* line) {
        return [&with, line](std::uint64_t) {
            if (const auto reply = with->execute(line); !reply) stop(reply.error().text);
        };
    };
    std::vector<Figure> figures;
    for (const char* line : {"back insn", "back event", "back decision"})
        figures.push_back(measure(line, true, *with, command(line)));
    figures.push_back(measure("goto anywhere", true, *with,
                              [&](std::uint64_t number) { session.seek(number % session.end()); }));
    for (const char* line : {"step decision", "why"})
        figures.push_back(measure(line, false, *with, command(line)));
    std::error_code error;
    std::filesystem::remove(recording(), error);

    fmt::print("{:<16}{:>10}{:>10}{:>10}{:>10}   ms, of {} moves\n", "", "median", "p10", "p90", "slowest",
               kMoves);
    bool good = true;
    for (const Figure& f : figures) {
        fmt::print("{:<16}{:>10.2f}{:>10.2f}{:>10.2f}{:>10.2f}   {}\n", f.name, f.median, f.p10, f.p90,
                   f.slowest,
                   !f.has_goal ? ""
                   : f.holds() ? "within the goal"
                               : "NOT within the goal");
        good = good && f.holds();
    }
    if (argc == 2) {
        std::ofstream out(argv[1]);
        out << to_json(figures).dump(2) << '\n';
        if (!out.flush()) stop(std::string(argv[1]) + " cannot be written");
    }
    return good ? 0 : 1;
}
