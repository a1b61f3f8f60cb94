#include "tools/vm/cards.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "tools/vm/logs.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

constexpr auto kReadyLimit = std::chrono::seconds(30);

fs::path control_path(const fs::path& directory, unsigned index) {
    return directory / fmt::format("card{}.control", index);
}
fs::path switch_control_path(const fs::path& directory, unsigned index) {
    return directory / fmt::format("switch{}.control", index);
}

Failure card_failure(const std::string& name, const std::string& what, const fs::path& log) {
    return {kExitSetup, fmt::format("{} {}\n  the end of {}:\n{}", name, what, log.string(), tail(log, 15))};
}

Result<void> wait_ready(const std::string& name, Child& process, int output, const fs::path& log,
                        int interrupt_fd) {
    const auto deadline = std::chrono::steady_clock::now() + kReadyLimit;
    std::string text;
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
            deadline - std::chrono::steady_clock::now());
        if (left.count() <= 0)
            return std::unexpected(card_failure(name, "did not say 'ready' within 30 s", log));
        pollfd fds[] = {{output, POLLIN, 0}, {interrupt_fd, POLLIN, 0}};
        if (::poll(fds, 2, static_cast<int>(left.count())) < 0 && errno != EINTR)
            return fail(fmt::format("poll: {}", std::strerror(errno)));
        if (fds[1].revents != 0) return fail("interrupted");
        if (fds[0].revents == 0) continue;
        char buffer[256];
        const ssize_t n = ::read(output, buffer, sizeof buffer);
        if (n <= 0) {
            // Its output is closed before it can be waited for.
            auto status = process.wait(0);
            for (int tries = 0; !status && tries < 100; ++tries) {
                pollfd interrupt{interrupt_fd, POLLIN, 0};
                if (::poll(&interrupt, 1, 0) > 0) return fail("interrupted");
                status = process.wait(100);
            }
            return std::unexpected(card_failure(
                name, status ? describe_status(*status) + " at its start" : "closed its output at its start",
                log));
        }
        text.append(buffer, static_cast<std::size_t>(n));
        if (text.starts_with("ready\n") || text.find("\nready\n") != std::string::npos) return {};
    }
}

// Of the card or switch at `place`. That with the lower number listens; in a run of one VM it starts first.
void add_links(const Options& options, unsigned place, const fs::path& directory,
               std::vector<std::string>& argv) {
    for (const auto& [first, second] : options.joined.links) {
        const auto path = directory / fmt::format("link-{}.{}-{}.{}.sock", first.card, first.port,
                                                  second.card, second.port);
        if (first.card == place)
            argv.insert(argv.end(), {"--link", fmt::format("{}:listen:{}", first.port, path.string())});
        if (second.card == place)
            argv.insert(argv.end(), {"--link", fmt::format("{}:connect:{}", second.port, path.string())});
    }
}

}  // namespace

fs::path card_socket(const fs::path& directory, unsigned index) {
    return directory / fmt::format("card{}.sock", index);
}

fs::path recording_of(const Options& options, unsigned index) {
    return fs::absolute(options.record) / fmt::format("card{}.otrace", index);
}

std::vector<std::string> card_command(const Options& options, unsigned index, const fs::path& directory) {
    const auto& links = options.joined.links;
    std::vector<std::string> argv{options.card_program.string(),
                                  "--socket",
                                  card_socket(directory, index).string(),
                                  "--index",
                                  fmt::format("{}", index),
                                  "--irq",
                                  options.irq,
                                  "--fuses",
                                  (options.programs.parent_path() / "firmware/dev.pub").string()};
    if (!options.vram.empty()) argv.insert(argv.end(), {"--vram", options.vram});
    if (!options.sku.empty()) argv.insert(argv.end(), {"--sku", options.sku});
    for (const std::string& check : options.checks)
        argv.insert(argv.end(), {"--check", check});
    if (!options.record.empty())
        argv.insert(argv.end(), {"--record", recording_of(options, index).string()});
    else if (options.flight_mib != 0)
        argv.insert(argv.end(), {"--flight", fmt::format("{}", options.flight_mib)});
    if (index < options.faults.size() && !options.faults[index].empty())
        argv.insert(argv.end(), {"--faults", options.faults[index]});
    const fs::path& shared = options.shared.empty() ? directory : options.shared;
    const bool linked = std::ranges::any_of(
        links, [&](const auto& link) { return link.first.card == index || link.second.card == index; });
    if (options.sync == "lockstep" && linked)
        argv.insert(argv.end(), {"--lockstep", (shared / "lockstep").string()});
    if (options.control) argv.insert(argv.end(), {"--control", control_path(directory, index).string()});
    add_links(options, index, shared, argv);
    if (index < options.card_args.size())
        argv.insert(argv.end(), options.card_args[index].begin(), options.card_args[index].end());
    return argv;
}

std::vector<std::string> switch_command(const Options& options, unsigned index, const fs::path& directory) {
    const topology::SwitchPlace& place = options.joined.switches[index];
    std::vector<std::string> argv{options.switch_program.string(), "--index", fmt::format("{}", index),
                                  "--level", fmt::format("{}", place.level)};
    if (!options.switch_model.empty()) argv.insert(argv.end(), {"--model", options.switch_model});
    if (index < options.switch_faults.size() && !options.switch_faults[index].empty())
        argv.insert(argv.end(), {"--faults", options.switch_faults[index]});
    const fs::path& shared = options.shared.empty() ? directory : options.shared;
    if (options.sync == "lockstep") argv.insert(argv.end(), {"--lockstep", (shared / "lockstep").string()});
    if (options.control)
        argv.insert(argv.end(), {"--control", switch_control_path(directory, index).string()});
    add_links(options, options.joined.cards + index, shared, argv);
    return argv;
}

namespace {

Result<Card> start(Card made, const std::vector<std::string>& argv, int interrupt_fd) {
    std::vector<int> keep;
    if (made.flight) keep.push_back(made.flight.get());
    auto err = open_log(made.log.string());
    if (!err) return std::unexpected(err.error());
    int out[2];
    if (::pipe2(out, O_CLOEXEC) != 0)
        return fail(fmt::format("cannot make a pipe: {}", std::strerror(errno)));
    Fd reader(out[0]);
    Fd writer(out[1]);
    auto process =
        Child::start({.argv = argv, .in = -1, .out = writer.get(), .err = err->get(), .keep = keep});
    if (!process) return std::unexpected(process.error());
    writer.reset();
    if (auto ready = wait_ready(made.name, *process, reader.get(), made.log, interrupt_fd); !ready)
        return std::unexpected(ready.error());
    made.process.emplace(std::move(*process));
    made.output = std::move(reader);
    return made;
}

}  // namespace

Result<Card> start_card(const Options& options, unsigned index, const fs::path& directory,
                        const fs::path& logs, int interrupt_fd) {
    std::vector<std::string> argv = card_command(options, index, directory);
    Fd flight;
    if (options.record.empty() && options.flight_mib != 0) {
        flight = Fd(::memfd_create("orrery-flight", MFD_CLOEXEC));
        if (!flight)
            return fail(fmt::format("cannot make the memory of a flight recorder: {}", std::strerror(errno)));
        // It gets the descriptor under this number.
        argv.insert(argv.begin() + 1, {"--flight-file", fmt::format("/proc/self/fd/{}", flight.get())});
    }
    return start({.name = fmt::format("card {}", index),
                  .index = index,
                  .process = {},
                  .output = {},
                  .socket = card_socket(directory, index),
                  .control = options.control ? control_path(directory, index) : fs::path(),
                  .log = logs / fmt::format("card{}.log", index),
                  .flight = std::move(flight),
                  .died = {}},
                 argv, interrupt_fd);
}

Result<Card> start_switch(const Options& options, unsigned index, const fs::path& directory,
                          const fs::path& logs, int interrupt_fd) {
    return start({.name = fmt::format("switch {}", index),
                  .index = index,
                  .process = {},
                  .output = {},
                  .socket = {},
                  .control = options.control ? switch_control_path(directory, index) : fs::path(),
                  .log = logs / fmt::format("switch{}.log", index),
                  .flight = {},
                  .died = {}},
                 switch_command(options, index, directory), interrupt_fd);
}

}  // namespace orrery::vm
