#include "tools/step/report/messages.h"

#include <orrery/fw/trace.h>

#include <map>
#include <optional>

namespace orrery::step {
namespace {

constexpr std::uint64_t kElsewhere = ~std::uint64_t{0};  // the memory of a semaphore of a linked card

struct Sent {
    std::size_t card = 0, record = 0;
};
// Value: system time.
using Signals = std::map<std::uint64_t, std::multimap<Time, Sent>>;

Signals signals_of(const std::vector<CardHistory>& cards) {
    Signals signals;
    for (std::size_t card = 0; card < cards.size(); ++card) {
        const auto& records = cards[card].history->records();
        for (std::size_t n = 0; n < records.size(); ++n) {
            const Record& record = records[n];
            if (record.type == ORR_TRACE_SIGNAL && record.word[0] == kElsewhere)
                signals[record.word[1]].emplace(cards[card].system(record.time), Sent{card, n});
        }
    }
    return signals;
}

// Sent by somebody else than `hears`.
std::optional<Sent> last_before(const Signals& signals, std::uint64_t value, Time system, std::size_t hears) {
    const auto same = signals.find(value);
    if (same == signals.end()) return std::nullopt;
    for (auto at = same->second.upper_bound(system); at != same->second.begin();) {
        --at;
        if (at->second.card != hears) return at->second;
    }
    return std::nullopt;
}

}  // namespace

std::vector<Message> find_messages(const std::vector<CardHistory>& cards) {
    const Signals signals = signals_of(cards);
    std::vector<Message> messages;
    for (std::size_t card = 0; card < cards.size(); ++card) {
        const auto& records = cards[card].history->records();
        std::map<std::uint64_t, std::size_t> pokes;  // memory: the last one that nothing is known of
        for (std::size_t n = 0; n < records.size(); ++n) {
            const Record& record = records[n];
            if (record.type == ORR_TRACE_POKE) pokes[record.word[0]] = n;
            if (record.type != ORR_TRACE_WAKE || record.b != ORR_WAKE_PEER) continue;
            const auto poke = pokes.find(record.word[0]);
            if (poke == pokes.end()) continue;
            const Time heard = cards[card].system(records[poke->second].time);
            const auto sent = last_before(signals, record.word[1], heard, card);
            if (!sent) continue;
            messages.push_back({sent->card, sent->record, card, poke->second});
            pokes.erase(poke);
        }
    }
    return messages;
}

}  // namespace orrery::step
