// orrery-card: one accelerator card, served to a virtual machine over vfio-user.
#include <pthread.h>
#include <sodium.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include <fmt/format.h>

#include "emulator/api/checks.h"
#include "emulator/card/card.h"
#include "emulator/card/card_thread.h"
#include "emulator/host/card_device.h"
#include "emulator/main/options.h"
#include "emulator/pcie/interrupts.h"
#include "emulator/pcie/keeper.h"
#include "emulator/pcie/server.h"

namespace orrery::emu {
namespace {

int fail(const std::string& text) {
    fmt::print(stderr, "orrery-card: {}\n", text);
    return 1;
}

struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
};

// Ends the server on SIGTERM and SIGINT, from a thread that does nothing else; SIGUSR1 from us ends the
// thread.
class SignalThread {
  public:
    explicit SignalThread(VfioUserServer& server)
        : thread_([&server] {
              sigset_t set = signals();
              int got = 0;
              while (sigwait(&set, &got) != 0 || got == SIGPIPE) {
              }
              if (got != SIGUSR1) server.request_stop();
          }) {}
    ~SignalThread() {
        pthread_kill(thread_.native_handle(), SIGUSR1);
        thread_.join();
    }
    SignalThread(const SignalThread&) = delete;
    SignalThread& operator=(const SignalThread&) = delete;

    // Blocked in all threads, before the first one is made.
    static void block() {
        const sigset_t set = signals();
        pthread_sigmask(SIG_BLOCK, &set, nullptr);
    }

  private:
    static sigset_t signals() {
        sigset_t set;
        sigemptyset(&set);
        for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE, SIGUSR1})
            sigaddset(&set, number);
        return set;
    }
    std::thread thread_;
};

int run(int argc, char** argv) {
    auto options = Options::parse(argc, argv);
    if (!options) {
        if (options.error().empty()) return 0;  // --help
        return fail(options.error());
    }
    if (sodium_init() < 0) return fail("libsodium cannot be initialised");
    SignalThread::block();
    // A recording that may not grow is an error of the recording, not the end of the card.
    std::signal(SIGXFSZ, SIG_IGN);

    std::unique_ptr<std::FILE, FileCloser> log_file;
    if (!options->log.empty()) {
        log_file.reset(std::fopen(options->log.c_str(), "ae"));
        if (!log_file) return fail(fmt::format("{}: the log file cannot be opened", options->log));
    }
    auto keeper = Keeper::start(log_file ? log_file.get() : stderr);
    if (!keeper) return fail(keeper.error());
    Interrupts interrupts;
    CardConfig config = std::move(options->card);
    std::error_code error;
    config.stepper = std::filesystem::read_symlink("/proc/self/exe", error).replace_filename("orrery-step");
    if (error || !std::filesystem::exists(config.stepper, error)) config.stepper.clear();
    config.log = log_file ? log_file.get() : stderr;
    config.raise = [&interrupts](unsigned vector) { interrupts.raise(vector); };
    auto card = Card::create(std::move(config));
    if (!card) return fail(card.error());
    CardDevice device(**card);
    auto server = VfioUserServer::create(
        options->socket, CardDevice::describe(**card, options->interrupts), device, interrupts,
        [&card](std::string_view line) { (*card)->errors().note("{}", line); }, &*keeper);
    if (!server) return fail(server.error());

    const CardThread card_thread(**card);
    const SignalThread signal_thread(**server);
    (*card)->errors().note("card {} (uid {:#x}, {}, {} MiB of VRAM) listens on {}", options->index,
                           (*card)->config().uid, (*card)->sku().name, (*card)->vram().size() >> 20,
                           options->socket);
    if (const unsigned check = (*card)->config().check; check != 0)
        (*card)->errors().note("kernels are checked for{}{}, and are slow",
                               (check & kCheckRace) != 0 ? " races" : "",
                               check == kCheckMemory ? " bad uses of memory"
                               : check == kCheckRace ? ""
                                                     : " and bad uses of memory");
    // Whoever started us waits for this line.
    fmt::print("ready\n");
    std::fflush(stdout);
    const auto served = (*server)->run();
    if (!served) return fail(served.error());
    if (const Counters& counters = (*card)->counters(); !(*card)->config().links.empty())
        (*card)->errors().note("it ends: {} of {} messages over its links came after their model time",
                               counters.get(ORR_CTR_LINK_STRAGGLERS), counters.get(ORR_CTR_LINK_RX_MESSAGES));
    return 0;
}

}  // namespace
}  // namespace orrery::emu

int main(int argc, char** argv) {
    try {
        return orrery::emu::run(argc, argv);
    } catch (const std::exception& error) {
        std::fprintf(stderr, "orrery-card: %s\n", error.what());
        return 1;
    }
}
