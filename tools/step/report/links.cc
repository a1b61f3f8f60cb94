#include "tools/step/report/links.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "tools/text/units.h"

namespace orrery::step {
namespace {

// An end, in the order of tracks: cards with recordings, by number; then others, by uid.
using Place = std::tuple<bool, std::uint64_t, unsigned>;

struct Ends {
    Place from, to;
    auto operator<=>(const Ends&) const = default;
};

using Cards = std::map<std::uint64_t, std::size_t>;  // by uid

LinkEnd own_end(const std::vector<LinkedCard>& cards, std::size_t card, unsigned port) {
    return {card, port, fmt::format("{} port {}", cards[card].name, port)};
}

LinkEnd peer_end(const std::vector<LinkedCard>& cards, const Cards& by_uid, const LinkBurst& burst) {
    if (const auto known = by_uid.find(burst.peer); known != by_uid.end())
        return own_end(cards, known->second, burst.peer_port);
    return {{},
            burst.peer_port,
            fmt::format("{} {:016x} port {}", burst.peer_is_switch ? "switch" : "card", burst.peer,
                        burst.peer_port)};
}

Place place(const LinkEnd& end, std::uint64_t uid) {
    return {!end.card, end.card ? *end.card : uid, end.port};
}

Crossing crossing_of(const LinkBurst& burst) {
    Crossing crossing{.operation = burst.operation,
                      .channel = burst.channel,
                      .source = burst.source,
                      .destination = burst.destination,
                      .first = burst.first,
                      .messages = burst.messages,
                      .bytes = burst.bytes,
                      .begin = burst.head,
                      .left = burst.end,
                      .came = burst.head,
                      .end = burst.end,
                      .sent = burst.sent,
                      .taken = !burst.sent};
    if (burst.sent) {
        crossing.begin -= std::min(crossing.begin, burst.latency);
        crossing.left -= std::min(crossing.left, burst.latency);
    }
    return crossing;
}

void join(Crossing& to, const Crossing& next) {
    if (to.operation != next.operation) to.operation = 0;
    to.messages += next.messages;
    to.bytes += next.bytes;
    to.left = std::max(to.left, next.left);
    to.end = std::max(to.end, next.end);
    to.sent = to.sent && next.sent;
    to.taken = to.taken && next.taken;
}

// Those between which the least time is, until there are few enough.
void thin_out(std::vector<Crossing>& crossings, std::size_t most) {
    if (crossings.size() <= most || most == 0) return;
    std::vector<Time> gaps;
    gaps.reserve(crossings.size() - 1);
    for (std::size_t n = 1; n < crossings.size(); ++n)
        gaps.push_back(crossings[n].begin - std::min(crossings[n].begin, crossings[n - 1].left));
    // The longest stay; of those that are as long as the shortest that does, as many as may, spread out.
    std::vector<Time> sorted = gaps;
    const auto last = sorted.begin() + static_cast<std::ptrdiff_t>(gaps.size() + 1 - most);
    Time longest = 0;
    if (last != sorted.end()) {
        std::ranges::nth_element(sorted, last);
        longest = *last;
    } else {
        longest = kNever;
    }
    const auto longer =
        static_cast<std::size_t>(std::ranges::count_if(gaps, [&](Time gap) { return gap > longest; }));
    const auto as_long = static_cast<std::size_t>(std::ranges::count(gaps, longest));
    const std::size_t may = most - 1 - longer;
    std::vector<Crossing> fewer{crossings.front()};
    std::size_t seen = 0;
    for (std::size_t n = 1; n < crossings.size(); ++n) {
        const Time gap = gaps[n - 1];
        const std::size_t before = gap == longest ? seen++ : 0;
        const bool stays =
            gap > longest || (gap == longest && (before + 1) * may / as_long != before * may / as_long);
        if (stays)
            fewer.push_back(crossings[n]);
        else
            join(fewer.back(), crossings[n]);
    }
    crossings = std::move(fewer);
}

// Of each channel of a link and direction, by the first message's number. A link that comes up again counts
// anew, so there may be several.
struct SentBurst {
    const LinkBurst* burst = nullptr;
    std::size_t crossing = 0;
    std::uint64_t taken = 0;  // messages
};
struct SentOn {
    std::multimap<std::uint64_t, SentBurst> bursts;
    std::uint64_t longest = 0;  // messages
};
using Sent = std::map<std::pair<Ends, unsigned>, SentOn>;

// What one end sent and the other one took is the same where channel, number and time are. A port that
// changes in the midst of a burst ends it at that end alone, so it may be two here and one there. Marks what
// has come of those that were sent; gives what nobody's recording has as sent.
std::optional<LinkBurst> not_sent(SentOn& sent, const LinkBurst& burst, std::vector<Crossing>& crossings) {
    std::uint64_t known = 0;
    const std::uint64_t end = burst.first + burst.messages;
    const auto first = sent.bursts.lower_bound(burst.first - std::min(burst.first, sent.longest));
    for (auto each = first; each != sent.bursts.end() && each->first < end; ++each) {
        SentBurst& one = each->second;
        const std::uint64_t until = each->first + one.burst->messages;
        if (until <= burst.first || burst.head > one.burst->end || burst.end < one.burst->head) continue;
        const std::uint64_t both = std::min(end, until) - std::max(burst.first, each->first);
        known += both;
        one.taken += both;
        crossings[one.crossing].taken = one.taken >= one.burst->messages;
    }
    if (known >= burst.messages) return std::nullopt;
    LinkBurst rest = burst;
    // Messages of a burst are of one kind, so about of one size.
    rest.bytes = static_cast<std::uint64_t>(static_cast<double>(burst.bytes) *
                                            static_cast<double>(burst.messages - known) /
                                            static_cast<double>(burst.messages));
    rest.messages = burst.messages - known;
    return rest;
}

}  // namespace

std::vector<LinkTrack> find_links(const std::vector<LinkedCard>& cards, std::size_t most) {
    Cards by_uid;
    for (std::size_t card = 0; card < cards.size(); ++card)
        by_uid.emplace(cards[card].uid, card);
    std::map<Ends, LinkTrack> tracks;
    Sent sent;
    for (const bool senders : {true, false}) {
        for (std::size_t card = 0; card < cards.size(); ++card) {
            for (const LinkBurst& burst : *cards[card].bursts) {
                if (burst.sent != senders) continue;
                LinkEnd own = own_end(cards, card, burst.port);
                LinkEnd peer = peer_end(cards, by_uid, burst);
                Ends ends{place(own, 0), place(peer, burst.peer)};
                if (!senders) std::swap(ends.from, ends.to);
                LinkTrack& track = tracks[ends];
                if (track.crossings.empty()) {
                    track.from = senders ? std::move(own) : std::move(peer);
                    track.to = senders ? std::move(peer) : std::move(own);
                }
                if (senders) {
                    SentOn& on = sent[{ends, burst.channel}];
                    on.bursts.emplace(burst.first, SentBurst{&burst, track.crossings.size()});
                    on.longest = std::max(on.longest, burst.messages);
                    track.crossings.push_back(crossing_of(burst));
                } else if (auto rest = not_sent(sent[{ends, burst.channel}], burst, track.crossings)) {
                    track.crossings.push_back(crossing_of(*rest));
                }
            }
        }
    }
    std::vector<LinkTrack> all;
    for (auto& [ends, track] : tracks) {
        std::ranges::sort(track.crossings, {},
                          [](const Crossing& one) { return std::tuple(one.begin, one.channel, one.first); });
        // By a picosecond, where one began that was passed on.
        for (std::size_t n = 1; n < track.crossings.size(); ++n) {
            Crossing &before = track.crossings[n - 1], &one = track.crossings[n];
            one.begin = std::max(one.begin, before.left);
            one.left = std::max(one.begin, one.left);
            one.came = std::max(one.came, before.end);
            one.end = std::max(one.came, one.end);
        }
        thin_out(track.crossings, most);
        all.push_back(std::move(track));
    }
    return all;
}

std::string operation_name(unsigned operation) {
    switch (operation) {
        case 0:
            return "several";
        case 1:
            return "write";
        case 2:
            return "signal";
        case 3:
            return "read";
        case 4:
            return "atomic";
        case 5:
            return "answer";
        case 6:
            return "barrier";
        case 7:
            return "barrier leave";
        case 8:
            return "multicast member";
        case 16:
            return "note";
        default:
            return fmt::format("operation {}", operation);
    }
}

std::string describe(const Crossing& crossing) {
    return fmt::format("{}, {} message{}, {} bytes", operation_name(crossing.operation), crossing.messages,
                       crossing.messages == 1 ? "" : "s", text::grouped(crossing.bytes));
}

}  // namespace orrery::step
