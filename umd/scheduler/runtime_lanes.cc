// The lanes of a task graph: hardware queues are made when they are needed first, and again after a failure
// has taken them.
#include <map>
#include <utility>
#include <vector>

#include "umd/runtime/at_once.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/packets.h"
#include "umd/scheduler/runtime_executor.h"

namespace orrery::umd {

Result<RuntimeExecutor::LaneId> RuntimeExecutor::lane(LaneKind kind, unsigned card, unsigned other) {
    const auto [known, added] =
        lane_ids_.try_emplace({kind, card, other}, static_cast<LaneId>(lanes_.size()));
    const LaneId id = known->second;
    if (added) {
        const bool crosses = kind == LaneKind::kPeer || kind == LaneKind::kRelay;
        lanes_.emplace_back(kind, card, crosses ? other : card);
    }
    Lane& lane = lanes_[id];
    if (lane.stream != nullptr) return id;
    ORR_TRY(opened, open(lane));
    return id;
}

Status RuntimeExecutor::open(Lane& lane) {
    static constexpr const char* kNames[] = {"tasks", "tasks: from host", "tasks: to host",
                                             "tasks: to device", "tasks: signals to device"};
    QueueOptions options;
    options.name = kNames[static_cast<std::size_t>(lane.kind)];
    const bool crosses = lane.signals != lane.card;
    if (crosses) options.name += fmt::format(" {}", cards_[lane.signals].device);
    ORR_TRY(slot, cards_[lane.signals].context->semaphores().take(true));
    const int device = cards_[lane.card].device;
    if (crosses) {
        auto shared = runtime_.memory().share_block(*(*slot)->block, device);
        // The driver only says that there is no way any more.
        if (!shared && shared.error().code == orrErrorPeerAccess)
            shared.error().text += last_loss(*cards_[lane.card].context, *cards_[lane.signals].context);
        if (!shared) return shared;
    }
    PinnedBuffer scratch;
    if (lane.kind == LaneKind::kRun) {
        options.limit_us = limit_us_;
        ORR_TRY(made, PinnedBuffer::create(runtime_.memory(), device, kSlots * kSlotBytes));
        scratch = std::move(*made);
    }
    ORR_TRY(stream, Stream::create(*cards_[lane.card].context, crosses ? kCrossingEntries : kEntries, 0,
                                   std::move(options)));
    lane.stream = std::move(*stream);
    lane.slot = std::move(*slot);
    lane.scratch = std::move(scratch);
    ++made_;
    return {};
}

// Positions go on, so what is known of the old queue is not taken for the next one's.
void RuntimeExecutor::close(Lane& lane) {
    if (lane.stream == nullptr) return;
    lane.stream->close();
    // A signal that is still on a link would arrive at whoever has the slot next.
    lane.slot->lost |= lane.stream->error().has_value() || !lane.slot->reached(lane.position);
    Lane next(lane.kind, lane.card, lane.signals);
    next.position = lane.position;
    lane = std::move(next);
}

// Card by card at once: ending a queue waits for its firmware.
void RuntimeExecutor::close(std::span<Lane* const> lanes) {
    std::map<unsigned, std::vector<Lane*>> by_card;
    for (Lane* const lane : lanes)
        by_card[lane->card].push_back(lane);
    std::vector<const std::vector<Lane*>*> groups;
    for (const auto& [card, group] : by_card)
        groups.push_back(&group);
    at_once(groups.size(), [&](std::size_t group) {
        for (Lane* const lane : *groups[group])
            close(*lane);
    });
}

void RuntimeExecutor::close_all() {
    std::vector<Lane*> all;
    for (Lane& lane : lanes_)
        all.push_back(&lane);
    close(all);
}

// Brings the model clocks of linked cards to one time, and notes it as the start of the graph's time.
void RuntimeExecutor::synchronise() {
    synchronised_ = true;
    std::vector<LaneId> runs;
    for (unsigned card = 0; card < cards_.size(); ++card) {
        if ((lost_cards_ >> card & 1) != 0) continue;
        auto id = lane(LaneKind::kRun, card, 0);
        if (!id) continue;  // the first command says why
        runs.push_back(*id);
        finish(*id, {});
    }
    if (runs.empty()) return;
    const LaneId first = runs[0];
    const auto reaches_first = [&](LaneId run) {
        const unsigned a = lanes_[run].card, b = lanes_[first].card;
        return a != b && machine_.channel[a][b].exists && machine_.channel[b][a].exists;
    };
    InFlight meeting;
    for (const LaneId run : runs) {
        if (reaches_first(run)) (void)wait(first, {run, lanes_[run].position}, meeting.waits);
    }
    finish(first, std::move(meeting));
    const Wait met{first, lanes_[first].position};
    for (const LaneId run : runs) {
        if (run == first) continue;
        InFlight entry;
        if (reaches_first(run)) (void)wait(run, met, entry.waits);
        finish(run, std::move(entry));
    }
    for (const LaneId run : runs) {
        Lane& lane = lanes_[run];
        Card& card = cards_[lane.card];
        if (card.base != 0 || card.base_stamp != nullptr) continue;
        // No task uses this word.
        const std::uint64_t offset = (kSlots - 1) * kSlotBytes + kStamps + 16;
        push(lane, make_timestamp(lane.scratch.va() + offset), {Op::kSignal, nullptr});
        card.base_stamp = reinterpret_cast<std::uint64_t*>(lane.scratch.data() + offset);
        finish(run, {});
    }
}

}  // namespace orrery::umd
