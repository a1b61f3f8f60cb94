// orrery-ranks RANKS [--profiles FOLDER] PROGRAM [ARGUMENT...]: starts this VM's ranks of a program (ORR_VM,
// ORR_VMS; without them all), gives each a prefix for its lines, and ends all when one fails. orrery-run
// starts it. With a folder for profiles the program is `orrery-prof record`, and each is told its own file.
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "tools/run/ranks.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kKillAfter = std::chrono::seconds(5);  // who was told to end and does not
constexpr auto kDrain = std::chrono::seconds(2);      // for what children of ranks hold open
constexpr std::size_t kLongest = 65536;               // of a line

struct Stream {
    int fd = -1;
    int to = -1;
    std::string text;
};

struct Rank {
    unsigned number = 0;
    pid_t pid = -1;
    int pidfd = -1;
    std::array<Stream, 2> streams{};
    std::optional<int> status;
};

std::optional<unsigned> number(const char* text) {
    unsigned value = 0;
    if (text == nullptr) return std::nullopt;
    const char* const end = text + std::strlen(text);
    const auto [rest, error] = std::from_chars(text, end, value);
    if (error != std::errc{} || rest != end) return std::nullopt;
    return value;
}

[[noreturn]] void fail(const std::string& text) {
    fmt::print(stderr, "orrery-run: error: {}\n", text);
    std::exit(121);
}

void put(int to, std::string_view text) {
    while (!text.empty()) {
        const ssize_t n = ::write(to, text.data(), text.size());
        if (n < 0 && errno != EINTR) return;
        text.remove_prefix(n > 0 ? static_cast<std::size_t>(n) : 0);
    }
}

void read_some(const Rank& rank, Stream& stream) {
    std::array<char, 16384> buffer;
    const ssize_t n = ::read(stream.fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) return;
    if (n > 0) stream.text.append(buffer.data(), static_cast<std::size_t>(n));
    if ((n <= 0 && !stream.text.empty()) || stream.text.size() > kLongest) stream.text += '\n';
    std::size_t begin = 0;
    for (std::size_t end; (end = stream.text.find('\n', begin)) != std::string::npos; begin = end + 1)
        put(stream.to,
            fmt::format("{}: {}", rank.number, std::string_view(stream.text).substr(begin, end + 1 - begin)));
    stream.text.erase(0, begin);
    if (n <= 0) {
        ::close(stream.fd);
        stream.fd = -1;
    }
}

void set(const char* name, unsigned value) {
    ::setenv(name, fmt::format("{}", value).c_str(), 1);
}

Rank start(unsigned rank, unsigned local, unsigned locals, unsigned ranks,
           const std::vector<std::string>& program) {
    std::vector<char*> command;
    for (const std::string& word : program)
        command.push_back(const_cast<char*>(word.c_str()));
    command.push_back(nullptr);
    Rank made;
    made.number = rank;
    int out[2], err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) fail("no more pipes");
    made.pid = ::fork();
    if (made.pid < 0) fail(fmt::format("cannot start rank {}: {}", rank, std::strerror(errno)));
    if (made.pid == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(out[1], STDOUT_FILENO);
        ::dup2(err[1], STDERR_FILENO);
        set("ORR_RANK", rank);
        set("ORR_RANKS", ranks);
        set("ORR_LOCAL_RANK", local);
        set("ORR_LOCAL_RANKS", locals);
        ::execvp(command[0], command.data());
        fmt::print(stderr, "cannot start {}: {}\n", command[0], std::strerror(errno));
        std::fflush(stderr);
        ::_exit(127);
    }
    ::setpgid(made.pid, made.pid);
    ::close(out[1]);
    ::close(err[1]);
    made.pidfd = static_cast<int>(::syscall(SYS_pidfd_open, made.pid, 0));
    if (made.pidfd < 0) fail("pidfd_open failed");
    made.streams = {Stream{out[0], STDOUT_FILENO, {}}, Stream{err[0], STDERR_FILENO, {}}};
    return made;
}

class Ranks {
  public:
    explicit Ranks(unsigned vm) : vm_(vm) {}
    void add(Rank rank) { ranks_.push_back(std::move(rank)); }

    int watch() {
        while (running() || (open() && !(drained_ && Clock::now() >= *drained_)))
            step();
        return failed_;
    }

  private:
    bool running() const {
        for (const Rank& rank : ranks_)
            if (!rank.status) return true;
        return false;
    }
    bool open() const {
        for (const Rank& rank : ranks_)
            for (const Stream& stream : rank.streams)
                if (stream.fd >= 0) return true;
        return false;
    }

    void kill_all(int signal) {
        for (const Rank& rank : ranks_)
            if (!rank.status) ::kill(-rank.pid, signal);
    }

    void ended(Rank& rank) {
        int status = 0;
        if (::waitpid(rank.pid, &status, WNOHANG) != rank.pid) return;
        ::close(rank.pidfd);
        rank.pidfd = -1;
        rank.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
        if (*rank.status == 0 || failed_ != 0) return;
        failed_ = *rank.status;
        const std::string how =
            WIFSIGNALED(status)
                ? fmt::format("was killed by signal {} ({})", WTERMSIG(status), ::strsignal(WTERMSIG(status)))
                : fmt::format("ended with status {}", failed_);
        fmt::print(stderr, "orrery-run: rank {} (VM {}) {}, the first to fail here: the others are ended\n",
                   rank.number, vm_, how);
        kill_all(SIGTERM);
        kill_at_ = Clock::now() + kKillAfter;
    }

    void step() {
        std::vector<pollfd> fds;
        for (const Rank& rank : ranks_) {
            fds.push_back({rank.pidfd, POLLIN, 0});
            for (const Stream& stream : rank.streams)
                fds.push_back({stream.fd, POLLIN, 0});
        }
        if (!running() && !drained_) drained_ = Clock::now() + kDrain;
        constexpr int kSliceMs = 100;
        const int got = ::poll(fds.data(), fds.size(), kill_at_ || drained_ ? kSliceMs : -1);
        if (kill_at_ && Clock::now() >= *kill_at_) {
            kill_at_.reset();
            kill_all(SIGKILL);
        }
        if (got <= 0) return;
        std::size_t at = 0;
        for (Rank& rank : ranks_) {
            if (fds[at++].revents != 0) ended(rank);
            for (Stream& stream : rank.streams)
                if (fds[at++].revents != 0) read_some(rank, stream);
        }
    }

    unsigned vm_;
    std::vector<Rank> ranks_;
    int failed_ = 0;
    std::optional<Clock::time_point> kill_at_, drained_;
};

}  // namespace

int main(int argc, char** argv) {
    const auto ranks = argc > 2 ? number(argv[1]) : std::nullopt;
    const bool profiles = argc > 2 && std::string_view(argv[2]) == "--profiles";
    const int first = profiles ? 4 : 2;
    // With profiles: orrery-prof record OPTION... -- PROGRAM.
    if (!ranks || *ranks == 0 || *ranks > orrery::run::kMaxRanks || argc < first + (profiles ? 2 : 1))
        fail("orrery-ranks RANKS [--profiles FOLDER] PROGRAM [ARGUMENT...]");
    const unsigned vm = number(std::getenv("ORR_VM")).value_or(0);
    const unsigned vms = number(std::getenv("ORR_VMS")).value_or(1);
    if (vms == 0 || vm >= vms) fail("ORR_VM and ORR_VMS make no sense");
    set("ORR_VM", vm);
    set("ORR_VMS", vms);
    const auto share = orrery::run::share_of(*ranks, vms, vm);
    Ranks all(vm);
    for (unsigned local = 0; local < share.count; ++local) {
        std::vector<std::string> program(argv + first, argv + argc);
        const unsigned rank = share.first + local;
        if (profiles)
            program.insert(program.begin() + 2, {"--allow-nothing", "-o",
                                                 std::string(argv[3]) + "/" + orrery::run::profile_of(rank)});
        all.add(start(rank, local, share.count, *ranks, program));
    }
    return all.watch();
}
