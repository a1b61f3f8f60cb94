// bench_prof COMMAND...: what it costs to have programs told of what they do, and how fast records are
// drained. COMMAND starts bench_prof_guest in a VM.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <stdexcept>
#include <string>

#include "tests/bench/compute/guest_program.h"
#include "tests/bench/prof/shape.h"
#include "tests/bench/prof/steady.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

constexpr int kRounds = 7, kTimes = 4, kPairs = 48, kDrains = 10;

struct Cost {
    double cpu = 0, real = 0;  // seconds
    bool lost = false;         // some was not told
};

// Of a process of its own, that which was disturbed least by what else this machine does: at first QEMU has
// the process's code to translate.
Cost cost_of(GuestProgram& guest, const std::string& work, const char* mode) {
    (void)guest.ask(fmt::format("begin {} {}", work, mode).c_str());
    Cost least;
    for (int i = 0; i < kTimes; ++i) {
        const Answer answer = guest.ask("go");
        const double cpu = answer.cpu_seconds + answer.vm_cpu_seconds;
        least.cpu = i == 0 ? cpu : std::min(least.cpu, cpu);
        least.real = i == 0 ? answer.seconds : std::min(least.real, answer.seconds);
    }
    least.lost = guest.ask("end").model_ns != 0;
    return least;
}

// In turns: each way beside the plain one of its round, in another order each time.
void add_costs(std::map<std::string, Measurement>& all, GuestProgram& guest, const std::string& work) {
    static constexpr std::array kModes = {"plain", "traced", "traced+counters"};
    static const std::map<std::string, std::string> kNames = {
        {"traced", "activity tracing"}, {"traced+counters", "activity tracing with counters"}};
    for (std::size_t round = 0; round < kRounds; ++round) {
        std::map<std::string, Cost> costs;
        for (std::size_t i = 0; i < kModes.size(); ++i) {
            const char* const mode = kModes.at((i + round) % kModes.size());
            costs[mode] = cost_of(guest, work, mode);
        }
        const Cost& plain = costs.at("plain");
        const auto add = [&](const std::string& name, double sample) {
            all[name].name = name;
            all[name].samples.push_back(sample);
        };
        for (const auto& [mode, cost] : costs)
            add(work + ", runs of which records were lost", cost.lost ? 1 : 0);
        for (const auto& [mode, name] : kNames) {
            const std::string whole = fmt::format("{}, {}", work, name);
            add(whole, costs.at(mode).cpu / plain.cpu);
            add(whole + ", real time", costs.at(mode).real / plain.real);
        }
    }
}

// A subscription begins and ends within a process, so each run with one has a plain one of the same process
// beside it, before it or behind it in turns: what else a machine does changes less from one to the next than
// from process to process.
void add_counted(std::map<std::string, Measurement>& all, GuestProgram& guest, const std::string& work) {
    const std::string name = work + ", counters of all work", real = name + ", real time";
    for (const std::string& each : {name, real})
        all[each].name = each;
    const auto run = [&](const char* how) {
        (void)guest.ask(how);
        return guest.ask("go");
    };
    (void)guest.ask(fmt::format("begin {} plain", work).c_str());
    (void)run("count");  // QEMU has this code to translate, too
    for (int pair = 0; pair < kPairs; ++pair) {
        std::map<std::string, Answer> answers;
        for (int i = 0; i < 2; ++i) {
            const char* const how = (i + pair) % 2 == 0 ? "plain" : "count";
            answers[how] = run(how);
        }
        const Answer &plain = answers.at("plain"), &counted = answers.at("count");
        all[name].samples.push_back((counted.cpu_seconds + counted.vm_cpu_seconds) /
                                    (plain.cpu_seconds + plain.vm_cpu_seconds));
        all[real].samples.push_back(counted.seconds / plain.seconds);
    }
    (void)guest.ask("plain");
    const bool lost = guest.ask("end").model_ns != 0;
    all[work + ", runs of which records were lost"].samples.push_back(lost ? 1 : 0);
}

void add_drains(std::map<std::string, Measurement>& all, GuestProgram& guest, const char* mode,
                const std::string& name) {
    (void)guest.ask(fmt::format("begin drain {}", mode).c_str());
    Measurement each{name, {}, {}, {}}, lost{name + ", lost", {}, {}, {}};
    for (int i = 0; i < kDrains; ++i) {
        const Answer answer = guest.ask("go");
        each.samples.push_back(answer.seconds * 1e9 / kDrained);
        lost.samples.push_back(answer.model_ns);  // its second number
    }
    (void)guest.ask("end");
    all[each.name] = std::move(each);
    all[lost.name] = std::move(lost);
}

void measure(Measured& measured, char** command) {
    GuestProgram guest(command);
    std::map<std::string, Measurement> all;
    // Also the first answer, which has no times of CPUs.
    add_drains(all, guest, "plain", "a record of a full ring, told");
    add_drains(all, guest, "traced", "a record of a full ring, recorded");
    for (const char* work : {"mix", "storm"}) {
        add_costs(all, guest, work);
        add_counted(all, guest, work);
    }
    for (auto& [name, one] : all)
        measured.add(std::move(one));
    add_steady_drains(measured);
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    return orrery::bench::main_of("bench_prof", argc, argv, orrery::bench::measure);
}
