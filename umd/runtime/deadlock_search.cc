#include "umd/runtime/deadlock_search.h"

#include <algorithm>

namespace orrery::umd {
namespace {

bool helps(const std::vector<SemaphorePoint>& signals, const SemaphorePoint& wanted) {
    return std::ranges::any_of(
        signals, [&](const SemaphorePoint& s) { return s.va == wanted.va && s.value >= wanted.value; });
}

// Stuck for good: somebody of the stuck ones would signal it, and nobody else can.
bool stays(std::span<const QueueView> queues, const std::vector<bool>& stuck, std::size_t queue) {
    const SemaphorePoint& wanted = queues[queue].wanted;
    bool any = false;
    for (std::size_t other = 0; other < queues.size(); ++other) {
        if (helps(queues[other].on_way, wanted)) return false;
        if (!helps(queues[other].later, wanted)) continue;
        if (!stuck[other]) return false;
        any = true;
    }
    return any;
}

}  // namespace

std::vector<bool> find_stuck(std::span<const QueueView> queues) {
    std::vector<bool> stuck(queues.size());
    for (std::size_t i = 0; i < queues.size(); ++i)
        stuck[i] = queues[i].blocked;
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t i = 0; i < queues.size(); ++i) {
            if (!stuck[i] || stays(queues, stuck, i)) continue;
            stuck[i] = false;
            changed = true;
        }
    }
    return stuck;
}

std::vector<std::size_t> find_cycle(std::span<const QueueView> queues, const std::vector<bool>& stuck,
                                    std::size_t from) {
    if (from >= queues.size() || !stuck[from]) return {};
    // Each stuck queue has a stuck signaller: following them comes round.
    std::vector<std::size_t> path;
    for (std::size_t at = from;;) {
        const auto seen = std::ranges::find(path, at);
        if (seen != path.end()) return {seen, path.end()};
        path.push_back(at);
        for (std::size_t next = 0; next < queues.size(); ++next) {
            if (!stuck[next] || !helps(queues[next].later, queues[at].wanted)) continue;
            at = next;
            break;
        }
    }
}

}  // namespace orrery::umd
