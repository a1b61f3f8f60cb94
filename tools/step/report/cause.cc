#include "tools/step/report/cause.h"

#include <fmt/format.h>
#include <orrery/fw/queue.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>

#include <algorithm>

#include "tools/records/names.h"

namespace orrery::step {
namespace {

// An error that somebody else's is the reason of.
bool follows(std::uint32_t error) {
    switch (error) {
        case ORR_QERR_POISON:
        case ORR_QERR_ABORTED:
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

// The earliest that `of` finds in any recording.
template <typename Of>
std::optional<Cause> earliest(const std::vector<Witness>& cards, Of of) {
    std::optional<Cause> first;
    for (const Witness& card : cards) {
        if (card.history == nullptr) continue;
        std::optional<Cause> found = of(card);
        if (!found) continue;
        found->card = card.card;
        if (!first || found->time < first->time) first = std::move(found);
    }
    return first;
}

std::optional<Cause> stop_of(const Witness& card, bool halted) {
    const auto stop = std::ranges::find(card.stops, halted, &Witness::Stop::halted);
    if (stop == card.stops.end()) return std::nullopt;
    return Cause{.kind = halted ? "firmware-halted" : "firmware-silent",
                 .text = halted ? "the control core halted: an exception that nobody handles"
                                : "the firmware did not answer the driver, which started it anew",
                 .card = {},
                 .step = stop->step - std::min<std::uint64_t>(stop->step, 1),
                 .time = stop->time};
}

std::optional<Cause> error_of(const Witness& card, bool following) {
    for (const Record& record : card.history->records()) {
        if (record.type == ORR_TRACE_DEADLOCK && !following)
            return Cause{"deadlock", describe(record, *card.history), {}, record.step, record.time};
        if (record.type != ORR_TRACE_ERROR || follows(record.b) != following) continue;
        return Cause{"queue-error " + lower(records::queue_error_name(record.b)),
                     describe(record, *card.history),
                     {},
                     record.step,
                     record.time};
    }
    return std::nullopt;
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

std::optional<Cause> first_cause(const std::vector<Witness>& cards, const Ending& ending) {
    for (const Witness& card : cards)
        if (!card.died.empty())
            return Cause{"card-died", fmt::format("the process of card {} {}", card.card, card.died),
                         card.card, card.end, card.end_time};
    if (auto halt = earliest(cards, [](const Witness& card) { return stop_of(card, true); })) return halt;
    const auto of_guest = [&](const char* kind, const std::string& text) {
        Cause cause{kind, text, {}, 0, 0};
        // Where the cards were by then is what can be looked at.
        if (!cards.empty()) {
            cause.step = cards.front().end;
            cause.time = cards.front().end_time;
        }
        return cause;
    };
    if (!ending.kernel_report.empty()) return of_guest("kernel-report", ending.kernel_report);
    if (auto silent = earliest(cards, [](const Witness& card) { return stop_of(card, false); }))
        return silent;
    for (const bool following : {false, true})
        if (auto error = earliest(cards, [&](const Witness& card) { return error_of(card, following); }))
            return error;
    if (const std::string said = driver_error(ending.guest_log); !said.empty())
        return of_guest("driver-error", said);
    if (!ending.text.empty()) return of_guest("run-failed", ending.text);
    return std::nullopt;
}

}  // namespace orrery::step
