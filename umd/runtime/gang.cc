#include "umd/runtime/gang.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "umd/runtime/context.h"
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

std::vector<std::shared_ptr<Gangs::Gang>> Gangs::retire() {
    std::vector<std::shared_ptr<Gang>> gone;
    std::erase_if(gangs_, [&](const std::shared_ptr<Gang>& gang) {
        const auto given = [](const Member& m) { return m.end != kNotGiven; };
        const auto done = [](const Member& m) { return m.stream->executed() >= m.end; };
        const auto over = [](const Member& m) { return m.stream->over(m.end); };
        if (!std::ranges::all_of(gang->members, given) || !std::ranges::all_of(gang->members, over))
            return false;
        // What a card says of a gang that failed may come late: nobody gets that place again.
        if (std::ranges::all_of(gang->members, done)) free_.push_back(gang->place);
        gone.push_back(gang);
        return true;
    });
    return gone;
}

Status Gangs::launch(std::vector<GangPart> parts) {
    // All cards go by one order of them.
    std::ranges::sort(parts, {}, [](const GangPart& part) { return part.stream->context().uid(); });
    std::vector<Context*> cards;
    for (const GangPart& part : parts)
        cards.push_back(&part.stream->context());
    for (const Context* card : cards) {
        for (const Context* peer : cards) {
            if (card == peer || card->way_to(*peer)) continue;
            return fail(
                orrErrorPeerAccess,
                "no link that is up joins devices {} and {}: the parts of a launch over several devices "
                "find each other over links (orrery-smi shows them)",
                card->device(), peer->device());
        }
    }
    const std::lock_guard one_at_a_time(launching_);
    auto gang = std::make_shared<Gang>();
    std::vector<std::shared_ptr<Gang>> over;
    {
        const std::lock_guard lock(mutex_);
        over = retire();
        ORR_TRY(place, take(cards));
        gang->place = *place;
        for (const GangPart& part : parts)
            gang->members.push_back({part.stream, kNotGiven});
    }
    // What can fail for lack of something comes first.
    Status good;
    for (const GangPart& part : parts) {
        good = part.stream->prepare(part.dispatch, part.kernel->context->peers());
        if (!good) break;
    }
    if (!good) {
        const std::lock_guard lock(mutex_);
        free_.push_back(gang->place);
        return good;
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
        const auto end = parts[i].stream->submit_member(std::bit_cast<orr_packet>(packet), parts[i].dispatch,
                                                        parts[i].args, parts[i].kernel->name,
                                                        parts[i].kernel->context->peers());
        {
            const std::lock_guard lock(mutex_);
            if (end)
                gang->members[i].end = *end;
            else
                std::erase(gangs_, gang);
        }
        if (end) continue;
        const Error error{
            end.error().code,
            fmt::format("the part of a launch over several devices for {} could not be given: {}",
                        parts[i].stream->label(), end.error().text)};
        for (std::size_t given = 0; given < i; ++given)
            parts[given].stream->stop(error);
        return std::unexpected(error);
    }
    return {};
}

void Gangs::watch() {
    std::vector<std::shared_ptr<Gang>> all, over;
    {
        const std::lock_guard lock(mutex_);
        over = retire();
        all = gangs_;
    }
    for (const auto& gang : all) {
        const auto lost = std::ranges::find_if(gang->members, [](const Member& m) {
            return m.stream->executed() < m.end && m.stream->first_error();
        });
        if (lost == gang->members.end()) continue;
        const Error cause = *lost->stream->first_error();
        for (const Member& other : gang->members) {
            // One that has other work before its part finds out when it comes to it.
            const bool there = other.end != kNotGiven && other.stream->executed() + 2 >= other.end;
            if (other.stream == lost->stream || !there || other.stream->over(other.end)) continue;
            other.stream->stop(
                {cause.code, fmt::format("{} had a part of the same launch over several devices: {}",
                                         lost->stream->label(), cause.text)});
        }
    }
}

Error Gangs::cause(const Stream& stream, std::uint64_t missing) const {
    const std::lock_guard lock(mutex_);
    const std::uint64_t at = stream.stopped_at();
    for (const auto& gang : gangs_) {
        const auto self = std::ranges::find_if(gang->members, [&](const Member& m) {
            return m.stream.get() == &stream && at < m.end && at + 2 >= m.end;
        });
        if (self == gang->members.end()) continue;
        for (const Member& other : gang->members) {
            if (other.stream.get() == &stream || other.stream->executed() >= other.end) continue;
            if (const auto error = other.stream->first_error()) {
                return {error->code, fmt::format("{} had a part of the same launch over several devices: {}",
                                                 other.stream->label(), error->text)};
            }
        }
        const std::size_t lacks = missing < gang->members.size() ? missing : gang->members.size() - 1;
        return {
            orrErrorLaunchTimeout,
            fmt::format("a launch over several devices did not start within its limit of model time: {} had "
                        "other work, or no cores were free there",
                        gang->members[lacks].stream->label())};
    }
    return {orrErrorLaunchTimeout,
            "the parts of a launch over several devices did not start together in time"};
}

void Gangs::clear() {
    std::vector<std::shared_ptr<Gang>> gone;
    const std::lock_guard lock(mutex_);
    gone.swap(gangs_);
}

}  // namespace orrery::umd
