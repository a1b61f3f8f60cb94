// bench_memory CORES,... SKU ORRERY-VM: what a card's process takes beside the VRAM and the guest's memory
// that it has mapped, for cards as SKU has them with so many vector cores, after kernels on all of them and
// copies; with and without host threads that compute ahead.
#include <fmt/format.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/bench/compute/guest_program.h"
#include "tools/bench/measured.h"

namespace orrery::bench {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::pair<const char*, int>, 2> kFigures{
    {{"card process, beside VRAM", 0}, {"card process with 4 threads, beside VRAM", 4}}};

std::string text_of(const fs::path& file) {
    std::ifstream in(file);
    return {std::istreambuf_iterator<char>(in), {}};
}

// MiB that are in memory, but for what it shares with others by a memory file: its VRAM, the guest.
double resident(pid_t process) {
    std::istringstream maps(text_of(fmt::format("/proc/{}/smaps", process)));
    double kib = 0;
    bool shared = false, any = false;
    for (std::string line; std::getline(maps, line);) {
        unsigned long long from = 0, to = 0, size = 0;
        if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2)
            shared = line.find("/memfd:") != std::string::npos;
        else if (std::sscanf(line.c_str(), "Rss: %llu kB", &size) == 1 && (any = true) && !shared)
            kib += static_cast<double>(size);
    }
    if (!any) throw std::runtime_error("nothing is known of the card's memory");
    return kib / 1024;
}

// `threads`: for work-groups.
Measurement measure(const char* figure, std::uint64_t cores, int threads, const fs::path& sku,
                    const std::string& vm) {
    // A folder of its own, away from those of other runs.
    std::string folder = fs::temp_directory_path() / "bench-memory-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) throw std::runtime_error(folder + " cannot be made");
    std::string file = folder + "/sku.toml";
    const std::string text = text_of(sku);
    const std::regex cores_of_sku("\ncores = \\[[0-9]+,");
    if (!std::regex_search(text, cores_of_sku)) throw std::runtime_error(sku.string() + " names no cores");
    const std::string changed = std::regex_replace(text, cores_of_sku, fmt::format("\ncores = [{},", cores));
    std::ofstream(file) << changed;
    std::vector<std::string> words = {vm,
                                      "--sku",
                                      file,
                                      "--vram",
                                      "1G",
                                      "--card-arg",
                                      fmt::format("--threads={}", threads),
                                      "--timeout",
                                      "300",
                                      "--",
                                      "bench_compute_guest"};
    std::vector<char*> command;
    for (std::string& word : words)
        command.push_back(word.data());
    command.push_back(nullptr);
    Measurement one{figure, cores, {}, {}};
    {
        GuestProgram guest(command.data());
        for (int round = 0; round < 3; ++round) {
            for (const char* work : {"saxpy", "sgemm", "attention", "to card", "from card"})
                (void)guest.ask(work);
            one.samples.push_back(resident(guest.card()));
        }
    }
    fs::remove_all(folder);
    return one;
}

}  // namespace
}  // namespace orrery::bench

int main(int argc, char** argv) {
    using namespace orrery::bench;
    if (argc != 4) {
        fmt::print(stderr, "usage: bench_memory CORES,... SKU-FILE ORRERY-VM\n");
        return 2;
    }
    std::signal(SIGPIPE, SIG_IGN);
    try {
        Measured measured;
        std::istringstream sizes(argv[1]);
        for (std::string cores; std::getline(sizes, cores, ',');)
            for (const auto& [figure, threads] : kFigures)
                measured.add(measure(figure, std::stoull(cores), threads, argv[2], argv[3]));
        return measured.print() ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bench_memory: {}\n", error.what());
        return 1;
    }
}
