#include "emulator/control/fault_control.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "emulator/pcie/socket.h"

namespace orrery::emu {

std::expected<std::unique_ptr<FaultControl>, std::string> FaultControl::create(std::string path,
                                                                               Faults& faults, Cable cable) {
    auto listener = listen_unix(path);
    if (!listener) return std::unexpected("--control: " + listener.error());
    return std::unique_ptr<FaultControl>(
        new FaultControl(std::move(path), *std::move(listener), faults, std::move(cable)));
}

FaultControl::FaultControl(std::string path, UniqueFd listener, Faults& faults, Cable cable)
    : path_(std::move(path)), listener_(std::move(listener)), faults_(faults), cable_(std::move(cable)) {}

FaultControl::~FaultControl() {
    ::unlink(path_.c_str());
}

std::string FaultControl::answer(std::string_view command) {
    const auto result = [](const std::expected<void, std::string>& done) {
        return done ? std::string("ok\n") : fmt::format("error: {}\n", done.error());
    };
    const std::string_view verb = command.substr(0, command.find(' '));
    const std::string_view rest =
        verb.size() == command.size() ? std::string_view() : command.substr(verb.size() + 1);
    if (verb == "add") return result(faults_.add(rest));
    if (verb == "unplug" || verb == "plug") {
        unsigned port = 0;
        const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), port);
        if (error != std::errc() || end != rest.data() + rest.size())
            return fmt::format("error: {} '{}': the number of a link port is needed\n", verb, rest);
        return result(cable_(port, verb == "plug"));
    }
    if (command == "clear") {
        faults_.clear();
        return "ok\n";
    }
    if (command == "hits") return faults_.hits() + "ok\n";
    return fmt::format(
        "error: '{}' is no command; there are: add RULE, clear, hits, unplug PORT, plug PORT\n", verb);
}

bool FaultControl::service() {
    constexpr std::size_t kMaxLine = FaultPlan::kMaxText;
    if (!client_) {
        client_.reset(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
        input_.clear();
        return static_cast<bool>(client_);
    }
    std::array<char, 4096> bytes;
    const ssize_t got = ::recv(client_.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (got <= 0) {
        client_.reset();
        return true;
    }
    input_.append(bytes.data(), static_cast<std::size_t>(got));
    std::size_t end = 0;
    while (client_ && (end = input_.find('\n')) != std::string::npos) {
        std::string line = input_.substr(0, end);
        input_.erase(0, end + 1);
        if (line.ends_with('\r')) line.pop_back();
        const std::string reply = answer(line);
        // Whoever does not read its answers is hung up on.
        if (::send(client_.get(), reply.data(), reply.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
            static_cast<ssize_t>(reply.size()))
            client_.reset();
    }
    if (input_.size() > kMaxLine) client_.reset();
    return true;
}

}  // namespace orrery::emu
