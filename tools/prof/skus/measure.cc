// What a profile says of one class of work on one kind of card.
#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <set>

#include "tools/prof/explain.h"
#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"

namespace orrery::prof {
namespace {

constexpr std::array<WorkClass, 7> kClasses = {{
    {.name = "compute",
     .what = "a product of matrices of 512 x 512 floats (the sample gemm)",
     .command = "gemm",
     .range = "sgemm",
     .quick_option = false},
    {.name = "memory",
     .what = "a triad over VRAM, one multiply-add for 12 bytes",
     .command = "orrery-sku-work memory",
     .range = "memory"},
    {.name = "latency",
     .what = "eight chains of loads, each from where the one before says",
     .command = "orrery-sku-work latency",
     .range = "latency"},
    {.name = "launch",
     .what = "64 kernels of a few instructions, one behind the other",
     .command = "orrery-sku-work launch",
     .range = "launch"},
    {.name = "copies",
     .what = "a copy from pinned host memory, and one back",
     .command = "orrery-sku-work copies",
     .range = "copies"},
    {.name = "link",
     .what = "a copy to the next card",
     .command = "orrery-sku-work link",
     .range = "link",
     .two_cards = true},
    {.name = "mixed",
     .what = "parts that are copied in, computed on and copied back in three streams",
     .command = "orrery-sku-work mixed",
     .range = "mixed"},
}};

std::optional<Energy> energy_of(const DeviceModel& device, const Measured& measured) {
    if (measured.sums.counted != measured.sums.work) return {};
    bool known = true, any = false;
    const auto figure = [&](std::string_view key) {
        const auto found = device.sku.find(key);
        known = known && found != device.sku.end();
        any = any || (found != device.sku.end() && found->second != 0);
        return found == device.sku.end() ? 0.0 : static_cast<double>(found->second);
    };
    const WorkSums& sums = measured.sums;
    using C = WorkCountersRecord;
    const auto joules = [&](std::string_view key, std::initializer_list<std::uint64_t C::*> counters) {
        double sum = 0;
        for (const auto counter : counters) {
            known = known && (sums.counted == 0 || sums.knows(counter));
            sum += static_cast<double>(sums[counter]);
        }
        return 1e-15 * sum * figure(key);
    };
    Energy energy;
    energy.static_j = 1e-15 * figure("energy.static_mw") * static_cast<double>(measured.ps);
    energy.compute_j = joules("energy.instruction_fj", {&C::instructions}) +
                       joules("energy.f16_fj", {&C::flops_f16}) + joules("energy.f32_fj", {&C::flops_f32}) +
                       joules("energy.f64_fj", {&C::flops_f64});
    energy.vram_j = joules("energy.vram_fj", {&C::vram_read, &C::vram_written});
    energy.host_j = joules("energy.host_fj", {&C::host_read, &C::host_written});
    energy.link_j = joules("energy.link_fj", {&C::link_read, &C::link_written});
    // Who knows no figures writes 0.
    return known && any ? std::optional(energy) : std::nullopt;
}

// The range with the most work of this name: its number in Activity::spans.
std::uint32_t longest_range(const Activity& activity, const std::vector<WorkSums>& sums,
                            std::string_view name) {
    std::uint32_t longest = kNone;
    std::uint64_t most = 0;
    for (std::uint32_t i = 0; i < sums.size(); ++i) {
        const std::uint64_t ps = sums[i].kernel_ps + sums[i].copy_ps;
        if (activity.spans[i].domain != 0 || activity.text(activity.spans[i].text) != name || ps <= most)
            continue;
        longest = i;
        most = ps;
    }
    return longest;
}

bool lies_within(const RangeTree& tree, const Work& one, std::uint32_t range) {
    for (std::uint32_t span : tree.innermost(one)) {
        while (span != kNone && span != range)
            span = tree.parent(span);
        if (span == range) return true;
    }
    return false;
}

// Only the work of the range: neither the host nor what was done before and behind it is anybody's limit.
Profile only(const Activity& activity, const RangeTree& tree, std::uint32_t range) {
    Process process;
    process.pid = activity.process->pid;
    process.command = activity.process->command;
    process.texts = activity.process->texts;
    process.cards = activity.process->cards;
    process.sku = activity.process->sku;
    process.links = activity.process->links;
    process.ended = true;
    for (const Work& one : activity.work) {
        if (one.operation() == Operation::kWait || !lies_within(tree, one, range)) continue;
        process.work.push_back(*one.record);
        if (one.counters != nullptr) process.counters.push_back(*one.counters);
    }
    Profile profile;
    profile.processes.push_back(std::move(process));
    return profile;
}

}  // namespace

std::span<const WorkClass> work_classes() {
    return kClasses;
}

std::string why_left_out(const WorkClass& one, unsigned link_ports) {
    return one.two_cards && link_ports == 0 ? "its cards have no link ports" : "";
}

std::string guest_script(bool quick, unsigned link_ports) {
    std::string lines;
    for (const WorkClass& one : kClasses) {
        if (!why_left_out(one, link_ports).empty()) continue;
        lines += fmt::format(
            "orrery-prof record --counters -o /share/{0}.prof -- {1}{2} >/share/{0}.log 2>&1; "
            "echo $? >/share/{0}.status\n",
            one.name, one.command, quick && one.quick_option ? " --quick" : "");
    }
    return lines;
}

Measured measured_of(const Model& model, std::string_view name) {
    Measured measured;
    for (const Activity& activity : model.processes) {
        const RangeTree tree(activity);
        const std::vector<WorkSums> sums = tree.sums();
        const std::uint32_t range = longest_range(activity, sums, name);
        if (range == kNone) continue;
        if (!activity.process->lost_work.empty() || activity.process->lost > 0) {
            measured.problem = "some of its work was not recorded";
            return measured;
        }
        const Model alone(only(activity, tree, range));
        const Explanation explained = explain(alone, alone.processes[0], BarrierLasts(alone));
        const DeviceSums* longest = nullptr;
        for (const DeviceSums& device : explained.sums.devices) {
            if (longest == nullptr || device.span_ps > longest->span_ps) longest = &device;
        }
        if (longest == nullptr) continue;
        measured.ps = longest->span_ps;
        measured.sums = sums[range];
        measured.limit = longest->span_ps < kLeastSpanPs ? "too short to say" : "no single thing";
        for (const Finding& finding : explained.findings) {
            if (finding.device != longest->device->number) continue;
            measured.limit = finding.title;
            measured.limit_share = finding.share;
            break;
        }
        measured.energy = energy_of(*longest->device, measured);
        return measured;
    }
    measured.problem = fmt::format("its profile has no range {} with work", name);
    return measured;
}

double Comparison::throughput(std::size_t sku, std::size_t one_class, std::size_t base) const {
    const std::uint64_t own = skus[sku].measured[one_class].ps, others = skus[base].measured[one_class].ps;
    return own == 0 || others == 0 ? 0 : static_cast<double>(others) / static_cast<double>(own);
}

}  // namespace orrery::prof
