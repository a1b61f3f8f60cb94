#include "tools/bench/guest/launches.h"

#include <dlfcn.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <orrery/embedded_kernel.hpp>
#include <stdexcept>
#include <thread>

#include "tools/bench/guest/clock.h"
#include "tools/bench/guest/small_kernel_args.h"

ORR_EMBEDDED_KERNEL(bench_kernels);

namespace orrery::bench {
namespace {

constexpr int kLaunches = 100;
constexpr std::uint32_t kGroups = 8;

// Between two breakpoints the parent counts.
void breakpoint() {
#if defined(__x86_64__)
    asm volatile("int3" ::: "memory");
#else
    std::raise(SIGTRAP);
#endif
}

// Runs `process` until its next breakpoint, by single steps if they are to be counted; the steps.
std::uint64_t to_breakpoint(pid_t process, bool step) {
    for (std::uint64_t steps = 0;; ++steps) {
        int status = 0;
        if (::ptrace(step ? PTRACE_SINGLESTEP : PTRACE_CONT, process, nullptr, nullptr) != 0 ||
            ::waitpid(process, &status, 0) != process || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
            throw std::runtime_error("the program whose instructions are counted has failed");
        siginfo_t info{};
        if (::ptrace(PTRACE_GETSIGINFO, process, nullptr, &info) != 0)
            throw std::runtime_error("no information on a signal");
        if (info.si_code != TRAP_TRACE) return steps;
    }
}

// A kernel that keeps the card at work, so that nothing has to wake it.
class Awake {
  public:
    explicit Awake(orrFunction_t stay_awake) {
        std::atomic_ref awake(words_[0]);
        awake = 0;
        words_[1] = 0;
        orrery::launch(stay_awake, {1, 1, 1}, {1, 1, 1}, AwakeArgs{&words_[0], &words_[1]}, 0, stream_);
        while (awake == 0) {
            if (orrStreamQuery(stream_.handle()) != orrErrorNotReady) stream_.synchronize();
        }
    }
    ~Awake() { (void)stop(); }
    // If the kernel came to its limit before, what was measured meanwhile is not of a card at work.
    void end() { check(stop()); }
    Awake(const Awake&) = delete;
    Awake& operator=(const Awake&) = delete;

  private:
    orrError_t stop() {
        std::atomic_ref<std::uint64_t>(words_[1]).store(1);
        return orrStreamSynchronize(stream_.handle());
    }

    Stream stream_;
    PinnedArray<std::uint64_t> words_{2};
};

}  // namespace

LaunchBench::LaunchBench() : library_(bench_kernels_image()), kernel_(library_.function("hundred")) {
    Graph::begin_capture(stream_);
    start_hundred(false);
    graph_ = Graph::end_capture(stream_);
    exec_ = GraphExec(graph_);
}

void LaunchBench::start() const {
    std::uint64_t* const argument = card_.data();
    orrery::launch(kernel_, {kGroups, 1, 1}, {1, 1, 1}, argument, 0, stream_);
}

void LaunchBench::start_hundred(bool as_graph) const {
    if (as_graph) return exec_.launch(stream_);
    for (int i = 0; i < kLaunches; ++i)
        start();
}

std::vector<double> LaunchBench::latency(int launches) {
    std::vector<double> times;
    for (int i = 0; i < launches; ++i) {
        const std::int64_t begin = now_ns();
        start();
        stream_.synchronize();
        times.push_back(static_cast<double>(now_ns() - begin));
    }
    return times;
}

std::vector<double> LaunchBench::starts(int rounds, bool as_graph) {
    // To wake the card takes longer than to start them.
    Awake awake(library_.function("stay_awake"));
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t begin = now_ns();
        start_hundred(as_graph);
        times.push_back(static_cast<double>(now_ns() - begin));
        stream_.synchronize();
    }
    awake.end();
    return times;
}

std::vector<double> LaunchBench::waking(int rounds) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        // Many times as long as a card without work stays awake.
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        const std::int64_t begin = now_ns();
        start();
        times.push_back(static_cast<double>(now_ns() - begin));
        stream_.synchronize();
    }
    return times;
}

std::vector<double> LaunchBench::until_end(int rounds, bool as_graph) {
    std::vector<double> times;
    for (int i = 0; i < rounds; ++i) {
        const std::int64_t begin = now_ns();
        start_hundred(as_graph);
        stream_.synchronize();
        times.push_back(static_cast<double>(now_ns() - begin));
    }
    return times;
}

std::vector<double> LaunchBench::register_writes(int rounds) {
    orrCounter_t kicks{};
    check(orrDeviceFindCounter(&kicks, 0, "kicks"));
    const auto now = [&] {
        std::uint64_t value = 0;
        check(orrDeviceReadCounters(&value, 0, &kicks, 1));
        return value;
    };
    std::vector<double> writes;
    Awake awake(library_.function("stay_awake"));
    for (int i = 0; i < rounds; ++i) {
        const std::uint64_t before = now();
        start_hundred(false);
        writes.push_back(static_cast<double>(now() - before) / kLaunches);
        stream_.synchronize();
    }
    awake.end();
    return writes;
}

void LaunchBench::between_breakpoints() const {
    // A tool that cannot be loaded is a line on stderr, and the program goes on without it.
    const char* const tool = std::getenv("ORR_PROF_TOOL");
    if (tool != nullptr && ::dlopen(tool, RTLD_NOW | RTLD_NOLOAD) == nullptr)
        throw std::runtime_error("the tool was not loaded");
    for (;;) {
        breakpoint();
        start();
        breakpoint();
        stream_.synchronize();
    }
}

std::vector<double> instructions_of_a_launch(int launches, const char* tool) {
    const pid_t child = ::fork();
    if (child < 0) throw std::runtime_error("there are no more processes");
    if (child == 0) {
        ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
        if (tool == nullptr)
            ::unsetenv("ORR_PROF_TOOL");
        else
            ::setenv("ORR_PROF_TOOL", tool, 1);
        ::execl("/proc/self/exe", "orrery-bench-guest", "--launches", nullptr);
        ::_exit(127);
    }
    int status = 0;
    if (::waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        throw std::runtime_error("the program whose instructions are counted did not start");
    std::vector<double> counts;
    for (int i = 0; i < launches; ++i) {
        to_breakpoint(child, false);
        counts.push_back(static_cast<double>(to_breakpoint(child, true)));
    }
    ::ptrace(PTRACE_KILL, child, nullptr, nullptr);
    ::waitpid(child, &status, 0);
    return counts;
}

}  // namespace orrery::bench
