#include "umd/runtime/gang.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "umd/runtime/context.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/module.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

// Of one gang in a page of boards: two semaphores for each card, then the table of where the others' boards
// are.
constexpr std::uint64_t kTable = 2 * ORR_GANG_MAX_CARDS * sizeof(orr_semaphore);
constexpr std::uint64_t kPlaceBytes = kTable + ORR_GANG_MAX_CARDS * sizeof(std::uint64_t);
constexpr std::uint32_t kPlaces = kPage / kPlaceBytes;
constexpr std::uint64_t kNotGiven = ~std::uint64_t{0};
constexpr std::uint64_t kMemberPackets = 2;  // GANG and dispatch

// What the parts of a gang did not do; `detail`: of ORR_QERR_GANG.
const char* apart(std::uint64_t detail) {
    return (detail & ORR_GANG_STARTED) != 0 ? "had run, made room for other work, and did not go on together"
                                            : "did not start together";
}

}  // namespace

Result<Gangs::Boards*> Gangs::make_boards(const std::vector<Context*>& cards) {
    auto boards = std::make_unique<Boards>();
    boards->cards = cards;
    Status good;
    for (std::size_t i = 0; i < cards.size() && good; ++i) {
        Memory& memory = cards[i]->memory();
        auto block = memory.create_block(cards[i]->device(), kPage, BoKind::kVram);
        if (!block) {
            good = std::unexpected(block.error());
            break;
        }
        boards->blocks.push_back(*block);
        for (std::size_t peer = 0; peer < cards.size() && good; ++peer) {
            if (peer != i) good = memory.share_block(**block, cards[peer]->device());
        }
    }
    for (std::size_t i = 0; i < boards->blocks.size() && good; ++i) {
        auto mapped = boards->blocks[i]->bo->map();
        if (!mapped) {
            good = std::unexpected(mapped.error());
            break;
        }
        for (std::uint32_t place = 0; place < kPlaces; ++place) {
            std::uint64_t table[ORR_GANG_MAX_CARDS] = {};
            for (std::size_t peer = 0; peer < cards.size(); ++peer)
                table[peer] = boards->blocks[peer]->va + place * kPlaceBytes;
            std::memcpy(static_cast<std::byte*>(*mapped) + place * kPlaceBytes + kTable, table, sizeof table);
        }
        boards->blocks[i]->bo->unmap();
    }
    if (!good) {
        for (std::size_t i = 0; i < boards->blocks.size(); ++i)
            cards[i]->memory().free_block(boards->blocks[i]);
        return std::unexpected(good.error());
    }
    boards_.push_back(std::move(boards));
    return boards_.back().get();
}

Result<Gangs::Place> Gangs::take(const std::vector<Context*>& cards) {
    const auto of_these = [&](const Boards& boards) { return boards.cards == cards; };
    const auto used = std::ranges::find_if(free_, [&](const Place& p) { return of_these(*p.boards); });
    if (used != free_.end()) {
        Place place = *used;
        free_.erase(used);
        ++place.round;
        return place;
    }
    const auto room = std::ranges::find_if(
        boards_, [&](const auto& boards) { return of_these(*boards) && boards->taken < kPlaces; });
    Boards* boards = room == boards_.end() ? nullptr : room->get();
    if (boards == nullptr) {
        ORR_TRY(made, make_boards(cards));
        boards = *made;
    }
    return Place{boards, boards->taken++, 1};
}

void Gangs::retire() {
    std::vector<std::shared_ptr<Gang>> over;  // go after the lock
    {
        const std::lock_guard lock(mutex_);
        std::ranges::copy_if(gangs_, std::back_inserter(over), [](const std::shared_ptr<Gang>& gang) {
            return std::ranges::all_of(gang->members, [](const Member& member) {
                return member.end != kNotGiven && member.stream->over(member.end);
            });
        });
    }
    // A part that was stopped finds the cause only while its gang is here.
    for (const auto& gang : over) {
        for (const Member& member : gang->members)
            (void)member.stream->error();
    }
    const std::lock_guard lock(mutex_);
    for (const auto& gang : over) {
        if (std::erase(gangs_, gang) == 0) continue;  // another thread did it
        const auto done = [](const Member& member) { return member.stream->executed() >= member.end; };
        // What a card says of a gang that failed may come late: nobody gets that place again.
        if (std::ranges::all_of(gang->members, done)) free_.push_back(gang->place);
    }
}

Status Gangs::check_places(const std::vector<GangPart>& parts) const {
    for (const GangPart& part : parts) {
        // Those in one stream come one after another.
        std::set<const Stream*> others;
        for (const auto& gang : gangs_) {
            for (const Member& member : gang->members) {
                if (&member.stream->context() == &part.stream->context() && member.stream != part.stream &&
                    !member.stream->over(member.end))
                    others.insert(member.stream.get());
            }
        }
        if (others.size() < ORR_GANG_MAX_OF_CONTEXT) continue;
        return fail(orrErrorOutOfMemory,
                    "{} other streams on device {} have parts of launches over several devices that are not "
                    "over: a device has room for those of {} streams of a process at a time. Nothing was "
                    "started: wait for one of these streams, or use it for this part too",
                    others.size(), part.stream->context().device(), ORR_GANG_MAX_OF_CONTEXT);
    }
    return {};
}

Status Gangs::launch(std::vector<GangPart> parts) {
    // All cards go by one order of them.
    std::ranges::sort(parts, {}, [](const GangPart& part) { return part.stream->context().uid(); });
    std::vector<Context*> cards;
    for (const GangPart& part : parts)
        cards.push_back(&part.stream->context());
    ORR_TRY(ways, ways_between(cards));
    const std::lock_guard one_at_a_time(launching_);
    retire();
    auto gang = std::make_shared<Gang>();
    {
        const std::lock_guard lock(mutex_);
        ORR_TRY(fits, check_places(parts));
        ORR_TRY(place, take(cards));
        gang->place = *place;
        for (const GangPart& part : parts)
            gang->members.push_back({part.stream, kNotGiven});
    }
    // What can fail for lack of something comes first. Nobody is kept out while a stream is waited for: he
    // may be the one that it waits for.
    gang->ways = *std::move(ways);
    for (Way& way : gang->ways) {
        // Boards are the first thing that two cards import of each other, and with it their way gets a
        // number.
        if (static_cast<std::uint32_t>(way.number) == 0) way.number = way.from->way_to(*way.to).value_or(0);
    }
    std::vector<std::vector<Context*>> peers;
    for (const Context* card : cards)
        peers.push_back(card->peers());
    std::vector<std::unique_lock<Mutex>> held;
    for (bool room = false; !room;) {
        held.clear();
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const Status good = parts[i].stream->prepare(parts[i].dispatch, parts[i].args.size(), peers[i]);
            if (good) continue;
            const std::lock_guard lock(mutex_);
            free_.push_back(gang->place);
            return good;
        }
        room = true;
        for (std::size_t i = 0; i < parts.size() && room; ++i) {
            held.push_back(parts[i].stream->hold());
            room = held.back() && parts[i].stream->has_room(parts[i].args.size(), peers[i]);
        }
    }
    {
        const std::lock_guard lock(mutex_);
        gangs_.push_back(gang);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::uint64_t board = gang->place.boards->blocks[i]->va + gang->place.number * kPlaceBytes;
        orr_packet_gang packet{};
        packet.header.opcode = ORR_PKT_GANG;
        packet.board = board;
        packet.peers = parts.size() > 1 ? board + kTable : 0;
        packet.round = gang->place.round;
        packet.card = static_cast<std::uint16_t>(i);
        packet.cards = static_cast<std::uint16_t>(parts.size());
        packet.members = 1;
        {
            // It may stop, and be asked why, before submit_member() comes back.
            const std::lock_guard lock(mutex_);
            gang->members[i].end = parts[i].stream->submitted() + kMemberPackets;
        }
        const auto given =
            parts[i].stream->submit_member(std::bit_cast<orr_packet>(packet), parts[i].dispatch,
                                           parts[i].args, parts[i].kernel->name, peers[i]);
        if (given) continue;
        {
            const std::lock_guard lock(mutex_);
            std::erase(gangs_, gang);
        }
        held.clear();
        const Error error{
            given.error().code,
            fmt::format("the part of a launch over several devices for {} could not be given: {}",
                        parts[i].stream->label(), given.error().text)};
        for (std::size_t before = 0; before < i; ++before)
            parts[before].stream->stop(error);
        return std::unexpected(error);
    }
    return {};
}

void Gangs::watch() {
    retire();
    std::vector<std::shared_ptr<Gang>> all;
    {
        const std::lock_guard lock(mutex_);
        all = gangs_;
    }
    for (const auto& gang : all) {
        const auto cause = first_cause(*gang);
        if (!cause) continue;
        for (Member& member : gang->members) {
            {
                const std::lock_guard lock(mutex_);
                // One that has other work before its part finds out when it comes to it.
                const bool there =
                    member.end != kNotGiven && member.stream->executed() + kMemberPackets >= member.end;
                if (!there || member.stream->over(member.end)) continue;
                member.told = true;
            }
            member.stream->stop(*cause);
        }
    }
}

std::optional<Error> Gangs::first_cause(const Gang& gang) const {
    for (const Member& member : gang.members) {
        {
            const std::lock_guard lock(mutex_);
            if (member.stream->executed() >= member.end) continue;
        }
        const auto error = member.stream->first_error();
        if (!error) continue;
        const std::lock_guard lock(mutex_);
        if (member.told) continue;
        return Error{error->code, fmt::format("{} had a part of the same launch over several devices: {}",
                                              member.stream->label(), error->text)};
    }
    const std::lock_guard lock(mutex_);
    return gang.apart;
}

Error Gangs::cause(const Stream& stream, std::uint64_t detail) {
    std::shared_ptr<Gang> gang;
    {
        const std::lock_guard lock(mutex_);
        const std::uint64_t at = stream.stopped_at();
        for (const auto& one : gangs_) {
            const auto self = std::ranges::find_if(one->members, [&](const Member& member) {
                return member.stream.get() == &stream && at < member.end && member.end - at <= kMemberPackets;
            });
            if (self == one->members.end()) continue;
            self->told = true;
            gang = one;
            break;
        }
    }
    if (gang == nullptr) {
        return {orrErrorLaunchTimeout,
                fmt::format("the parts of a launch over several devices {} in time", apart(detail))};
    }
    if (auto first = first_cause(*gang)) return *first;
    const Error error = not_together(*gang, stream, detail);
    const std::lock_guard lock(mutex_);
    if (!gang->apart) gang->apart = error;
    return *gang->apart;
}

Result<std::vector<Gangs::Way>> Gangs::ways_between(const std::vector<Context*>& cards) {
    std::vector<Way> ways;
    for (std::size_t i = 0; i < cards.size(); ++i) {
        for (std::size_t k = i + 1; k < cards.size(); ++k) {
            Context &card = *cards[i], &peer = *cards[k];
            if (const auto number = card.way_to(peer)) {
                ways.push_back({&card, &peer, *number});
                continue;
            }
            if (auto loss = loss_of_either(card, peer)) return std::unexpected(*loss);
            return fail(orrErrorPeerAccess,
                        "no way over links that are up joins devices {} and {}: the parts of a launch over "
                        "several devices find each other over links (orrery-smi shows them)",
                        card.device(), peer.device());
        }
    }
    return ways;
}

std::optional<Error> Gangs::way_lost(const Gang& gang, std::uint64_t detail) {
    for (const Way& way : gang.ways) {
        const auto loss = way.from->way_loss(*way.to, way.number);
        if (!loss) continue;
        if (auto lost = loss_of_either(*way.from, *way.to)) return *lost;
        // A card on the way that is gone has taken its links along.
        for (Context* const card : way.from->fleet().contexts()) {
            const bool at_link =
                loss->link && (card->uid() == loss->link->uid || card->uid() == loss->link->peer);
            if (!at_link) continue;
            if (auto lost = card->ask()) return *lost;
        }
        const std::string what =
            loss->link
                ? name_of(way.from->fleet(), *loss->link) + " went down"
                : fmt::format("the way between devices {} and {} {}", way.from->device(), way.to->device(),
                              loss->there ? "was given up for another one" : "was lost");
        return Error{
            orrErrorPeerAccess,
            fmt::format("the parts of a launch over several devices {}: {} before they had met, so what "
                        "devices {} and {} told each other may be lost. {} (orrery-smi links shows ports and "
                        "how often each has lost its link)",
                        apart(detail), what, way.from->device(), way.to->device(),
                        loss->there ? "There is a way again: launch again"
                                    : "No way over links that are up is left")};
    }
    return std::nullopt;
}

// Of a gang of which no part has failed, as this one of its streams has heard.
Error Gangs::not_together(const Gang& gang, const Stream& teller, std::uint64_t detail) {
    const std::uint64_t lacks = std::min<std::uint64_t>(detail >> 32, gang.members.size() - 1);
    const Stream& stream = *gang.members[lacks].stream;
    // What kept a card from its own part is no link; it says so of itself, or as the cause of all.
    const bool known = (detail & ORR_GANG_PRECEDED) != 0 || &stream == &teller;
    if (!known) {
        if (auto lost = way_lost(gang, detail)) return *lost;
    }
    if ((detail & ORR_GANG_PRECEDED) != 0)
        return {
            orrErrorLaunchTimeout,
            fmt::format("the parts of a launch over several devices {}: kernels that go first (of a higher "
                        "class, or of other launches over several devices) kept device {} from {} for {} "
                        "times the limit of model time",
                        apart(detail), stream.context().device(), stream.label(), ORR_GANG_LIMITS)};
    return {orrErrorLaunchTimeout,
            fmt::format("the parts of a launch over several devices {}: {} had other work, or no cores were "
                        "free there, within the limit of model time",
                        apart(detail), stream.label())};
}

void Gangs::clear() {
    std::vector<std::shared_ptr<Gang>> gone;
    const std::lock_guard lock(mutex_);
    gone.swap(gangs_);
}

}  // namespace orrery::umd
