#include <algorithm>

#include "tools/prof/page_data.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostGaps = 20;

std::uint64_t held(std::uint64_t value) {
    return std::min(value, PageColumn::kMost);
}

Json gaps(const DeviceSums& sums, std::uint64_t model_begin, const std::vector<std::uint32_t>& places) {
    Json all = Json::array();
    for (const Gap& gap : sums.gaps) {
        if (all.size() == kMostGaps) break;
        Json json = {{"begin", held(gap.time.begin - std::min(model_begin, gap.time.begin))},
                     {"time", held(gap.time.end - gap.time.begin)},
                     {"why", name_of(gap.why)},
                     {"who", gap.who}};
        if (gap.ended_by != kNone && places[gap.ended_by] != kNone) json["slice"] = places[gap.ended_by];
        all.push_back(std::move(json));
    }
    return all;
}

Json kernels(const DeviceSums& sums) {
    Json all = Json::array();
    for (const KernelSums& kernel : sums.kernels) {
        const Roofline& roofline = kernel.roofline;
        if (roofline.runs == 0) continue;
        const CounterSums& counters = kernel.counters;
        all.push_back({{"name", kernel.name},
                       {"runs", roofline.runs},
                       {"time", held(roofline.ps)},
                       {"flops", roofline.flops},
                       {"bytes", roofline.bytes},
                       {"intensity", roofline.intensity()},
                       {"gflops", roofline.gflops()},
                       {"gbPerS", roofline.gb_per_s()},
                       {"attainable", roofline.attainable_gflops()},
                       {"share", roofline.share()},
                       {"byMemory", roofline.by_memory()},
                       {"stalls",
                        {counters.share(counters.bandwidth_ps), counters.share(counters.latency_ps),
                         counters.share(counters.link_ps), counters.share(counters.launch_ps),
                         counters.share(counters.pause_ps)}}});
    }
    return all;
}

}  // namespace

Json finding_json(const Finding& finding, std::size_t process) {
    return {{"process", process},         {"rule", finding.rule},   {"device", finding.device},
            {"share", finding.share},     {"title", finding.title}, {"evidence", finding.evidence},
            {"bound", finding.bound},     {"gap", finding.gap},     {"advice", finding.advice},
            {"atBound", finding.at_bound}};
}

void add_summary(const DeviceSums& sums, std::uint64_t model_begin, const std::vector<std::uint32_t>& places,
                 Json& device) {
    Json idle = Json::array();
    for (std::size_t i = 0; i < kIdleKinds; ++i) {
        if (sums.idle_ps[i] > 0) idle.push_back({name_of(static_cast<Idle>(i)), held(sums.idle_ps[i])});
    }
    device["summary"] = {{"span", held(sums.span_ps)},
                         {"vector", held(sums.vector_ps())},
                         {"copy", held(sums.copy_ps())},
                         {"busy", held(sums.busy_ps())},
                         {"overlap", held(sums.overlap_ps)},
                         {"used", held(sums.kernel_used_ps)},
                         {"preemptions", sums.preemptions},
                         {"idle", std::move(idle)},
                         {"gaps", gaps(sums, model_begin, places)},
                         {"kernels", kernels(sums)}};
}

}  // namespace orrery::prof
