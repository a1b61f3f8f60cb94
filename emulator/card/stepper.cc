#include "emulator/card/stepper.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "emulator/base/unique_fd.h"

extern char** environ;

namespace orrery::emu {

namespace {

// The whole recording is replayed. The card answers its host meanwhile, but gdb waits.
constexpr std::chrono::seconds kPatience{20};
constexpr int kLookMs = 1;
constexpr std::size_t kMostText = 1 << 20;

// All that it writes, or why not.
enum class Heard : std::uint8_t { kAll, kTooMuch, kTooLate, kNobodyWaits };

Heard read_all(int fd, std::string& text, const std::function<bool()>& meanwhile) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    std::array<char, 4096> buffer;
    for (;;) {
        if (!meanwhile()) return Heard::kNobodyWaits;
        if (std::chrono::steady_clock::now() >= end) return Heard::kTooLate;
        pollfd wait{fd, POLLIN, 0};
        if (::poll(&wait, 1, kLookMs) <= 0) continue;
        const ssize_t got = ::read(fd, buffer.data(), buffer.size());
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return Heard::kAll;
        if (text.size() > kMostText) return Heard::kTooMuch;
        text.append(buffer.data(), static_cast<std::size_t>(got));
    }
}

}  // namespace

std::string ask_stepper(const std::filesystem::path& program, const std::filesystem::path& recording,
                        const std::string& command, const std::function<bool()>& meanwhile) {
    if (program.empty())
        return "orrery-step is not beside this card's program: build it, and start the card anew\n";
    if (recording.empty())
        return "what the firmware decides is seen in a recording only: start the card with --record FILE or "
               "--flight MIB\n";
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fmt::format("no pipe: {}\n", std::strerror(errno));
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, to.get(), STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    std::array<std::string, 6> words = {program.string(), recording.string(), "-c", "goto end", "-c",
                                        command};
    std::array<char*, 7> argv{};
    for (std::size_t n = 0; n < words.size(); ++n)
        argv[n] = words[n].data();
    pid_t child = 0;
    const int error = ::posix_spawn(&child, program.c_str(), &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    to.reset();
    if (error != 0) return fmt::format("{}: {}\n", program.string(), std::strerror(error));
    std::string text;
    const Heard heard = read_all(from.get(), text, meanwhile);
    // What has said all has nothing left to do, and what has not may never end by itself.
    ::kill(child, SIGKILL);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (heard == Heard::kNobodyWaits) return "the card is being stopped\n";
    if (heard == Heard::kTooMuch)
        return "that is more than gdb can be told: run orrery-step on the recording\n";
    if (heard == Heard::kTooLate)
        return "the recording is too long to be replayed while gdb waits: run orrery-step on it\n";
    const std::string asked = "orrery-step> " + command + "\n";
    const std::size_t at = text.find(asked);
    if (at == std::string::npos)
        return "orrery-step could not read the recording; the card's log may say why\n";
    return text.substr(at + asked.size());
}

}  // namespace orrery::emu
