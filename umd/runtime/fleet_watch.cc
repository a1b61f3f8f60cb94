// What is looked after while somebody of the process waits: cards that went away, and cycles over cards.
#include <orrery/fw/failure.h>
#include <time.h>

#include <algorithm>

#include "umd/runtime/context.h"
#include "umd/runtime/deadlock_search.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::int64_t kBetweenNs = 20'000'000;

std::int64_t now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

void Fleet::watch() {
    // One at a time, also of this thread: signalling may have to wait.
    if (now_ns() - watched_ns_.load() < kBetweenNs || watching_.exchange(true)) return;
    const auto all = streams();
    for (const Context* context : contexts()) {
        const auto of_card = [&](const auto& stream) { return &stream->context() == context; };
        const auto one = std::ranges::find_if(
            all, [&](const auto& stream) { return of_card(stream) && !stream->error(); });
        const auto gone = one == all.end() ? std::nullopt : (*one)->ask();
        if (!gone || gone->code != orrErrorDeviceLost) continue;
        for (const auto& stream : all) {
            if (of_card(stream)) stream->stop(*gone);
        }
    }
    for (const auto& stream : all) {
        const auto error = stream->error();
        if (error) end_promises(*stream, error->code == orrErrorDeviceLost);
    }
    watched_ns_.store(now_ns());
    watching_.store(false);
}

// A card tells those of its own, and those beyond links that are up. This is for the others.
void Fleet::end_promises(Stream& stream, bool lost) {
    if (stream.promises_ended()) return;
    const Error error = stream.error().value_or(Error{});
    // What has been signalled is on its way, unless the card is gone.
    for (const SemaphorePoint& point : stream.promises(lost)) {
        Context* there = owner(point.va);
        if (there == nullptr || there == &stream.context() || reached(point)) continue;
        fail_semaphore(*there, point.va, lost ? ORR_QERR_LOST : ORR_QERR_PEER_LOST, stream.label(), error);
    }
}

void Fleet::fail_semaphore(Context& there, std::uint64_t va, std::uint64_t code, std::string who,
                           const Error& error) {
    auto signals = there.signal_stream();
    if (!signals) return;  // it has no waiters either then
    const orr_packet packet = make_fail(va, code);
    const std::lock_guard lock(told_mutex_);  // who asks for the cause finds it
    const auto sent = (*signals)->submit({&packet, 1}, OpNote{Op::kSignal, nullptr});
    if (sent) told_[{there.node(), (*signals)->number(), *sent - 1}] = {*sent - 1, error, std::move(who)};
}

std::optional<Error> Fleet::deadlock(const Stream& waiting) const {
    if (!several()) return std::nullopt;  // then the firmware finds it
    const auto all = streams();
    std::vector<QueueView> views;
    views.reserve(all.size());
    for (const auto& stream : all) {
        views.push_back(stream->view());
        if (views.back().blocked && reached(views.back().wanted)) views.back().blocked = false;
    }
    // What stands still from its first to its second look stood still at one moment for all.
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!views[i].blocked) continue;
        const QueueView again = all[i]->view();
        views[i].blocked = again.blocked && again.at == views[i].at && !reached(views[i].wanted);
    }
    std::size_t from = 0;
    while (from < all.size() && all[from].get() != &waiting)
        ++from;
    const auto cycle = find_cycle(views, from);
    if (cycle.empty()) return std::nullopt;
    std::string text = fmt::format("deadlock of {} streams over cards:", cycle.size());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
        const Stream& one = *all[cycle[i]];
        const SemaphorePoint& wanted = views[cycle[i]].wanted;
        text += fmt::format(" {} waits for {} to reach {}, which {} would signal later;", one.label(),
                            one.context().describe_semaphore(wanted.va), wanted.value,
                            all[cycle[(i + 1) % cycle.size()]]->label());
    }
    text +=
        " nothing of it has been stopped: signal one of them from the host (orrSemaphoreSignal) or from "
        "another stream, or abort a stream";
    return Error{orrErrorDeadlock, std::move(text)};
}

}  // namespace orrery::umd
