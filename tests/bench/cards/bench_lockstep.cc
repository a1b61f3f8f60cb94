// bench_lockstep CARDS,... ORRERY-VM: what samples take the host on so many cards that keep step, in two VMs
// that are asked in turns, of what they take on cards that run free.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/cards/command.h"
#include "tests/bench/compute/guest_program.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

constexpr int kRounds = 9;

struct Sample {
    const char* name;
    const char* command;
};
// All of them use all cards, and the links between them.
constexpr std::array kSamples{Sample{"histogram", "histogram"},
                              Sample{"cholesky", "cholesky --tiles 8 --size 32"},
                              Sample{"halo", "halo --quick"}, Sample{"pipeline", "pipeline --quick"}};

// Does what it is asked for, and answers "0 STATUS".
constexpr const char* kGuest =
    "while read -r line; do $line > /tmp/said 2>&1 < /dev/null; status=$?; test $status = 0 || cat /tmp/said "
    ">&2;"
    " echo 0 $status; done # histogram cholesky halo pipeline";

struct Cost {
    double cpu = 0, real = 0;  // seconds
};

class Vm {
  public:
    Vm(unsigned cards, const char* sync, const std::string& program)
        : command_({program, "--cards", fmt::format("{}", cards), "--topology", cards > 2 ? "ring" : "chain",
                    "--vram", "256M", "--memory", "2G", "--sync", sync, "--timeout", "1800", "--", "sh", "-c",
                    kGuest}),
          guest_(command_.words()) {
        // The first answer has no times of CPUs, and QEMU has the programs' code to translate.
        for (const Sample& sample : kSamples)
            (void)cost_of(sample);
    }

    Cost cost_of(const Sample& sample) {
        const auto begin = std::chrono::steady_clock::now();
        const Answer answer = guest_.ask(sample.command);
        const std::chrono::duration<double> real = std::chrono::steady_clock::now() - begin;
        if (answer.model_ns != 0)  // its second number
            throw std::runtime_error(fmt::format("{} failed in the VM", sample.command));
        return {answer.cpu_seconds + answer.vm_cpu_seconds, real.count()};
    }

  private:
    Command command_;
    GuestProgram guest_;
};

void measure(Measured& measured, unsigned cards, const std::string& program) {
    Vm free(cards, "free", program), in_step(cards, "lockstep", program);
    for (const Sample& sample : kSamples) {
        Measurement cpu{fmt::format("{}, in step", sample.name), cards, {}, {}};
        Measurement real{fmt::format("{}, in step, real time", sample.name), cards, {}, {}};
        for (int round = 0; round < kRounds; ++round) {
            // Each goes first in its turn.
            const bool first = round % 2 == 0;
            const Cost one = (first ? free : in_step).cost_of(sample);
            const Cost other = (first ? in_step : free).cost_of(sample);
            const auto& [plain, step] = first ? std::pair(one, other) : std::pair(other, one);
            cpu.samples.push_back(step.cpu);
            cpu.yardstick.push_back(plain.cpu);
            real.samples.push_back(step.real);
            real.yardstick.push_back(plain.real);
        }
        measured.add(std::move(cpu));
        measured.add(std::move(real));
    }
}

int run(const std::vector<std::string>& arguments) {
    Measured measured;
    for (const unsigned cards : numbers(arguments[0]))
        measure(measured, cards, arguments[1]);
    return measured.print() ? 0 : 1;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    if (argc != 3) {
        fmt::print(stderr, "usage: bench_lockstep CARDS,... ORRERY-VM\n");
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    try {
        return orrery::bench::run({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_lockstep: {}\n", error.what());
        return 1;
    }
}
