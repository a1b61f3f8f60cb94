#include "umd/runtime/way_watch.h"

#include <orrery/fw/packet.h>

#include "umd/runtime/context.h"
#include "umd/runtime/flight.h"
#include "umd/runtime/memory.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/semaphore.h"

namespace orrery::umd {
namespace {

// Of drivers that do not say when what was on a link is over.
constexpr std::int64_t kPatienceNs = 250'000'000;

bool is_before(std::uint32_t version, std::uint32_t other) {
    return static_cast<std::int32_t>(other - version) > 0;
}

}  // namespace

bool WayLook::never_comes(FlightSignal& signal, std::int64_t now_ns) {
    if (way.tells && !signal.latest) signal.latest = way.version;
    if (signal.comes_by(way.number)) return false;
    if (!way.tells) return signal.given_up(now_ns, kPatienceNs);
    if (way.version == 0) return true;
    if (is_before(*signal.latest, way.settled)) return true;
    if (!way.number) return way.settled == way.version;
    if (signal.probe == 0) signal.probe = next;
    wanted |= signal.probe >= next;
    return passed >= signal.probe;
}

WayLook WayWatch::look(const Context& from, const Context& to) {
    const std::lock_guard lock(mutex_);
    const auto known = probes_.find({&from, &to});
    // In this order: it came by the way that was there before it was sent, and still is.
    const bool came = known != probes_.end() && known->second.sent > known->second.passed &&
                      known->second.slot->reached(known->second.sent);
    WayLook look;
    look.way = from.lost() ? to.way_now(from) : from.way_now(to);
    if (from.lost()) look.way.number = {};
    if (known == probes_.end()) return look;
    Probe& probe = known->second;
    if (came && look.way.number == probe.way) probe.passed = probe.sent;
    look.next = probe.sent + 1;
    look.passed = probe.passed;
    return look;
}

void WayWatch::send_probe(Context& from, Context& to, const WayLook& look) {
    if (!look.way.number) return;
    const std::lock_guard lock(mutex_);
    Probe& probe = probes_[{&from, &to}];
    const bool broken = probe.slot != nullptr && probe.slot->failed();
    const bool under_way = probe.sent > probe.passed;
    if (under_way ? probe.way == *look.way.number && !broken : !look.wanted) return;
    if (probe.slot == nullptr || broken) {
        auto slot = to.semaphores().take(true);
        if (!slot || !to.memory().share_block(*(*slot)->block, from.device())) return;
        probe.slot = *std::move(slot);
    }
    probe.way = *look.way.number;
    if (!from.signal(make_semaphore(ORR_PKT_SIGNAL, probe.slot->va, probe.sent + 1))) return;
    probe.slot->last = ++probe.sent;
}

void WayWatch::forget(const Context& card) {
    const std::lock_guard lock(mutex_);
    std::erase_if(probes_, [&](const auto& entry) {
        return entry.first.first == &card || entry.first.second == &card;
    });
}

}  // namespace orrery::umd
