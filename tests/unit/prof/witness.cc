// A tool that counts what it is told, beside a recorder, and says so when the process ends. By the
// environment it also asks for samples (WITNESS_SAMPLES, WITNESS_PC: their period in ns), and crashes
// (WITNESS_CRASH): in its "start", its "stop", or in the callback that is told of the end of a call of this
// name.
#include <orrery/prof.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

namespace {

struct Witness {
    std::mutex mutex;
    orrProfSubscription_t subscription = nullptr;
    bool asked = false;
    unsigned long calls = 0, launches = 0, work = 0, samples = 0, pcs = 0, lost = 0;
};
Witness g_witness;

std::string_view variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

void crash_in(std::string_view place) {
    if (variable("WITNESS_CRASH") != place) return;
    (void)std::signal(SIGSEGV, SIG_DFL);
    (void)std::raise(SIGSEGV);
}

void say(const std::string& text) {
    (void)!::write(STDERR_FILENO, text.data(), text.size());
}

void ask() {
    const auto period = [](const char* name) { return std::strtoull(variable(name).data(), nullptr, 10); };
    orrProfSubscription_t own = g_witness.subscription;
    if (!variable("WITNESS_SAMPLES").empty() &&
        orrProfStartSamples(own, 0, period("WITNESS_SAMPLES"), nullptr, 0) != orrSuccess)
        say("witness: " + std::string(orrGetLastErrorText()) + "\n");
    if (!variable("WITNESS_PC").empty() && orrProfStartPcSampling(own, 0, period("WITNESS_PC")) != orrSuccess)
        say("witness: " + std::string(orrGetLastErrorText()) + "\n");
}

// As the recorder asks: whoever is told first of the end of such a call is the first to ask.
bool begins_with_a_card(std::string_view call) {
    return call.starts_with("orrMalloc") || call.starts_with("orrStreamCreate") ||
           call.starts_with("orrModuleLoad");
}

void told(void*, const orrProfRecord* record) {
    bool first = false;
    {
        const std::lock_guard lock(g_witness.mutex);
        switch (record->kind) {
            case orrProfLeave:
                ++g_witness.calls;
                if (std::string_view(record->name) == "orrLaunchKernel") ++g_witness.launches;
                first = begins_with_a_card(record->name) && !g_witness.asked;
                g_witness.asked = g_witness.asked || first;
                break;
            case orrProfWorkDone:
                ++g_witness.work;
                break;
            case orrProfWorkLost:
                ++g_witness.lost;
                break;
            case orrProfSampled: {
                const auto& sample = *static_cast<const orrProfSample*>(record->params);
                g_witness.lost += sample.lost;
                g_witness.samples += sample.count != 0 ? 1 : 0;
                break;
            }
            case orrProfPcSampled: {
                const auto& sample = *static_cast<const orrProfPcSample*>(record->params);
                g_witness.lost += sample.lost;
                g_witness.pcs += sample.count;
                break;
            }
            default:
                break;
        }
    }
    if (first) ask();
    if (record->kind == orrProfLeave) crash_in(record->name);
}

orrError_t start() {
    crash_in("start");
    orrProfOptions options = ORR_INIT(orrProfOptions);
    options.want = orrProfWantCalls | orrProfWantWork | orrProfWantSamples | orrProfWantPcs;
    return orrProfSubscribe(&g_witness.subscription, &told, nullptr, &options);
}

void stop() {
    (void)orrProfFlush();
    crash_in("stop");
    const std::lock_guard lock(g_witness.mutex);
    std::array<char, 200> line{};
    const int size = std::snprintf(line.data(), line.size(),
                                   "witness: calls %lu launches %lu work %lu samples %lu pcs %lu lost %lu\n",
                                   g_witness.calls, g_witness.launches, g_witness.work, g_witness.samples,
                                   g_witness.pcs, g_witness.lost);
    say(std::string(line.data(), static_cast<std::size_t>(std::max(size, 0))));
}

}  // namespace

extern "C" __attribute__((visibility("default")))
const orrProfTool orrery_prof_tool = {sizeof(orrProfTool), orrProfToolVersion, "witness", &start, &stop};
