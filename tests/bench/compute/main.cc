// bench_compute COMMAND...: vector code through the whole path, a program in a VM and a card beside it, in
// turns with the same work on this host's CPU and in qemu-riscv64. COMMAND starts bench_compute_guest in a
// VM.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/bench/compute/guest_program.h"
#include "tests/bench/compute/native.h"
#include "tests/bench/compute/shape.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

constexpr int kRounds = 9;
constexpr double kArray = kElements * sizeof(float) / 1e9;    // GB
constexpr double kGemm = 2e-9 * kMatrix * kMatrix * kMatrix;  // GFLOP
constexpr double kAttention = 4e-9 * 8 * 512 * 512 * 64;      // GFLOP; guest.cc has the shape

// GB/s of the arrays' bytes, of each loop.
std::map<std::string, std::vector<double>> in_qemu(const std::map<std::string, double>& bytes) {
    const std::string command =
        std::string(ORRERY_QEMU_RISCV64) + " -cpu rv64,v=true,vlen=1024 " ORRERY_IN_QEMU;
    std::FILE* const out = ::popen(command.c_str(), "r");
    std::map<std::string, std::vector<double>> rates;
    char name[64];
    for (double ns = 0; out != nullptr && std::fscanf(out, "%63s %lf", name, &ns) == 2;)
        rates[name].push_back(bytes.at(name) / ns * 1e9);
    if (out == nullptr || ::pclose(out) != 0) throw std::runtime_error(command + " failed");
    return rates;
}

void measure(Measured& measured, char** command) {
    Native native;
    GuestProgram guest(command);
    const std::map<std::string, double> bytes = {
        {"saxpy", 3 * kArray}, {"triad", 3 * kArray}, {"reduction", kArray}};
    std::map<std::string, Measurement> all;
    const auto add = [&](const std::string& name, double sample, double yardstick) {
        Measurement& one = all[name];
        one.name = name;
        one.samples.push_back(sample);
        one.yardstick.push_back(yardstick);
    };
    // In time on a CPU, which other programs on the host do not lengthen much, and in real time.
    const auto beside = [&](const std::string& name, const std::string& work, double amount) {
        const Answer card = guest.ask(work.c_str());
        const Seconds here = native.seconds_of(work);
        add(name, amount / card.cpu_seconds, amount / here.cpu);
        add(name + ", real time", amount / card.seconds, amount / here.real);
        return card;
    };
    const double vector_peak = guest.ask("vector peak").seconds,
                 memory_peak = guest.ask("memory peak").seconds;
    for (const char* warm_up : {"saxpy", "triad", "reduction", "memcpy", "sgemm"})
        (void)native.seconds_of(warm_up);
    for (int round = 0; round < kRounds; ++round) {
        for (const auto& [loop, amount] : bytes) {
            const Answer card = beside(loop, loop, amount);
            if (loop == "triad") add("triad, model time", amount * 1e9 / card.model_ns, memory_peak);
        }
        const Answer product = beside("SGEMM 512^3", "sgemm", kGemm);
        add("SGEMM 512^3, model time", kGemm * 1e9 / product.model_ns, vector_peak);
        add("fused attention, model time", kAttention * 1e9 / guest.ask("attention").model_ns, vector_peak);
        for (const std::string way : {"to card", "from card"}) {
            add("64 MiB " + way + ", once", kArray / guest.ask(way.c_str()).seconds,
                kArray / native.seconds_of("memcpy").real);
            const std::string name = way + ", in a row";
            add("64 MiB " + name, kInARow * kArray / guest.ask(name.c_str()).seconds,
                kInARow * kArray / native.seconds_of("memcpy in a row").real);
        }
    }
    for (const auto& [loop, rates] : in_qemu(bytes))
        all[loop + ", qemu-riscv64"] = {
            loop + ", qemu-riscv64", {}, rates, all.at(loop + ", real time").yardstick};
    for (auto& [name, one] : all)
        measured.add(std::move(one));
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    return orrery::bench::main_of("bench_compute", argc, argv, orrery::bench::measure);
}
