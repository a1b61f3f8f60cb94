#include "umd/runtime/group.h"

#include <orrery/fw/failure.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/event.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/packets.h"

namespace orrery::umd {
namespace {

// A process that is killed loses its queues before it counts as dead.
constexpr std::int64_t kPatienceNs = 500'000'000;
// Who fails tells why, once he looks, which he may be kept from for some time; who is on another machine by
// its bridge, and that machine may stand still while its cards go on.
constexpr std::int64_t kTellerNs = 3'000'000'000, kTellerAbroadNs = 8'000'000'000;
// Within it there is a cause of a failure that is seen, unless a card stands still.
constexpr std::int64_t kCauseNs = 10'000'000'000;
static_assert(kTellerAbroadNs < kCauseNs);

bool has_ended(const UniqueFd& process) {
    pollfd poll{process.get(), POLLIN, 0};
    return process.get() >= 0 && ::poll(&poll, 1, 0) > 0;
}

// As Group::stopped_here() and the page name queues.
std::uint64_t queue_key(std::uint32_t node, std::uint32_t queue) {
    return 1ull << 63 | std::uint64_t{node} << 32 | queue;
}

GroupCause left_cause(int rank) {
    return {orrErrorAbandoned, rank, "it destroyed its group, and others have a barrier in a stream"};
}

std::string name_of(int rank) {
    return fmt::format("rank {} of a group", rank);
}

}  // namespace

Group::Group(Context& context, int rank, Seat seat, std::vector<GroupMember> members,
             std::shared_ptr<GroupPage> page, bool unit)
    : context_(context),
      rank_(rank),
      seat_(std::move(seat)),
      members_(std::move(members)),
      unit_(unit),
      leader_(static_cast<int>(
          std::ranges::find_if(members_, [](const GroupMember& one) { return one.slot != nullptr; }) -
          members_.begin())),
      barrier_va_(own().barrier != nullptr ? own().barrier->va : 0),
      page_(std::move(page)),
      doubted_ns_(members_.size(), 0) {
    for (int other = 0; other < size(); ++other) {
        const GroupMember& member = members_[static_cast<std::size_t>(other)];
        if (member.above == rank_) below_.push_back(other);
        if (other == rank_ || member.process.get() >= 0) name(other, name_of(other));
    }
    page_->set_queue(rank_, GroupPage::Queue::kGuard, queue_key(context_.node(), seat_.guard->number()));
}

Group::~Group() {
    // Nobody ever got a handle of it, or the library goes. Not leave(), which may wait for a cause.
    if (!gone_.load()) page_->leave(rank_);
    if (bridge_ != nullptr) bridge_->stop();
    for (int other = 0; other < size(); ++other) {
        const GroupMember& member = members_[static_cast<std::size_t>(other)];
        if (other == rank_ || member.process.get() >= 0) name(other, {});
    }
    seat_.guard->close();
}

void Group::name(int rank, const std::string& name) const {
    const SemaphoreSlot& slot = *members_[static_cast<std::size_t>(rank)].slot;
    slot.context->name_semaphore(slot.va, name);
    if (at_unit(rank))
        slot.context->name_semaphore(SharedSemaphores::release_va(slot),
                                     name.empty() ? name : "the barrier of " + name);
}

std::shared_ptr<Group> Group::enter(std::shared_ptr<Group> group) {
    group->context_.fleet().add(std::shared_ptr<Fleet::Watched>(group));
    return group;
}

int Group::device(int rank) const {
    if (rank < 0 || rank >= size()) return -1;
    const auto& slot = members_[static_cast<std::size_t>(rank)].slot;
    return slot == nullptr ? -1 : slot->context->device();
}

std::unexpected<Error> Group::failed() const {
    const auto cause = page_->cause();
    if (!cause) return fail(orrErrorInternal, "the group has failed without a cause");
    if (cause->rank < 0) return fail(cause->code, "the group has failed: {}", cause->text);
    const int where = device(cause->rank);
    return fail(cause->code, "the group has failed: rank {} on {}: {}", cause->rank,
                where < 0 ? std::string("another machine") : fmt::format("device {}", where), cause->text);
}

std::optional<Error> Group::stopped_here(std::uint64_t word) const {
    for (const auto& stream : context_.fleet().streams()) {
        if (stream->number() != ORR_FAILURE_QUEUE(word) || stream->context().node() != ORR_FAILURE_NODE(word))
            continue;
        const auto error = stream->error();
        if (error && !stream->poisoned() &&
            (stream->stopped_at() & ORR_FAILURE_INDEX(~0ull)) == ORR_FAILURE_INDEX(word))
            return Error{error->code, fmt::format("{} stopped: {}", stream->label(), error->text)};
    }
    return std::nullopt;
}

// A unit's word names the card to which, or from which, the way was lost that was first, and no link: this
// names one that went down since the group was made. A word of a queue is the queue's.
std::optional<Error> Group::lost_way(std::uint64_t va, std::uint64_t word) const {
    const bool ours = std::ranges::any_of(members_, [&](const GroupMember& one) {
        return one.slot != nullptr && (one.slot->va == va || SharedSemaphores::release_va(*one.slot) == va);
    });
    if (!unit_ || !ours || ORR_FAILURE_CODE(word) != ORR_QERR_PEER_LOST ||
        ORR_FAILURE_QUEUE(word) != ORR_FAILURE_NO_QUEUE)
        return std::nullopt;
    const std::uint32_t node = ORR_FAILURE_NODE(word);
    for (const Way& way : ways_) {
        if (way.from->node() != node && way.to->node() != node) continue;
        Context *from = way.from, *to = way.to;
        if (from->ask()) std::swap(from, to);
        if (to->ask() && !from->knows_first()) continue;
        const auto loss = from->way_loss(*to, way.number);
        if (!loss || !loss->link) continue;
        return Error{
            orrErrorPeerAccess,
            fmt::format("{} went down, by which devices {} and {} of the group met (orrery-smi links "
                        "shows ports and how often each has lost its link)",
                        umd::name_of(context_.fleet(), *loss->link), way.from->device(), way.to->device())};
    }
    return std::nullopt;
}

std::vector<Group::Way> Group::ways_between(const std::vector<Context*>& contexts) {
    std::vector<Context*> cards = contexts;
    std::ranges::sort(cards, {}, &Context::device);
    cards.erase(std::ranges::unique(cards).begin(), cards.end());
    std::vector<Way> ways;
    for (std::size_t i = 0; i < cards.size(); ++i)
        for (std::size_t k = i + 1; k < cards.size(); ++k)
            ways.push_back({cards[i], cards[k], cards[i]->way_to(*cards[k]).value_or(0)});
    return ways;
}

// A card tells the stream first, and then all that wait for it.
bool Group::will_fail(int rank, const SemaphoreSlot& slot) const {
    const std::uint64_t key = page_->queue(rank, GroupPage::Queue::kBarriers);
    return std::ranges::any_of(context_.fleet().streams(), [&](const auto& stream) {
        return queue_key(stream->context().node(), stream->number()) == key && stream->error() &&
               std::ranges::any_of(stream->promises(), [&](const SemaphorePoint& point) {
                   return point.va == slot.va && !slot.reached(point.value);
               });
    });
}

bool Group::waited_enough(int rank, std::int64_t patience_ns) {
    std::int64_t& since = doubted_ns_[static_cast<std::size_t>(rank)];
    const std::int64_t now = now_ns();
    if (since == 0) since = now;
    return now - since >= patience_ns;
}

std::int64_t Group::patience_ns(int origin, std::uint64_t word) const {
    const auto is_abroad = [](const GroupMember& one) { return one.slot == nullptr; };
    const auto has_its_card = [&](const GroupMember& one) {
        return !is_abroad(one) && one.slot->context->node() == ORR_FAILURE_NODE(word);
    };
    const bool is_here = origin >= 0 ? !is_abroad(members_[static_cast<std::size_t>(origin)])
                                     : std::ranges::none_of(members_, is_abroad) ||
                                           std::ranges::any_of(members_, has_its_card);
    if (is_here) return kTellerNs;
    const auto& leader = members_[static_cast<std::size_t>(leader_)];
    const bool tells = bridge_ == nullptr ? !has_ended(leader.process) && !page_->left(leader_)
                                          : std::ranges::any_of(edges(), [](const auto& edge) {
                                                return !edge->over() && !edge->own()->closed();
                                            });
    return tells ? kTellerAbroadNs : kPatienceNs;
}

// The failure of a stream in which a member had a barrier goes to the others by the card, with its queue.
std::optional<GroupCause> Group::cause_of_failure(int rank, const SemaphoreSlot& slot) {
    const GroupMember& member = members_[static_cast<std::size_t>(rank)];
    const std::uint64_t value = slot.value();
    if (!ORR_SEM_HAS_FAILED(value)) return std::nullopt;
    const std::uint64_t word = ORR_SEM_FAILURE(value);
    const std::uint64_t key = queue_key(ORR_FAILURE_NODE(word), ORR_FAILURE_QUEUE(word));
    int origin = -1;
    for (int other = 0; other < size() && origin < 0; ++other) {
        // What no queue did is a unit's or a way's, and the word names the card.
        if (ORR_FAILURE_QUEUE(word) == ORR_FAILURE_NO_QUEUE) {
            const auto& its = members_[static_cast<std::size_t>(other)].slot;
            if (its != nullptr && its->context->node() == ORR_FAILURE_NODE(word)) origin = other;
        } else if (page_->queue(other, GroupPage::Queue::kBarriers) == key ||
                   page_->queue(other, GroupPage::Queue::kGuard) == key)
            origin = other;
    }
    // Not Fleet::cause(): the word may have come back by another process, for which it is a stranger's.
    const auto own = stopped_here(word);
    const bool here = own.has_value();
    const bool own_process = member.slot != nullptr && member.process.get() < 0;
    if (origin < 0 && here) origin = own_process ? rank : rank_;
    // It goes with its member, who has told an earlier cause before he left.
    const bool guard = origin >= 0 && page_->queue(origin, GroupPage::Queue::kGuard) == key;
    if (guard && page_->left(origin)) return left_cause(origin);
    if (!here && !waited_enough(rank, guard ? kPatienceNs : patience_ns(origin, word))) return std::nullopt;
    if (guard) return GroupCause{orrErrorAborted, origin, "its process ended"};
    const Error error = here ? *own : context_.fleet().cause(word, true, slot.va);
    return GroupCause{error.code, origin < 0 ? rank : origin, error.text};
}

// In this order: who leaves says so first.
bool Group::lost_hold(int rank) const {
    const auto& slot = members_[static_cast<std::size_t>(rank)].slot;
    return slot != nullptr && slot->closed() && !page_->left(rank);
}

std::span<const std::unique_ptr<GroupEdge>> Group::edges() const {
    if (bridge_ == nullptr) return {};
    return bridge_->edges();
}

std::optional<GroupCause> Group::find_cause() {
    for (int rank = 0; rank < size(); ++rank) {
        if (has_ended(members_[static_cast<std::size_t>(rank)].process) && !page_->left(rank))
            return GroupCause{orrErrorAborted, rank, "its process ended"};
    }
    for (int rank = 0; rank < size(); ++rank) {
        const auto& slot = members_[static_cast<std::size_t>(rank)].slot;
        if (slot == nullptr || page_->left(rank)) continue;
        if (const auto loss = slot->context->loss()) return GroupCause{loss->code, rank, loss->text};
    }
    // Its guard is gone and its process is there: it could not finish its join, or called execve. Whose
    // stream waits for it fails for that.
    for (int rank = 0; rank < size(); ++rank) {
        if (!lost_hold(rank)) continue;
        if (!waited_enough(rank, kPatienceNs)) return std::nullopt;
        return GroupCause{orrErrorAborted, rank, "its process ended, or let go of the group"};
    }
    if (auto cause = left_behind()) return cause;
    for (int rank = 0; rank < size(); ++rank) {
        const auto& slot = members_[static_cast<std::size_t>(rank)].slot;
        if (slot == nullptr) continue;
        if (auto cause = cause_of_failure(rank, *slot)) return cause;
    }
    for (const auto& edge : edges()) {
        if (auto cause = cause_of_failure(edge->peer(), *edge->own())) return cause;
    }
    return std::nullopt;
}

// By the tree a stream learns it from the semaphore for which it waits; a unit only knows that one has not
// come.
std::optional<GroupCause> Group::left_behind() {
    std::uint64_t last = 0;
    {
        const std::lock_guard lock(barriers_mutex_);
        last = 2 * barriers_;
    }
    if (!unit_ || last == 0 || own().reached(last)) return std::nullopt;
    for (int rank = 0; rank < size(); ++rank) {
        if (page_->left(rank) && !members_[static_cast<std::size_t>(rank)].slot->reached(last))
            return left_cause(rank);
    }
    return std::nullopt;
}

void Group::fail_all(const GroupCause& cause) {
    bool all = true;
    const auto end = [&](Context& there, std::uint64_t va) {
        all &= context_.fleet().fail_semaphore(there, va, ORR_QERR_ABORTED, name_of(cause.rank),
                                               Error{cause.code, cause.text});
    };
    for (int rank = 0; rank < size(); ++rank) {
        if (members_[static_cast<std::size_t>(rank)].slot == nullptr) continue;
        const SemaphoreSlot& slot = *members_[static_cast<std::size_t>(rank)].slot;
        if (slot.context->lost()) continue;
        if (!slot.failed()) end(*slot.context, slot.va);
        if (at_unit(rank) && !ORR_SEM_HAS_FAILED(load_semaphore(SharedSemaphores::page(slot).release)))
            end(*slot.context, SharedSemaphores::release_va(slot));
    }
    for (const auto& edge : edges()) {
        if (!edge->context().lost() && !edge->own()->failed()) end(edge->context(), edge->own()->va);
    }
    all_failed_ = all;
}

void Group::look() {
    const std::unique_lock lock(look_mutex_, std::try_to_lock);
    if (!lock || all_failed_) return;
    if (!page_->cause()) {
        // The others are reached by it only.
        const auto& leader = members_[static_cast<std::size_t>(leader_)];
        if (has_ended(leader.process) || page_->left(leader_)) page_->ask_nobody();
        if (const auto found = find_cause()) page_->tell(rank_, *found);
        // Who waits in a stream only waits for no decision.
        if (!page_->cause() && page_->proposed()) {
            if (proposed_ns_ == 0) proposed_ns_ = now_ns();
            if (now_ns() - proposed_ns_ >= kGroupDecideNs) page_->ask_nobody();
        }
    }
    if (const auto cause = page_->cause()) fail_all(*cause);
}

std::optional<GroupCause> Group::cause() {
    const std::int64_t start = now_ns();
    while (true) {
        context_.fleet().watch();
        look();
        (void)page_->settle([this] { look(); });
        if (auto cause = page_->cause()) return cause;
        // Then there will be one.
        bool any = false;
        for (int rank = 0; rank < size(); ++rank) {
            const auto& slot = members_[static_cast<std::size_t>(rank)].slot;
            any |= slot != nullptr && (slot->failed() || lost_hold(rank) || will_fail(rank, *slot));
        }
        for (const auto& edge : edges())
            any |= edge->own()->failed();
        if (!any || now_ns() - start > kCauseNs) return std::nullopt;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

StepNote Group::step_of(GroupPage::Op op, std::uint64_t round, int device) const {
    const auto [kind, name] = op == GroupPage::Op::kBroadcast   ? std::pair(orrProfStepBroadcast, "broadcast")
                              : op == GroupPage::Op::kAllGather ? std::pair(orrProfStepGather, "gather")
                                                                : std::pair(orrProfStepBarrier, "barrier");
    StepNote note;
    note.step = make_step(kind, orrProfOwnerGroup, owner_, static_cast<std::uint64_t>(rank_), device);
    note.step.round = round;
    note.step.members = static_cast<std::uint32_t>(size());
    note.name = name;
    note.marks = StepMarks::here();
    return note;
}

Status Group::exchange(GroupPage::Call call, const std::function<void(std::uint64_t)>& take) {
    std::unique_lock lock(calls_mutex_, std::try_to_lock);
    if (!lock) {
        return fail(orrErrorInvalidValue,
                    "another thread is in a call on this member of the group: calls have one order");
    }
    look();
    call.rank = rank_;
    call.step = ++step_;
    const auto looks = [this] {
        context_.fleet().watch();
        look();
    };
    const std::int64_t begin_ns = steps_wanted() ? now_ns() : 0;
    switch (page_->exchange(call, looks, gone_)) {
        case GroupPage::Outcome::kDone:
            take(call.step);
            lock.unlock();  // who is told may call the API
            if (begin_ns != 0) tell_host_step(step_of(call.op, call.step, -1), begin_ns);
            return {};
        case GroupPage::Outcome::kGone:
            return fail(orrErrorInvalidHandle, "the group was destroyed while this thread waited in it");
        case GroupPage::Outcome::kFailed:
            break;
    }
    look();  // streams that wait learn it too
    return failed();
}

Status Group::barrier(std::uint64_t limit_ns) {
    GroupPage::Call call;
    call.limit_ns = limit_ns;
    return exchange(call, [](std::uint64_t) {});
}

Status Group::broadcast(std::span<std::byte> data, int root, std::uint64_t limit_ns) {
    GroupPage::Call call;
    call.op = GroupPage::Op::kBroadcast;
    call.root = root;
    call.bytes = data.size();
    if (root == rank_) call.give = data;
    call.limit_ns = limit_ns;
    return exchange(call, [&](std::uint64_t step) {
        if (root != rank_) page_->read(root, step, data);
    });
}

Status Group::all_gather(std::span<std::byte> all, std::span<const std::byte> own, std::uint64_t limit_ns) {
    GroupPage::Call call;
    call.op = GroupPage::Op::kAllGather;
    call.bytes = own.size();
    call.give = own;
    call.limit_ns = limit_ns;
    return exchange(call, [&](std::uint64_t step) {
        for (int rank = 0; rank < size(); ++rank)
            page_->read(rank, step, all.subspan(static_cast<std::size_t>(rank) * own.size(), own.size()));
    });
}

Result<SemaphorePoint> Group::point(const SemaphoreSlot& slot, std::uint64_t value,
                                    const std::shared_ptr<Stream>& stream, const std::string& name) {
    if (slot.context == &stream->context()) return SemaphorePoint{slot.va, value};
    return bring_over_link(*slot.context, slot.va, value, stream, name);
}

Result<SemaphorePoint> Group::point(int rank, std::uint64_t value, const std::shared_ptr<Stream>& stream) {
    return point(*members_[static_cast<std::size_t>(rank)].slot, value, stream, name_of(rank));
}

Status Group::signal_edges(bool up, std::uint64_t k, std::uint64_t value, std::vector<orr_packet>& packets) {
    for (const auto& edge : edges()) {
        if (edge->up() != up) continue;
        const orr_packet signal = make_semaphore(ORR_PKT_SIGNAL, edge->theirs(), k);
        if (edge->signals() == nullptr) {
            packets.push_back(signal);
            continue;
        }
        ORR_TRY(when, point(own(), value, edge->signals(), name_of(rank_)));
        const orr_packet both[] = {make_wait(when->va, when->value, 0), signal};
        ORR_TRY(sent, edge->signals()->submit(both, OpNote{Op::kSignal, nullptr}));
    }
    return {};
}

Status Group::await_edges(bool up, std::uint64_t k, std::uint64_t limit_ns,
                          const std::shared_ptr<Stream>& stream, std::vector<orr_packet>& packets) {
    for (const auto& edge : edges()) {
        if (edge->up() != up) continue;
        ORR_TRY(when, point(*edge->own(), k, stream, name_of(edge->peer())));
        packets.push_back(make_wait(when->va, when->value, limit_ns));
    }
    return {};
}

Status Group::barrier(const std::shared_ptr<Stream>& stream, std::uint64_t limit_ns) {
    if (&stream->context() != &context_) {
        return fail(orrErrorInvalidValue, "{} is not on device {}, with which this member joined its group",
                    stream->label(), context_.device());
    }
    const int above = members_[static_cast<std::size_t>(rank_)].above;
    while (true) {
        look();
        for (int rank = 0; rank < size(); ++rank) {
            if (rank != rank_ && page_->left(rank)) page_->tell(rank_, left_cause(rank));
        }
        if (page_->settle([this] { look(); })) {
            look();
            return failed();
        }
        // Nobody is held up while room is waited for.
        const std::size_t most = below_.size() + 5 + 2 * edges().size();
        if (auto room = stream->make_room(most); !room) return give_up(std::move(room.error()));
        std::uint64_t number = 0;
        {
            const std::lock_guard lock(barriers_mutex_);
            number = barriers_ + 1;
        }
        std::vector<orr_packet> packets;
        for (const int below : below_) {
            const auto come = point(below, 2 * number - 1, stream);
            if (!come) return give_up(come.error());
            packets.push_back(make_wait(come->va, come->value, limit_ns));
        }
        const std::uint64_t va = own().va;
        if (auto all = await_edges(false, number, limit_ns, stream, packets); !all)
            return give_up(std::move(all.error()));
        if (at_unit(rank_)) {
            packets.push_back(make_semaphore(ORR_PKT_SIGNAL, barrier_va_, number));
            packets.push_back(make_wait(SharedSemaphores::release_va(own()), number, limit_ns));
        } else if (above >= 0) {
            packets.push_back(make_semaphore(ORR_PKT_SIGNAL, va, 2 * number - 1));
            const auto go = point(above, 2 * number, stream);
            if (!go) return give_up(go.error());
            packets.push_back(make_wait(go->va, go->value, limit_ns));
        } else if (!edges().empty()) {
            packets.push_back(make_semaphore(ORR_PKT_SIGNAL, va, 2 * number - 1));
            auto all = signal_edges(true, number, 2 * number - 1, packets);
            if (all) all = await_edges(true, number, limit_ns, stream, packets);
            if (all) all = signal_edges(false, number, 2 * number, packets);
            if (!all) return give_up(std::move(all.error()));
        }
        packets.push_back(make_semaphore(ORR_PKT_SIGNAL, va, 2 * number));

        std::unique_lock lock(barriers_mutex_);
        if (gone_.load()) return fail(orrErrorInvalidHandle, "the group was destroyed meanwhile");
        if (barriers_ + 1 != number) continue;  // another thread was first
        // Else it could come before the last one, which it would stand for.
        const bool behind_another = last_stream_ != nullptr && last_stream_ != stream;
        if (behind_another) packets.insert(packets.begin(), make_wait(va, 2 * barriers_, limit_ns));
        std::optional<StepNote> step;
        if (steps_wanted()) {
            step = step_of(GroupPage::Op::kBarrier, number, context_.device());
            step->from = behind_another ? 1 : 0;
            step->to = packets.size();
        }
        seat_.own->slot->claim();
        page_->set_queue(rank_, GroupPage::Queue::kBarriers, queue_key(context_.node(), stream->number()));
        const auto index = stream->submit_now(
            packets, step ? std::span<const StepNote>(&*step, 1) : std::span<const StepNote>{});
        if (!index) {
            lock.unlock();
            return give_up(index.error());
        }
        if (*index == 0) continue;
        seat_.own->slot->promise(2 * number);
        barriers_ = number;
        last_stream_ = stream;
        return {};
    }
}

std::unexpected<Error> Group::give_up(Error error) {
    (void)cause();  // the first one, which may be why it failed
    if (!gone_.load()) page_->tell(rank_, {error.code, rank_, error.text});
    look();
    return std::unexpected(std::move(error));
}

void Group::abort(const std::string& why) {
    (void)cause();  // the first one
    page_->tell(rank_,
                {orrErrorAborted, rank_,
                 why.empty() ? std::string("it called orrGroupAbort") : "it called orrGroupAbort: " + why});
    (void)page_->settle([this] { look(); });
    look();
}

void Group::leave() {
    gone_.store(true);
    (void)cause();  // the first one
    bool done = false;
    {
        const std::lock_guard lock(barriers_mutex_);
        done = barriers_ == 0 || own().reached(2 * barriers_);
        if (!done) {
            page_->tell(rank_, {orrErrorAborted, rank_,
                                "it destroyed its group before its last barrier in a stream was done"});
        }
        last_stream_.reset();
    }
    look();
    page_->leave(rank_);
    if (bridge_ != nullptr) {
        // Its thread looks at this group, and must not be the last that has it.
        bridge_->stop();
        bridge_->flush();
    }
    // Whoever waits for it at its card's unit is told at once, whatever else this process does.
    if (done) context_.shared_semaphores().drop_barrier(*seat_.own->slot);
}

}  // namespace orrery::umd
