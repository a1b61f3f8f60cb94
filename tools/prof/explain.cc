#include "tools/prof/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tools/prof/rules.h"
#include "tools/prof/show.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using Json = nlohmann::ordered_json;

// What kernels of other processes had of the card's cores while this one's ran, as a share of its span.
double others_on(const Model& model, const Activity& activity, const DeviceSums& device) {
    if (device.device->cores() == 0) return 0;
    const std::uint64_t card = device.device->card->uid;
    double used_ps = 0;
    for (const Activity& other : model.processes)
        for (const DeviceModel& same : other.devices) {
            // Numbers of cards are their machine's.
            if (&other == &activity || other.process->machine_at != activity.process->machine_at ||
                same.card == nullptr || same.card->uid != card)
                continue;
            std::size_t first = 0;  // of device.vector, that ends behind what is looked at
            for (const std::uint32_t number : same.work) {
                const WorkRecord& work = *other.work[number].record;
                while (first < device.vector.size() && device.vector[first].end <= work.begin_ps)
                    ++first;
                if (other.work[number].operation() != Operation::kKernel || work.begin_ps == work.end_ps)
                    continue;
                std::uint64_t beside = 0;
                for (std::size_t i = first; i < device.vector.size() && device.vector[i].begin < work.end_ps;
                     ++i)
                    beside += std::min(device.vector[i].end, work.end_ps) -
                              std::max(device.vector[i].begin, work.begin_ps);
                used_ps += static_cast<double>(work.used_ps) * static_cast<double>(beside) /
                           static_cast<double>(work.end_ps - work.begin_ps);
            }
        }
    return used_ps / device.device->cores() / static_cast<double>(device.span_ps);
}

void look(const Model& model, const Activity& activity, const Sums& sums, const DeviceSums& device,
          const BarrierLasts& lasts, std::vector<Finding>& findings) {
    if (device.span_ps < kLeastSpanPs) return;
    Shares shares = shares_of(device);
    shares.others_cores = std::min(shares.unused_cores, others_on(model, activity, device));
    shares.unused_cores -= shares.others_cores;
    Facts facts{activity, sums, device, shares, lasts, {}};
    for (const KernelSums& kernel : device.kernels)
        facts.counters.add(kernel.counters);
    for (const Rule& rule : rules()) {
        auto said = rule.look(facts);
        if (!said || said->share < kLeastShare) continue;
        Finding& finding = findings.emplace_back();
        finding.rule = rule.name;
        finding.device = device.device->number;
        finding.share = said->share;
        finding.title = said->title.empty() ? std::string(rule.title) : std::move(said->title);
        finding.evidence = std::move(said->evidence);
        finding.bound = std::move(said->bound);
        finding.gap = std::move(said->gap);
        finding.advice = said->advice.empty() ? std::string(rule.advice) : std::move(said->advice);
        finding.at_bound = said->at_bound;
    }
}

// The first one that is not merely what the hardware can do.
const Finding* limit_of(const std::vector<const Finding*>& findings) {
    for (const Finding* finding : findings) {
        if (!finding->at_bound) return finding;
    }
    return nullptr;
}

std::vector<const Finding*> of_device(const Explanation& all, std::uint32_t device) {
    std::vector<const Finding*> own;
    for (const Finding& finding : all.findings) {
        if (finding.device == device) own.push_back(&finding);
    }
    return own;
}

std::string verdict(const std::vector<const Finding*>& findings, std::uint64_t span_ps) {
    if (span_ps < kLeastSpanPs) return "too short to say what limits it";
    if (findings.empty()) return "nothing takes a tenth of its time: no single thing limits it";
    if (findings[0]->at_bound && findings[0]->share >= 0.8)
        return "nothing limits it beyond " + findings[0]->title;
    if (limit_of(findings) == nullptr) return "nothing limits it beyond what the card can do";
    const std::string& limit = limit_of(findings)->title;
    if (!findings[0]->at_bound) return "limited most by " + limit;
    return fmt::format("at its bound ({}) for {:.0f} % of that; beyond it limited most by {}",
                       findings[0]->title, findings[0]->share * 100, limit);
}

// Lines of 100 columns; those behind the first begin at `indent`.
std::string wrapped(std::string_view text, std::size_t indent) {
    constexpr std::size_t kColumns = 100;
    std::string lines;
    std::size_t column = indent;
    while (!text.empty()) {
        const std::string_view word = text.substr(0, text.find(' '));
        text.remove_prefix(std::min(text.size(), word.size() + 1));
        if (column > indent && column + 1 + word.size() > kColumns) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > indent) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += word.size();
    }
    return lines;
}

std::string device_text(const Explanation& all, const DeviceSums& device) {
    const auto findings = of_device(all, device.device->number);
    std::string text = fmt::format("  device {}, {} of model time: {}\n", device.device->number,
                                   text::duration(device.span_ps), verdict(findings, device.span_ps));
    for (const Finding* finding : findings) {
        text += fmt::format("\n    {:>3.0f} %  {}\n", finding->share * 100, finding->title);
        for (const auto& [head, line] : {std::pair("seen", &finding->evidence),
                                         {"bound", &finding->bound},
                                         {"gap", &finding->gap},
                                         {"try", &finding->advice}}) {
            if (!line->empty()) text += fmt::format("           {:<6} {}\n", head, wrapped(*line, 18));
        }
    }
    return text;
}

}  // namespace

Explanation explain(const Model& model, const Activity& activity, const BarrierLasts& lasts) {
    Explanation all;
    all.activity = &activity;
    all.sums = sums_of(activity);
    for (const DeviceSums& device : all.sums.devices)
        look(model, activity, all.sums, device, lasts, all.findings);
    largest_first(all.findings, &Finding::share);
    return all;
}

std::string explain_text(const Model& model) {
    std::string text;
    const BarrierLasts lasts(model);
    for (const Activity& activity : model.processes) {
        const Explanation all = explain(model, activity, lasts);
        text += (text.empty() ? "" : "\n") + process_title(model, activity);
        if (all.sums.devices.empty()) text += "  no card did anything for it that is in the profile\n";
        for (const DeviceSums& device : all.sums.devices)
            text += device_text(all, device);
        text += missing_text(*activity.process);
    }
    return text;
}

std::string explain_json(const Model& model) {
    Json json = {{"processes", Json::array()}};
    const BarrierLasts lasts(model);
    for (const Activity& activity : model.processes) {
        const Explanation all = explain(model, activity, lasts);
        Json process = {{"pid", activity.process->pid}, {"command", activity.process->command}};
        Json& devices = process["devices"] = Json::array();
        for (const DeviceSums& device : all.sums.devices) {
            const auto findings = of_device(all, device.device->number);
            Json one = {{"device", device.device->number},
                        {"span_ps", device.span_ps},
                        {"verdict", verdict(findings, device.span_ps)},
                        {"findings", Json::array()}};
            for (const Finding* finding : findings) {
                one["findings"].push_back({{"rule", finding->rule},
                                           {"share", finding->share},
                                           {"title", finding->title},
                                           {"evidence", finding->evidence},
                                           {"bound", finding->bound},
                                           {"gap", finding->gap},
                                           {"advice", finding->advice},
                                           {"at_bound", finding->at_bound}});
            }
            devices.push_back(std::move(one));
        }
        json["processes"].push_back(std::move(process));
    }
    return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::prof
