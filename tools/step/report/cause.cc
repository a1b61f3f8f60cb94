#include "tools/step/report/cause.h"

#include <fmt/format.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>
#include <tuple>

#include "tools/records/names.h"

namespace orrery::step {
namespace {

constexpr std::size_t kMostCauses = 16;

// An error that somebody else's is the reason of.
bool follows(std::uint32_t error) {
    switch (error) {
        case ORR_QERR_POISON:
        case ORR_QERR_ABORTED:
        case ORR_QERR_FIRMWARE:
        case ORR_QERR_LOST:
        case ORR_QERR_ABANDONED:
        case ORR_QERR_PEER_LOST:
            return true;
        default:
            return false;
    }
}

std::string lower(std::string text) {
    for (char& c : text)
        c = c == '_' ? ' ' : static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
    return text;
}

// All of a card's own, in no order. `following`: errors of queues that follow from others.
void add_failures(const Witness& card, std::vector<Cause>& to, std::vector<Cause>& following) {
    for (const Witness::Stop& stop : card.stops)
        to.push_back({stop.halted ? "firmware-halted" : "firmware-silent",
                      stop.halted ? "the control core halted"
                                  : "the firmware did not answer the driver, which started it anew",
                      card.card, stop.step - std::min<std::uint64_t>(stop.step, 1), card.system(stop.time)});
    if (card.history == nullptr) return;
    for (const Record& record : card.history->records()) {
        const bool deadlock = record.type == ORR_TRACE_DEADLOCK && (record.b >> 16 & 0xff) == 0;
        if (!deadlock && record.type != ORR_TRACE_ERROR) continue;
        Cause cause;
        cause.kind = deadlock ? "deadlock" : "queue-error " + lower(records::queue_error_name(record.b));
        cause.text = describe(record, *card.history);
        if (!deadlock && (record.b == ORR_QERR_FAULT || record.b == ORR_QERR_RING_FAULT))
            cause.text += ": " + records::fault_name(record.word[2]);
        cause.card = card.card;
        cause.step = record.step;
        cause.time = card.system(record.time);
        (!deadlock && follows(record.b) ? following : to).push_back(std::move(cause));
    }
}

}  // namespace

std::string driver_error(std::string_view guest_log) {
    constexpr std::string_view kDriver = " orrery ", kError = "*ERROR* ";
    while (!guest_log.empty()) {
        const std::size_t end = std::min(guest_log.find('\n'), guest_log.size());
        const std::string_view line = guest_log.substr(0, end);
        guest_log.remove_prefix(std::min(end + 1, guest_log.size()));
        const std::size_t driver = line.find(kDriver), error = line.find(kError);
        if (driver == line.npos || error == line.npos || error < driver) continue;
        // "orrery 0000:01:00.0: [drm] *ERROR* ..."
        const std::string_view device = line.substr(driver + kDriver.size());
        return fmt::format("{}: {}", device.substr(0, device.find(": ")), line.substr(error + kError.size()));
    }
    return {};
}

std::vector<Cause> causes(const std::vector<Witness>& cards, const Ending& ending) {
    std::vector<Cause> all;
    for (const Witness& card : cards)
        if (!card.died.empty())
            all.push_back({"card-died", fmt::format("the process of card {} {}", card.card, card.died),
                           card.card, card.end, card.system(card.end_time)});
    const auto add_of_guest = [&](const char* kind, const std::string& text) {
        // Where the first card with a recording was by then is what can be looked at.
        if (text.empty()) return;
        const auto at =
            std::ranges::find_if(cards, [](const Witness& one) { return one.history != nullptr; });
        all.push_back({kind,
                       text,
                       {},
                       at == cards.end() ? 0 : at->end,
                       at == cards.end() ? 0 : at->system(at->end_time)});
    };
    add_of_guest("kernel-report", ending.kernel_report);
    std::vector<Cause> own, following;
    for (const Witness& card : cards)
        add_failures(card, own, following);
    for (auto* each : {&own, &following}) {
        std::ranges::sort(*each, {},
                          [](const Cause& one) { return std::tuple(one.time, one.card, one.step); });
        all.insert(all.end(), each->begin(), each->end());
    }
    add_of_guest("driver-error", driver_error(ending.guest_log));
    add_of_guest("run-failed", ending.text);
    if (all.size() > kMostCauses) all.resize(kMostCauses);
    return all;
}

}  // namespace orrery::step
