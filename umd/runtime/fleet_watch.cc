// What is looked after while somebody of the process waits: cards that went away, signals that do not arrive.
#include <orrery/fw/failure.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/deadlock_search.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/patience.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr std::int64_t kBetweenNs = 20'000'000;
constexpr std::uint64_t kAll = ~std::uint64_t{0};  // packets
constexpr const char* kSomeLink = "the link between them";

struct GiveBack {
    std::atomic<bool>& taken;
    ~GiveBack() { taken.store(false); }
};

}  // namespace

void Fleet::watch() {
    // One at a time, also of this thread: signalling may have to wait.
    if (now_ns() - watched_ns_.load() < kBetweenNs || watching_.exchange(true)) return;
    const GiveBack later{watching_};
    const auto all = streams();
    look_at_cards(all);
    for (const auto& stream : all) {
        if (!stream->error()) {
            look_at_flight(*stream);
            continue;
        }
        stream->end_relays();
        end_promises(*stream);
    }
    gangs_.watch();
    look_at_orphans();
    look_at_watched();
    watched_ns_.store(now_ns());
}

// What became of a stream says nothing of its card: a healthy one's may have stopped with another card's
// loss.
void Fleet::look_at_cards(const std::vector<std::shared_ptr<Stream>>& all) {
    for (Context* context : contexts()) {
        const auto of_card = [&](const auto& stream) { return &stream->context() == context; };
        const auto one =
            std::ranges::find_if(all, [&](const auto& stream) { return of_card(stream) && stream->works(); });
        if (one != all.end())
            (void)(*one)->ask();
        else if (!context->lost())
            (void)context->ask();
        const auto loss = context->loss();
        if (!loss) continue;
        for (const auto& stream : all) {
            if (of_card(stream) && stream->works()) stream->stop(*loss);
        }
    }
}

// Of a stream that works: what its queue is done with and what will not arrive.
void Fleet::look_at_flight(Stream& stream) {
    Context& from = stream.context();
    for (Context* to : stream.flight().destinations()) {
        auto loss = to->loss();
        const std::uint64_t executed = stream.executed();
        std::vector<FlightSignal> gone;
        if (loss) {
            gone = stream.flight().lose(*to, executed);
        } else {
            WayLook look = ways_.look(from, *to);
            // After the way: what is sent later goes by it.
            const std::uint64_t sent = stream.sent();
            gone = stream.flight().doubt(*to, executed, now_ns(), look);
            if (look.way.number) stream.flight().set_way(*to, *look.way.number, sent, now_ns());
            ways_.send_probe(from, *to, look);
        }
        if (gone.empty()) continue;
        const auto link = loss ? std::nullopt : lost_link(from, *to, gone.front().way);
        // Then it may be the card, since it was asked.
        if (!loss && !link) loss = to->ask();
        const Error error =
            loss ? Error{loss->code, fmt::format("what {} wrote to device {} did not arrive there: {}",
                                                 stream.label(), to->device(), loss->text)}
                 : Error{orrErrorPeerAccess,
                         fmt::format("what {} sent to device {} was lost, as {} went down (orrery-smi shows "
                                     "links)",
                                     stream.label(), to->device(), link.value_or(kSomeLink))};
        for (const FlightSignal& signal : gone) {
            if (!loss) (void)fail_semaphore(*to, signal.slot->va, ORR_QERR_PEER_LOST, stream.label(), error);
        }
        if (std::ranges::any_of(gone, &FlightSignal::landing)) stream.stop(error);
    }
}

// A card tells those of its own, and those beyond links that are up. This is for the others.
void Fleet::end_promises(Stream& stream) {
    if (stream.settled()) return;
    const std::uint64_t end = stream.submitted(), executed = stream.executed();
    Context& from = stream.context();
    const Error error = stream.error().value_or(Error{});
    const bool lost = from.lost();
    const std::uint64_t code = lost ? ORR_QERR_LOST : ORR_QERR_PEER_LOST;
    bool all = true;
    std::map<Context*, std::optional<std::uint64_t>> ways;
    const auto way_to = [&](Context* there) {
        const auto [known, made] = ways.try_emplace(there);
        if (made && !lost && !there->lost()) known->second = from.way_to(*there);
        return known->second;
    };
    // Also what its queue will never execute: the write before it may have gone, and the card that would fail
    // it may have, too.
    std::set<Context*> under_way;
    for (const FlightSignal& signal : stream.flight().under_way(kAll))
        under_way.insert(signal.slot->context);
    for (Context* there : under_way) {
        all = false;  // for another look
        if (there->lost()) {
            (void)stream.flight().lose(*there, kAll);
            continue;
        }
        WayLook look = ways_.look(from, *there);
        for (const FlightSignal& signal : stream.flight().doubt(*there, kAll, now_ns(), look))
            (void)fail_semaphore(*there, signal.slot->va, code, stream.label(), error);
        if (!lost) ways_.send_probe(from, *there, look);
    }
    for (const SemaphorePoint& point : stream.promises()) {
        Context* there = owner(point.va);
        if (there == nullptr || there == &from || there->lost() || reached(point)) continue;
        // A failure must not overtake what has been signalled.
        all &= !way_to(there) && !stream.flight().under_way_to(point.va, executed) &&
               fail_semaphore(*there, point.va, code, stream.label(), error);
    }
    if (all) stream.settle(end);
}

void Fleet::look_at_orphans() {
    std::vector<Orphans> left;
    {
        const std::lock_guard lock(mutex_);
        if (orphans_.empty()) return;
        left.swap(orphans_);
        sorting_orphans_ = true;
    }
    for (Orphans& orphans : left) {
        std::erase_if(orphans.signals, [&](FlightSignal& signal) {
            Context& there = *signal.slot->context;
            if (signal.over() || there.lost()) return true;
            WayLook look = ways_.look(*orphans.from, there);
            const auto loss = orphans.from->loss();
            if (signal.over()) return true;
            const bool gone = look.never_comes(signal, now_ns());
            if (!loss) ways_.send_probe(*orphans.from, there, look);
            if (!gone) return false;
            const auto link = lost_link(*orphans.from, there, signal.way);
            if (!loss && !link && there.ask()) return true;
            const Error error =
                loss.value_or(Error{orrErrorPeerAccess, link.value_or(kSomeLink) + " went down"});
            return fail_semaphore(there, signal.slot->va, loss ? ORR_QERR_LOST : ORR_QERR_PEER_LOST,
                                  orphans.who, error);
        });
    }
    const std::lock_guard lock(mutex_);
    sorting_orphans_ = false;
    for (Orphans& orphans : left) {
        if (!orphans.signals.empty()) orphans_.push_back(std::move(orphans));
    }
}

void Fleet::look_at_watched() {
    if (!any_watched_.load(std::memory_order_acquire)) return;
    std::vector<std::weak_ptr<Watched>> all;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
        any_watched_.store(!watched_.empty(), std::memory_order_release);
        all = watched_;
    }
    for (const auto& weak : all) {
        if (const auto watched = weak.lock()) watched->look();
    }
}

Status Fleet::wait_quiet(Context& context) {
    const std::int64_t limit = now_ns() + landing_patience_ns();
    const auto busy = [&] {
        const std::lock_guard lock(mutex_);
        return sorting_orphans_ || std::ranges::any_of(orphans_, [&](const Orphans& orphans) {
                   return std::ranges::any_of(orphans.signals, [&](const FlightSignal& signal) {
                       return (orphans.from == &context || signal.slot->context == &context) &&
                              signal.landing && !signal.over();
                   });
               });
    };
    while (busy()) {
        watch();
        if (now_ns() >= limit) {
            return fail(orrErrorPeerAccess,
                        "what a stream that was destroyed wrote from or to device {} is still on its way: "
                        "nothing was "
                        "freed. Is the link up (orrery-smi)?",
                        context.device());
        }
        std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
    return {};
}

bool Fleet::fail_semaphore(Context& there, std::uint64_t va, std::uint64_t code, const std::string& who,
                           const Error& error) {
    {
        const std::lock_guard lock(told_mutex_);
        if (failed_.contains(va)) return true;
    }
    const orr_packet packet = make_fail(va, code);
    const bool elsewhere = there.shared_semaphores().elsewhere(va);
    while (true) {
        auto signals = there.signal_stream(elsewhere);
        if (!signals) return there.lost();
        // Who asks for the cause finds it.
        const auto told = [&](std::uint64_t index) {
            const std::lock_guard lock(told_mutex_);
            told_[{there.node(), (*signals)->number(), index}] = {index, error, who};
            failed_.insert(va);
        };
        if ((*signals)->submit_told(packet, OpNote{Op::kSignal, nullptr}, told)) return true;
        if (!(*signals)->error() || there.lost()) break;
    }
    const std::lock_guard lock(told_mutex_);
    failed_.erase(va);
    return there.lost();
}

void Fleet::forget_semaphore(std::uint64_t va) {
    const std::lock_guard lock(told_mutex_);
    failed_.erase(va);
}

}  // namespace orrery::umd
