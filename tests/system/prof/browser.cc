#include "tests/system/prof/browser.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace orrery::prof::test {
namespace {

constexpr int kAnswerSeconds = 120;  // a page of a million slices on a slow machine

[[noreturn]] void stop_with(const std::string& what) {
    throw std::runtime_error(what);
}

class Socket {
  public:
    explicit Socket(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval limit{kAnswerSeconds, 0};
        if (fd_ < 0 || ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit) != 0 ||
            ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            stop_with(fmt::format("chromedriver does not answer: {}", std::strerror(errno)));
    }
    ~Socket() { ::close(fd_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    void send(std::string_view text) const {
        while (!text.empty()) {
            const ssize_t sent = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
            if (sent <= 0) stop_with(fmt::format("chromedriver: {}", std::strerror(errno)));
            text.remove_prefix(static_cast<std::size_t>(sent));
        }
    }
    // The body of an answer.
    std::string answer() const {
        std::string text;
        std::size_t body = std::string::npos, size = 0;
        while (body == std::string::npos || text.size() < body + size) {
            char piece[65536];
            const ssize_t got = ::recv(fd_, piece, sizeof piece, 0);
            if (got < 0 && errno == EINTR) continue;  // it was stopped for a while: with a limit that is told
            if (got <= 0)
                stop_with(fmt::format("chromedriver's answer: {}", got == 0 ? "cut" : std::strerror(errno)));
            text.append(piece, static_cast<std::size_t>(got));
            if (body != std::string::npos) continue;
            const std::size_t end = text.find("\r\n\r\n");
            if (end == std::string::npos) continue;
            body = end + 4;
            constexpr std::string_view kLength = "content-length:";
            std::string head = text.substr(0, end);
            for (char& c : head)
                c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
            const std::size_t length = head.find(kLength);
            if (length == std::string::npos) stop_with("chromedriver's answer has no length");
            size = std::stoul(head.substr(length + kLength.size()));
        }
        return text.substr(body, size);
    }

  private:
    int fd_;
};

Browser::Json moved_to(double x, double y, int duration = 0) {
    return {{"type", "pointerMove"},
            {"x", static_cast<int>(x)},
            {"y", static_cast<int>(y)},
            {"duration", duration}};
}
const Browser::Json kDown = {{"type", "pointerDown"}, {"button", 0}};
const Browser::Json kUp = {{"type", "pointerUp"}, {"button", 0}};

}  // namespace

Browser::Browser(const std::filesystem::path& folder) {
    start(folder);
    try {
        // Without its sandbox, which root has none of and containers often neither: the pages are our own.
        const Json options = {{"args", Json::array({"--headless=new", "--no-sandbox", "--disable-gpu",
                                                    "--disable-dev-shm-usage", "--window-size=1200,800",
                                                    "--user-data-dir=" + (folder / "chromium").string()})}};
        const Json answer = request("POST", "/session",
                                    {{"capabilities",
                                      {{"alwaysMatch",
                                        {{"browserName", "chrome"},
                                         {"goog:chromeOptions", options},
                                         {"goog:loggingPrefs", {{"browser", "ALL"}}}}}}}});
        session_ = "/session/" + answer.at("sessionId").get<std::string>();
    } catch (...) {
        stop();
        throw;
    }
}

Browser::~Browser() {
    try {
        request("DELETE", session_);  // ends Chromium
    } catch (const std::exception& problem) {
        fmt::print(stderr, "{}\n", problem.what());
    }
    stop();
}

void Browser::start(const std::filesystem::path& folder) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) stop_with("no pipe");
    const pid_t parent = ::getpid();
    driver_ = ::fork();
    if (driver_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (::getppid() != parent) ::_exit(1);
        ::dup2(ends[1], STDOUT_FILENO);
        ::setenv("HOME", folder.c_str(), 1);  // it leaves files there
        ::execlp(CHROMEDRIVER, CHROMEDRIVER, "--port=0", "--log-level=SEVERE", static_cast<char*>(nullptr));
        ::_exit(127);
    }
    ::close(ends[1]);
    std::string said;
    constexpr std::string_view kPort = "successfully on port ";
    while (port_ == 0) {
        pollfd ready{ends[0], POLLIN, 0};
        char piece[512];
        ssize_t got = 0;
        const int polled = ::poll(&ready, 1, kAnswerSeconds * 1000);
        if (polled < 0 && errno == EINTR) continue;
        if (polled > 0) got = ::read(ends[0], piece, sizeof piece);
        if (got <= 0) {
            ::close(ends[0]);
            stop();
            stop_with(fmt::format("{} did not start: {}", CHROMEDRIVER, said));
        }
        said.append(piece, static_cast<std::size_t>(got));
        const std::size_t at = said.find(kPort);
        if (at == std::string::npos || said.find('\n', at) == std::string::npos) continue;
        const char* const digits = said.data() + at + kPort.size();
        std::from_chars(digits, said.data() + said.size(), port_);
    }
    ::close(ends[0]);
}

void Browser::stop() {
    if (driver_ < 0) return;
    ::kill(driver_, SIGTERM);
    ::waitpid(driver_, nullptr, 0);
    driver_ = -1;
}

Browser::Json Browser::request(const std::string& method, const std::string& path, const Json& body) {
    const Socket socket(port_);
    const std::string text = body.is_null() ? "" : body.dump();
    socket.send(fmt::format(
        "{} {} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n"
        "Connection: close\r\n\r\n{}",
        method, path, port_, text.size(), text));
    Json value = Json::parse(socket.answer()).at("value");
    if (value.is_object() && value.contains("error"))
        stop_with(fmt::format("{}: {}", path, value.at("message").get<std::string>()));
    return value;
}

void Browser::open(const std::filesystem::path& page) {
    command("/url", {{"url", "file://" + page.string()}});
}
Browser::Json Browser::run(const std::string& script, const Json& arguments) {
    return command("/execute/sync", {{"script", script}, {"args", arguments}});
}
Browser::Json Browser::run_async(const std::string& script, const Json& arguments) {
    return command("/execute/async", {{"script", script}, {"args", arguments}});
}
void Browser::resize(int width, int height) {
    command(
        "/goog/cdp/execute",
        {{"cmd", "Emulation.setDeviceMetricsOverride"},
         {"params", {{"width", width}, {"height", height}, {"deviceScaleFactor", 1}, {"mobile", false}}}});
}
void Browser::prefer_dark(bool dark) {
    const Json feature = {{"name", "prefers-color-scheme"}, {"value", dark ? "dark" : "light"}};
    command("/goog/cdp/execute",
            {{"cmd", "Emulation.setEmulatedMedia"}, {"params", {{"features", Json::array({feature})}}}});
}

void Browser::click(double x, double y, bool twice) {
    Json steps = Json::array({moved_to(x, y), kDown, kUp});
    if (twice) steps.insert(steps.end(), {kDown, kUp});
    actions(Json::array({{{"type", "pointer"}, {"id", "mouse"}, {"actions", steps}}}));
}
void Browser::drag(double x, double y, double to_x, double to_y, bool shift) {
    constexpr const char* kShift = "\uE008";
    const Json pause = {{"type", "pause"}, {"duration", 0}};
    const Json mouse =
        Json::array({pause, moved_to(x, y), kDown, moved_to((x + to_x) / 2, (y + to_y) / 2, 20),
                     moved_to(to_x, to_y, 20), kUp});
    Json sources = Json::array({{{"type", "pointer"}, {"id", "mouse"}, {"actions", mouse}}});
    if (shift) {
        const Json keys = Json::array({{{"type", "keyDown"}, {"value", kShift}},
                                       pause,
                                       pause,
                                       pause,
                                       pause,
                                       pause,
                                       {{"type", "keyUp"}, {"value", kShift}}});
        sources.push_back({{"type", "key"}, {"id", "keys"}, {"actions", keys}});
    }
    actions(sources);
}
void Browser::scroll(double x, double y, int delta_y) {
    const Json turn = {{"type", "scroll"}, {"x", static_cast<int>(x)}, {"y", static_cast<int>(y)},
                       {"deltaX", 0},      {"deltaY", delta_y},        {"duration", 0}};
    actions(Json::array({{{"type", "wheel"}, {"id", "wheel"}, {"actions", Json::array({turn})}}}));
}
void Browser::key(const std::string& key) {
    const Json steps =
        Json::array({{{"type", "keyDown"}, {"value", key}}, {{"type", "keyUp"}, {"value", key}}});
    actions(Json::array({{{"type", "key"}, {"id", "keys"}, {"actions", steps}}}));
}
void Browser::type(const std::string& text) {
    for (const char letter : text)
        key(std::string(1, letter));
}

Browser::Json Browser::console() {
    return command("/se/log", {{"type", "browser"}});
}

}  // namespace orrery::prof::test
