#include "umd/runtime/way_watch.h"

#include <fmt/format.h>
#include <orrery/fw/packet.h>

#include <iterator>

#include "umd/runtime/context.h"
#include "umd/runtime/flight.h"
#include "umd/runtime/memory.h"
#include "umd/runtime/packets.h"
#include "umd/runtime/semaphore.h"
#include "umd/runtime/stream.h"

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
    if (is_before(*signal.latest, way.settled)) return true;
    if (!way.number) return way.settled == way.version;
    if (signal.probe == 0) signal.probe = next;
    wanted |= signal.probe >= next;
    return passed >= signal.probe || (cannot && signal.given_up(now_ns, kPatienceNs));
}

WayLook WayWatch::look(const Context& from, const Context& to) {
    const std::lock_guard lock(mutex_);
    const auto known = probes_.find({&from, &to});
    // In this order: it came by the way that was there before it was sent, and still is.
    const bool came = known != probes_.end() && known->second.sent > known->second.passed &&
                      known->second.slot->reached(known->second.sent);
    // A way that the driver still has to a card that is lost goes with its next look at that.
    WayLook look;
    look.way = from.lost() ? to.way_now(from) : from.way_now(to);
    if (known == probes_.end()) return look;
    Probe& probe = known->second;
    if (came && look.way.number == probe.way) probe.passed = probe.sent;
    look.next = probe.sent + 1;
    look.passed = probe.passed;
    look.cannot = probe.cannot;
    return look;
}

void WayWatch::prepare(Context& from, Context& to) {
    {
        const std::lock_guard lock(mutex_);
        const auto known = probes_.find({&from, &to});
        if (known != probes_.end() && known->second.slot != nullptr && !known->second.slot->failed()) return;
    }
    // Not under the lock: it may wait for cards.
    auto slot = to.semaphores().take(true);
    const bool shared = slot && to.memory().share_block(*(*slot)->block, from.device());
    const std::lock_guard lock(mutex_);
    Probe& probe = probes_[{&from, &to}];
    probe.cannot = !shared;
    if (shared) probe.slot.swap(*slot);  // the other one goes behind the lock
}

void WayWatch::send_probe(Context& from, Context& to, const WayLook& look) {
    if (!look.way.number) return;
    bool broken = true;
    {
        const std::lock_guard lock(mutex_);
        const auto known = probes_.find({&from, &to});
        const bool any = known != probes_.end();
        broken = !any || known->second.slot == nullptr || known->second.slot->failed();
        const bool under_way = any && known->second.sent > known->second.passed;
        if (under_way && !broken ? known->second.way == *look.way.number : !look.wanted && !under_way) return;
    }
    if (broken) prepare(from, to);
    send(from, to, *look.way.number);
}

void WayWatch::send(Context& from, Context& to, std::uint64_t way) {
    std::shared_ptr<Stream> stream;
    {
        const std::lock_guard lock(mutex_);
        stream = probes_[{&from, &to}].stream;
    }
    if (stream == nullptr || stream->error()) {
        QueueOptions options;
        options.name = fmt::format("probes to device {}", to.device());
        auto made = Stream::create(from, 64, 0, std::move(options), Stream::Use::kRelay);
        if (made) stream = *std::move(made);
    }
    const std::lock_guard lock(mutex_);
    Probe& probe = probes_[{&from, &to}];
    probe.cannot = stream == nullptr || stream->error() || probe.slot == nullptr;
    if (probe.cannot) return;
    probe.stream.swap(stream);
    // Nobody waits for room, which there is unless the last ones stand.
    if (probe.stream->executed() == probe.stream->submitted()) (void)probe.stream->make_room(1);
    const orr_packet packet = make_semaphore(ORR_PKT_SIGNAL, probe.slot->va, probe.sent + 1);
    probe.way = way;
    const auto sent = probe.stream->submit_now({&packet, 1});
    if (!sent || *sent == 0) return;
    probe.slot->last = ++probe.sent;
}

void WayWatch::forget(const Context& card) {
    std::map<Pair, Probe> gone;  // after the lock
    const std::lock_guard lock(mutex_);
    for (auto probe = probes_.begin(); probe != probes_.end();) {
        const auto next = std::next(probe);
        if (probe->first.first == &card || probe->first.second == &card) gone.insert(probes_.extract(probe));
        probe = next;
    }
}

}  // namespace orrery::umd
