#include "emulator/link/reductions.h"

#include <algorithm>
#include <utility>

#include "emulator/link/shared_area.h"

namespace orrery::emu::link {

std::uint32_t Reductions::begin(unsigned port, const Message& request, const Multicast& all) {
    Port& of = ports_.at(port);
    const ReduceLoop loop = loop_of(request.function);
    const std::uint64_t bytes = bytes_of(request, all.members.size());
    if (loop == nullptr || of.bytes + bytes > kBytesOfPort) return 0;
    auto entry = std::ranges::find(of.entries, false, &Entry::used);
    if (entry == of.entries.end()) {
        if (of.entries.size() == kOfPort) return 0;
        entry = of.entries.emplace(of.entries.end());
    }
    of.bytes += bytes;
    const std::uint32_t round = entry->round;
    *entry = Entry{.used = true, .round = round, .request = request, .loop = loop};
    for (const Multicast::Member& member : all.members)
        entry->parts.push_back({.node = member.node, .epoch = member.epoch});
    entry->open = static_cast<unsigned>(entry->parts.size());
    return round * kPlaces + port * kOfPort + static_cast<std::uint32_t>(entry - of.entries.begin());
}

Reductions::Entry* Reductions::find(std::uint32_t tag) {
    Port& port = ports_[tag % kPlaces / kOfPort];
    const std::uint32_t place = tag % kOfPort;
    if (place >= port.entries.size()) return nullptr;
    Entry& entry = port.entries[place];
    return entry.used && entry.round == tag / kPlaces ? &entry : nullptr;
}

void Reductions::free(std::uint32_t tag) {
    Entry* const entry = find(tag);
    if (entry == nullptr) return;
    ports_[tag % kPlaces / kOfPort].bytes -= bytes_of(entry->request, entry->parts.size());
    const std::uint32_t round = entry->round % (kRounds - 1) + 1;
    *entry = Entry{.round = round};
}

void Reductions::end(std::uint32_t tag) {
    free(tag);
}

void Reductions::drop(std::uint32_t tag) {
    Entry* const entry = find(tag);
    if (entry == nullptr || entry->open != 0) return;
    entry->parts[entry->last].status = kAnswerLost;
    ended_.push_back(tag);
    ended_hook_();
}

// Of several that failed the first.
Status Reductions::status_of(const Entry& entry) {
    for (const Part& part : entry.parts)
        if (part.status != kDone) return part.status;
    return kDone;
}

void Reductions::lose(std::uint32_t tag, Entry& entry, Part& part, Status why) {
    if (!part.open) return;
    part.open = false;
    part.status = why;
    if (--entry.open != 0) return;
    ended_.push_back(tag);
    ended_hook_();
}

void Reductions::lose(std::uint32_t tag, unsigned member, Status why) {
    Entry* const entry = find(tag);
    if (entry != nullptr && member < entry->parts.size()) lose(tag, *entry, entry->parts[member], why);
}

Reductions::Took Reductions::take(const Message& part, const Channel& from, bool good) {
    Entry* const entry = find(part.tag);
    if (entry == nullptr || entry->request.source != part.destination ||
        part.function != (entry->request.function | kPart))
        return Took::kNone;
    const auto at = std::ranges::find(entry->parts, part.source, &Part::node);
    if (at == entry->parts.end() || at->epoch != part.epoch) return Took::kNone;
    const auto number = static_cast<unsigned>(at - entry->parts.begin());
    if (!at->open)
        return entry->open == 0 && entry->last == number &&
                       std::ranges::find(ended_, part.tag) == ended_.end()
                   ? Took::kAll
                   : Took::kNone;
    at->open = false;
    --entry->open;
    entry->last = number;
    entry->head_ps = std::max(entry->head_ps, part.head_ps);
    entry->arrival_ps = std::max(entry->arrival_ps, part.arrival_ps);
    at->status = good ? static_cast<Status>(part.status) : kAnswerLost;
    // Of a member that gives more or less than it was asked for nothing is taken.
    if (at->status == kDone && part.bytes != entry->request.bytes) at->status = kDenied;
    if (at->status == kDone) {
        at->data.resize(part.bytes);
        get_payload(from, part.payload_at, at->data.data(), part.bytes);
    }
    for (; entry->combined < entry->parts.size(); ++entry->combined) {
        Part& next = entry->parts[entry->combined];
        if (next.open || next.status != kDone) break;
        if (entry->combined == 0)
            entry->data = std::move(next.data);
        else
            entry->loop(reinterpret_cast<std::byte*>(entry->data.data()),
                        reinterpret_cast<const std::byte*>(next.data.data()), next.data.size());
        next.data = {};
    }
    return entry->open == 0 ? Took::kAll : Took::kPart;
}

Reductions::Whole Reductions::whole(std::uint32_t tag) const {
    const Entry* const entry = find(tag);
    Whole whole;
    if (entry == nullptr) return whole;
    const Message& request = entry->request;
    whole.answer.op = kOpAnswer;
    whole.answer.source = request.destination;
    whole.answer.destination = request.source;
    whole.answer.epoch = request.epoch;
    whole.answer.tag = request.tag;
    whole.answer.status = status_of(*entry);
    whole.answer.head_ps = entry->head_ps;
    whole.answer.arrival_ps = entry->arrival_ps;
    if (whole.answer.status == kDone) whole.data = entry->data;
    whole.answer.bytes = static_cast<std::uint32_t>(whole.data.size());
    return whole;
}

template <class Which>
void Reductions::lose_parts(Which which) {
    for (unsigned port = 0; port < ports_.size(); ++port) {
        std::vector<Entry>& entries = ports_[port].entries;
        for (std::size_t place = 0; place < entries.size(); ++place) {
            Entry& entry = entries[place];
            const std::uint32_t tag =
                entry.round * kPlaces + port * kOfPort + static_cast<std::uint32_t>(place);
            for (Part& part : entry.parts)
                if (part.open && which(port, entry, part)) lose(tag, entry, part, kAnswerLost);
        }
    }
}

void Reductions::lose_pair(std::uint32_t node, std::uint32_t other) {
    lose_parts([&](unsigned, const Entry& entry, const Part& part) {
        return (entry.request.source == node && part.node == other) ||
               (entry.request.source == other && part.node == node);
    });
}

void Reductions::lose_if(const std::function<bool(std::uint32_t node)>& gone) {
    lose_parts([&](unsigned, const Entry&, const Part& part) { return gone(part.node); });
}

void Reductions::lose_number(unsigned port, std::uint32_t number) {
    lose_parts([&](unsigned of, const Entry& entry, const Part&) {
        return of == port && entry.request.destination == number;
    });
}

void Reductions::forget(unsigned port) {
    const std::vector<Entry>& entries = ports_.at(port).entries;
    for (std::size_t place = 0; place < entries.size(); ++place)
        free(entries[place].round * kPlaces + port * kOfPort + static_cast<std::uint32_t>(place));
}

std::optional<Reductions::Ended> Reductions::next_ended() {
    while (!ended_.empty()) {
        const std::uint32_t tag = ended_.front();
        ended_.erase(ended_.begin());
        const Entry* const entry = find(tag);
        if (entry == nullptr) continue;
        const Ended ended{
            .port = tag % kPlaces / kOfPort, .request = entry->request, .status = status_of(*entry)};
        free(tag);
        return ended;
    }
    return std::nullopt;
}

std::uint32_t Reductions::used() const {
    std::uint32_t used = 0;
    for (const Port& port : ports_)
        used += static_cast<std::uint32_t>(std::ranges::count(port.entries, true, &Entry::used));
    return used;
}

}  // namespace orrery::emu::link
