// histogram: counts the byte values of files on Orrery cards, and checks the result against the CPU.
#include <fmt/format.h>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "umd/samples/histogram/card_part.h"
#include "umd/samples/histogram/input.h"
#include "umd/samples/histogram/report.h"

namespace {

constexpr const char* kHelp =
    "usage: histogram [--cards N] [--json] [FILE...]\n"
    "Counts how often each byte value occurs in FILE, on Orrery cards, and checks the counts against the "
    "CPU.\n"
    "Without a FILE: the GPL's text and the running kernel's image, where the system has them.\n"
    "\n"
    "  --cards N   split a file over N cards (default: all)\n"
    "  --json      print JSON\n"
    "Exit status: 0 all correct, 1 a wrong count or a failure, 2 a mistake in the command line or a FILE.\n";

struct Options {
    int cards = 0;  // 0: all
    bool json = false;
    std::vector<std::string> files;
};

Options parse(int argc, char** argv) {
    Options options;
    for (int i = 1; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument == "--json") {
            options.json = true;
        } else if (argument == "--cards") {
            const std::string_view value = i + 1 < argc ? argv[++i] : "";
            const auto [end, error] =
                std::from_chars(value.data(), value.data() + value.size(), options.cards);
            if (error != std::errc() || end != value.data() + value.size() || options.cards < 1) {
                throw InputError(fmt::format("--cards {}: a number of cards, at least 1, is needed", value));
            }
        } else if (argument.starts_with("-") && argument != "-") {
            throw InputError(fmt::format("unknown option {}\n{}", argument, kHelp));
        } else {
            options.files.emplace_back(argument);
        }
    }
    return options;
}

int count_cards(int wanted) {
    const int found = orrery::device_count();
    if (found == 0) throw InputError("there is no Orrery card: is the module loaded (modprobe orrery)?");
    if (wanted > found) throw InputError(fmt::format("--cards {}: there are only {}", wanted, found));
    return wanted == 0 ? found : wanted;
}

// Bytes of a file that fit, leaving room for what else the run needs.
std::size_t room_on(int cards) {
    std::size_t room = 0;
    for (int device = 0; device < cards; ++device) {
        std::size_t free_bytes = 0, total = 0;
        const orrery::DeviceGuard guard(device);
        orrery::check(orrMemGetInfo(&free_bytes, &total));
        const std::size_t reserve = 16u << 20;
        const std::size_t usable = free_bytes > reserve ? free_bytes - reserve : 0;
        room = device == 0 ? usable : std::min(room, usable);
    }
    return room * static_cast<std::size_t>(cards);
}

FileResult run_file(const std::string& path, int cards) {
    const std::vector<std::byte> data = read_input(path, room_on(cards));
    FileResult result;
    result.path = path;
    result.bytes = data.size();
    result.run = count_on_cards(data, cards);

    const auto begin = std::chrono::steady_clock::now();
    Histogram expected{};
    for (const std::byte value : data)
        ++expected[std::to_integer<std::size_t>(value)];
    const auto end = std::chrono::steady_clock::now();
    result.cpu_ns = std::chrono::duration<double, std::nano>(end - begin).count();

    const auto wrong = std::mismatch(expected.begin(), expected.end(), result.run.bins.begin());
    result.correct = wrong.first == expected.end();
    if (!result.correct) {
        result.difference = fmt::format("byte {:#04x}: card {}, CPU {}", wrong.first - expected.begin(),
                                        *wrong.second, *wrong.first);
    }
    return result;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 1 && (std::strcmp(argv[1], "--help") == 0 || std::strcmp(argv[1], "-h") == 0)) {
        fmt::print("{}", kHelp);
        return 0;
    }
    try {
        Options options = parse(argc, argv);
        if (options.files.empty()) options.files = default_files();
        if (options.files.empty()) throw InputError("name a FILE: none of the default ones is here");
        const int cards = count_cards(options.cards);
        std::vector<FileResult> results;
        results.reserve(options.files.size());
        for (const std::string& file : options.files)
            results.push_back(run_file(file, cards));
        if (options.json) {
            print_json(results);
        } else {
            print_table(results);
        }
        const bool correct =
            std::all_of(results.begin(), results.end(), [](const auto& r) { return r.correct; });
        return correct && std::fflush(stdout) == 0 ? 0 : 1;
    } catch (const InputError& error) {
        fmt::print(stderr, "histogram: {}\n", error.what());
        return 2;
    } catch (const std::exception& error) {
        fmt::print(stderr, "histogram: {}\n", error.what());
        return 1;
    }
}
