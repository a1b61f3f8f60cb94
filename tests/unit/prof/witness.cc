// A tool that counts what it is told, beside a recorder, and says so when the process ends. By the
// environment it also asks for samples (WITNESS_SAMPLES, WITNESS_PC: their period in ns), and crashes
// (WITNESS_CRASH): in its "start", its "stop", or in the callback that is told of the end of a call of this
// name. With WITNESS_RANGES it puts a range of its own, "all" of domain "witness", around what the main
// thread does once it uses a card, and says at the end what the cards did for each range: a line with name,
// how it ended, work, kernels, copies and fills, their times, how many were counted, and all counters in
// their order.
#include <orrery/prof.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

namespace {

struct Witness {
    std::mutex mutex;
    orrProfSubscription_t subscription = nullptr;
    bool asked = false;
    unsigned long calls = 0, launches = 0, work = 0, samples = 0, pcs = 0, lost = 0;
    std::string ranges;
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

std::string line_of(const orrProfRecord& record, const orrProfRangeWork& work) {
    std::string line = std::string("witness range,") + record.name;
    const auto put = [&](std::uint64_t value) { line += "," + std::to_string(value); };
    for (const std::uint64_t value :
         {std::uint64_t{work.ended}, work.kernels + work.copies + work.fills, work.kernels,
          work.copies + work.fills, work.kernel_ps, work.copy_ps, work.counted})
        put(value);
    constexpr std::size_t kFirst = offsetof(orrProfWorkCounters, busy_ps);
    std::array<std::uint64_t, (offsetof(orrProfWorkCounters, link_ports) - kFirst) / 8> words{};
    if (work.counters != nullptr) std::memcpy(words.data(), &work.counters->busy_ps, sizeof words);
    for (const std::uint64_t word : words)
        put(word);
    put(work.counters != nullptr ? work.counters->pause_ps : 0);  // ports are no sum
    return line + "\n";
}

void ask() {
    if (!variable("WITNESS_RANGES").empty()) {
        orrProfDomain_t domain = nullptr;
        (void)orrProfDomainCreate(&domain, "witness");
        (void)orrProfRangePush(domain, "all");
    }
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
            case orrProfRangeDone: {
                const auto& work = *static_cast<const orrProfRangeWork*>(record->params);
                g_witness.lost += work.missing + work.untold;
                g_witness.ranges += line_of(*record, work);
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
    if (!variable("WITNESS_RANGES").empty()) options.want |= orrProfWantCounters | orrProfWantRangeWork;
    return orrProfSubscribe(&g_witness.subscription, &told, nullptr, &options);
}

void stop() {
    (void)orrProfFlush();
    crash_in("stop");
    const std::lock_guard lock(g_witness.mutex);
    say(g_witness.ranges);
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
