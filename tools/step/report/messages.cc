#include "tools/step/report/messages.h"

#include <orrery/fw/trace.h>

#include <iterator>
#include <map>
#include <optional>

namespace orrery::step {
namespace {

constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};  // the memory of a semaphore of a linked card

constexpr std::uint64_t kAny = ~std::uint64_t{0};  // no semaphore's address

// Value, and the address or kAny: card: the signals that it sent, by system time.
using Signals = std::map<std::pair<std::uint64_t, std::uint64_t>,
                         std::map<std::size_t, std::multimap<Time, std::size_t>>>;

Signals signals_of(const std::vector<CardHistory>& cards) {
    Signals signals;
    for (std::size_t card = 0; card < cards.size(); ++card) {
        const auto& records = cards[card].history->records();
        for (std::size_t n = 0; n < records.size(); ++n) {
            const Record& record = records[n];
            if (record.type != ORR_TRACE_SIGNAL || record.word[0] != kElsewhere) continue;
            for (const std::uint64_t va : {record.word[2], kAny})
                signals[{record.word[1], va}][card].emplace(cards[card].system(record.time), n);
        }
    }
    return signals;
}

struct Sent {
    std::size_t card = 0, record = 0;
};

// Nothing, too, if it may have come from several cards.
std::optional<Sent> last_before(const Signals& signals, std::uint64_t value, std::uint64_t va, Time system,
                                std::size_t hears) {
    const auto same = signals.find({value, va});
    if (same == signals.end()) return std::nullopt;
    std::optional<Sent> sent;
    for (const auto& [card, times] : same->second) {
        if (card == hears) continue;
        const auto after = times.upper_bound(system);
        if (after == times.begin()) continue;
        if (sent) return std::nullopt;
        sent = Sent{card, std::prev(after)->second};
    }
    return sent;
}

}  // namespace

std::vector<Message> find_messages(const std::vector<CardHistory>& cards) {
    const Signals signals = signals_of(cards);
    std::vector<Message> messages;
    for (std::size_t card = 0; card < cards.size(); ++card) {
        const auto& records = cards[card].history->records();
        std::map<std::uint64_t, std::size_t> pokes;     // memory: the one that woke whoever wakes next
        std::map<std::uint16_t, std::uint64_t> wanted;  // queue: address of the semaphore for which it waits
        for (std::size_t n = 0; n < records.size(); ++n) {
            const Record& record = records[n];
            if (record.type == ORR_TRACE_WAIT) wanted[record.a] = record.word[2];
            if (record.type == ORR_TRACE_POKE && record.b != 0) pokes[record.word[0]] = n;
            if (record.type != ORR_TRACE_WAKE || record.b != ORR_WAKE_PEER) continue;
            const auto poke = pokes.extract(record.word[0]);
            if (poke.empty()) continue;
            const Time heard = cards[card].system(records[poke.mapped()].time);
            auto sent = last_before(signals, record.word[1], wanted[record.a], heard, card);
            if (!sent) sent = last_before(signals, record.word[1], kAny, heard, card);
            if (sent) messages.push_back({sent->card, sent->record, card, poke.mapped()});
        }
    }
    return messages;
}

}  // namespace orrery::step
