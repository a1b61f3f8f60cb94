// orrery-switch: joins the links of cards and of other switches.
#include <signal.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "emulator/switch/options.h"

namespace orrery::emu {
namespace {

int fail(const std::string& text) {
    fmt::print(stderr, "orrery-switch: {}\n", text);
    return 1;
}

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

int run(int argc, char** argv) {
    auto options = SwitchOptions::parse(argc, argv);
    if (!options) return options.error().empty() ? 0 : fail(options.error());
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
        sigaddset(&set, number);
    // Before the log's thread is made.
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    std::unique_ptr<std::FILE, FileCloser> log;
    if (!options->log.empty()) {
        log.reset(std::fopen(options->log.c_str(), "ae"));
        if (!log) return fail(fmt::format("{}: the log file cannot be opened", options->log));
    }
    options->config.log = log ? log.get() : stderr;
    auto made = Switch::create(std::move(options->config));
    if (!made) return fail(made.error());
    Switch& works = **made;
    std::thread thread([&works] { works.run(); });
    // Whoever started us waits for this line.
    fmt::print("ready\n");
    std::fflush(stdout);
    int got = SIGPIPE;
    while (got == SIGPIPE)
        sigwait(&set, &got);
    works.request_stop();
    thread.join();
    works.errors().note("it ends: {} of {} messages over its links came after their model time",
                        works.counters().get(ORR_CTR_LINK_STRAGGLERS),
                        works.counters().get(ORR_CTR_LINK_RX_MESSAGES));
    return 0;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    try {
        return orrery::emu::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "orrery-switch: %s\n", error.what());
        return 1;
    }
}
