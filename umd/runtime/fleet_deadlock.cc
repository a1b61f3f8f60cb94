// Cycles of waits that no card's firmware can see: over cards, which this process reads out of the rings of
// its streams, and over processes, for which it asks the driver.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <ranges>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/deadlock_search.h"
#include "umd/runtime/fleet.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr const char* kWayOut =
    " nothing of it has been stopped: signal one of them from the host (orrSemaphoreSignal) or from another "
    "stream, or abort a stream";

}  // namespace

bool Fleet::is_shared(std::uint64_t va) const {
    return any_shared() && std::ranges::any_of(contexts(), [&](Context* context) {
               return context->shared_semaphores().value_of(va).has_value();
           });
}

std::string Fleet::describe_semaphore(std::uint64_t va) const {
    const Context* context = owner(va);
    return context != nullptr ? context->describe_semaphore(va) : fmt::format("the semaphore at {:#x}", va);
}

Fleet::Cycles Fleet::search() const {
    const auto all = streams();
    std::vector<QueueView> views;
    views.reserve(all.size());
    for (const auto& stream : all) {
        views.push_back(stream->view());
        // Of what other processes signal too this one's rings do not tell: the driver is asked.
        const SemaphorePoint& wanted = views.back().wanted;
        if (views.back().blocked && (reached(wanted) || is_shared(wanted.va))) views.back().blocked = false;
    }
    // What stands still from its first to its second look stood still at one moment for all.
    for (std::size_t i = 0; i < all.size(); ++i) {
        if (!views[i].blocked) continue;
        const QueueView again = all[i]->view();
        views[i].blocked = again.blocked && again.at == views[i].at && !reached(views[i].wanted);
    }

    Cycles found;
    const auto stuck = find_stuck(views);
    for (std::size_t from = 0; from < views.size(); ++from) {
        if (!stuck[from]) continue;
        const auto cycle = find_cycle(views, stuck, from);
        Cycle& told = found[all[from].get()];
        told.text = fmt::format("deadlock of {} stream{}{}:", cycle.size(), cycle.size() == 1 ? "" : "s",
                                several() ? " over cards" : "");
        for (std::size_t i = 0; i < cycle.size(); ++i) {
            const Stream& one = *all[cycle[i]];
            const SemaphorePoint& wanted = views[cycle[i]].wanted;
            told.text += fmt::format(" {} waits for {} to reach {}, which {} would signal later;",
                                     one.label(), one.context().describe_semaphore(wanted.va), wanted.value,
                                     all[cycle[(i + 1) % cycle.size()]]->label());
            told.stands.emplace_back(all[cycle[i]], views[cycle[i]].at);
        }
        told.stands.emplace_back(all[from], views[from].at);
        told.text += kWayOut;
    }
    return found;
}

std::optional<Error> Fleet::own_deadlock(const Stream& stuck) {
    const std::unique_lock lock(search_mutex_, std::try_to_lock);
    if (!lock) return std::nullopt;  // somebody searches: the next time around
    if (now_ns() - searched_ns_ >= AskingTurns::kBetweenNs) {
        const auto old = std::exchange(cycles_, search());
        for (auto& [waiting, cycle] : cycles_) {
            const auto before = old.find(waiting);
            cycle.twice = before != old.end() && before->second.text == cycle.text;
        }
        searched_ns_ = now_ns();
    }
    const auto found = cycles_.find(&stuck);
    if (found == cycles_.end() || !found->second.twice) return std::nullopt;
    // It was a moment ago.
    for (const auto& [weak, at] : found->second.stands) {
        const auto stream = weak.lock();
        if (stream == nullptr) return std::nullopt;
        const QueueView now = stream->view();
        if (!now.blocked || now.at != at || reached(now.wanted)) return std::nullopt;
    }
    return Error{orrErrorDeadlock, found->second.text};
}

std::string Fleet::describe_cycle(const WaitCycle& cycle) const {
    const auto all = streams();
    const auto name_of = [](const drm_orr_cycle_edge& edge) {
        const char* name = reinterpret_cast<const char*>(edge.name);
        return std::string(name, ::strnlen(name, sizeof(edge.name)));
    };
    const auto stream_of = [&](const drm_orr_cycle_edge& edge) -> std::string {
        if (edge.node != 0)
            return fmt::format("{} of another machine (card {})",
                               edge.name[0] == 0 ? "a stream" : fmt::format("stream '{}'", name_of(edge)),
                               edge.node);
        if (edge.known == 0) return "a stream of another user";
        const auto found = std::ranges::find_if(all, [&](const auto& stream) {
            return stream->context().uid() == edge.device_uid && stream->number() == edge.queue;
        });
        if (edge.semaphore != 0 && found != all.end()) return (*found)->label();
        std::string text = fmt::format("stream '{}' of process {}", name_of(edge), edge.pid);
        for (const Context* context : contexts()) {
            if (context->uid() == edge.device_uid)
                return text + fmt::format(" on device {}", context->device());
        }
        return text + fmt::format(" on card {:#x}", edge.device_uid);
    };
    const auto wait_of = [&](const drm_orr_cycle_edge& edge) {
        // The address of this process, whichever of the two is its own.
        const std::uint64_t va = edge.semaphore != 0 ? edge.semaphore : edge.signal;
        return fmt::format(" {} waits for {}{}", stream_of(edge),
                           va != 0 ? describe_semaphore(va) : "a semaphore",
                           edge.wanted != 0 ? fmt::format(" to reach {}", edge.wanted) : "");
    };
    const auto all_of = [&](auto what) {
        return std::ranges::all_of(cycle.edges | std::views::drop(cycle.lead), what);
    };
    const bool own = all_of([](const drm_orr_cycle_edge& edge) { return edge.semaphore != 0; });
    const bool here = all_of([](const drm_orr_cycle_edge& edge) { return edge.node == 0; });
    const std::size_t count = cycle.edges.size() - cycle.lead;
    // Nobody here is in it.
    if (count == 1 && !here && cycle.lead > 0) {
        const drm_orr_cycle_edge& last = cycle.edges[cycle.lead - 1];
        return fmt::format(
            "deadlock of streams of other machines:{}, which {} would signal later, who waits in "
            "a circle there;{}",
            wait_of(last), stream_of(cycle.edges.back()), kWayOut);
    }
    std::string text = fmt::format("deadlock of {} stream{}{}:", count, count == 1 ? "" : "s",
                                   own    ? ""
                                   : here ? " of several processes"
                                          : " of several machines");
    for (std::size_t i = cycle.lead; i < cycle.edges.size(); ++i) {
        const drm_orr_cycle_edge& next = cycle.edges[i + 1 < cycle.edges.size() ? i + 1 : cycle.lead];
        text += fmt::format("{}, which {} would signal later;", wait_of(cycle.edges[i]), stream_of(next));
    }
    return text + kWayOut;
}

std::optional<std::string> Fleet::driver_deadlock(const AskingTurns::Who& who, Context& context,
                                                  const Waiter& waiter) {
    const std::unique_lock lock(ask_mutex_, std::try_to_lock);
    if (!lock || !turns_.begin(who, now_ns())) return std::nullopt;
    const auto cycle = context.winsys().cycle(waiter);
    const bool any = cycle && cycle->lead < cycle->edges.size();
    if (!turns_.end(who, now_ns(), any ? cycle->stamp : 0)) return std::nullopt;
    return describe_cycle(*cycle);
}

std::optional<Error> Fleet::deadlock(const Stream& waiting) {
    // On one card the firmware finds it.
    if (several()) {
        if (auto found = own_deadlock(waiting)) return found;
    }
    if (!any_shared()) return std::nullopt;
    const auto queue = waiting.hardware_number();
    if (!queue) return std::nullopt;
    auto found = driver_deadlock({&waiting, 0}, waiting.context(), {.queue = *queue});
    return found.transform([](std::string& text) { return Error{orrErrorDeadlock, std::move(text)}; });
}

std::optional<Error> Fleet::deadlock(const SemaphoreSlot& slot, std::uint64_t value) {
    // The driver reads the rings of the whole machine for it.
    if (!any_shared()) return std::nullopt;
    auto found = driver_deadlock({&slot, value}, *slot.context, {.semaphore = slot.va, .value = value});
    return found.transform([&](const std::string& text) {
        return Error{orrErrorDeadlock, fmt::format("only who waits in a circle would bring {} to {}: {}",
                                                   slot.context->describe_semaphore(slot.va), value, text)};
    });
}

}  // namespace orrery::umd
