#include "umd/runtime/fleet.h"

#include <orrery/fw/failure.h>
#include <orrery/fw/queue.h>

#include <algorithm>

#include "umd/runtime/context.h"
#include "umd/runtime/fault_text.h"
#include "umd/runtime/link_text.h"
#include "umd/runtime/signal_log.h"
#include "umd/runtime/stream.h"

namespace orrery::umd {
namespace {

constexpr int kLongestChain = 8;
constexpr std::size_t kMostForeignWords = 1024;

}  // namespace

void Fleet::add(Context& context) {
    const std::lock_guard lock(mutex_);
    contexts_.push_back(&context);
    devices_[context.uid()] = context.device();
}

void Fleet::know(std::uint64_t uid, int device) {
    const std::lock_guard lock(mutex_);
    devices_[uid] = device;
}

int Fleet::device_of(std::uint64_t uid) const {
    const std::lock_guard lock(mutex_);
    const auto found = devices_.find(uid);
    return found == devices_.end() ? -1 : found->second;
}

void Fleet::remove(Context& context) {
    const std::lock_guard lock(mutex_);
    std::erase(contexts_, &context);
}

void Fleet::add(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex_);
    std::erase_if(streams_, [](const auto& weak) { return weak.expired(); });
    streams_.push_back(stream);
    const auto grave = graves_.find({stream->context().node(), stream->number()});
    if (grave != graves_.end()) grave->second.latest = false;
}

void Fleet::add(const std::shared_ptr<Watched>& watched) {
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
    watched_.push_back(watched);
    any_watched_.store(true, std::memory_order_release);
}

std::vector<std::shared_ptr<Stream>> Fleet::streams(const Context* of) const {
    std::vector<std::weak_ptr<Stream>> all;
    {
        const std::lock_guard lock(mutex_);
        all = streams_;
    }
    // Not under the lock: the last reference may go here, and a stream that goes comes back to bury().
    std::vector<std::shared_ptr<Stream>> live;
    for (const auto& weak : all) {
        auto stream = weak.lock();
        if (stream != nullptr && (of == nullptr || &stream->context() == of))
            live.push_back(std::move(stream));
    }
    return live;
}

std::vector<Context*> Fleet::contexts() const {
    const std::lock_guard lock(mutex_);
    return contexts_;
}

bool Fleet::may_have_signalled(std::uint64_t va) const {
    return SignalLog::missed() && std::ranges::any_of(contexts(), [va](Context* context) {
               return context->shared_semaphores().signalled(va);
           });
}

void Fleet::bury(Stream& stream) {
    Orphans orphans{&stream.context(), stream.label(), stream.flight().take()};
    const auto error = stream.error();
    const std::lock_guard lock(mutex_);
    if (!orphans.signals.empty()) orphans_.push_back(std::move(orphans));
    if (!error || stream.number() == ORR_FAILURE_NO_QUEUE) return;
    graves_[{stream.context().node(), stream.number()}] = {stream.stopped_at(), *error, stream.label()};
}

void Fleet::forget_flights(const Context& context) {
    gangs_.clear();
    ways_.forget(context);
    std::vector<Orphans> gone;  // after the lock
    const std::lock_guard lock(mutex_);
    for (Orphans& orphans : orphans_) {
        const auto touches = [&](const FlightSignal& signal) {
            return orphans.from == &context || signal.slot->context == &context;
        };
        Orphans taken{orphans.from, {}, {}};
        for (FlightSignal& signal : orphans.signals) {
            if (touches(signal)) taken.signals.push_back(std::move(signal));
        }
        std::erase_if(orphans.signals, [](const FlightSignal& signal) { return signal.slot == nullptr; });
        gone.push_back(std::move(taken));
    }
    std::erase_if(orphans_, [](const Orphans& orphans) { return orphans.signals.empty(); });
}

// A failure goes on from semaphore to semaphore with its word: also to those of this process alone.
bool Fleet::came_from_outside(std::uint64_t word) const {
    {
        const std::lock_guard lock(told_mutex_);
        if (foreign_words_.contains(word)) return true;
    }
    return std::ranges::any_of(streams(),
                               [&](const auto& stream) { return stream->poisoned_from_outside(word); });
}

std::string Fleet::lost_on_way(std::uint64_t va, std::uint32_t node) const {
    const Context* const here = va == 0 ? nullptr : owner(va);
    for (const Context* there : contexts()) {
        if (here == nullptr || there == here || there->node() != node) continue;
        if (std::string lost = loss_that_stands(*here, *there); !lost.empty()) return lost;
    }
    return {};
}

std::optional<Error> Fleet::lost_way(std::uint64_t va, std::uint64_t word) const {
    std::vector<std::weak_ptr<Watched>> all;
    {
        const std::lock_guard lock(mutex_);
        all = watched_;
    }
    for (const auto& weak : all) {
        const auto watched = weak.lock();
        if (auto lost = watched == nullptr ? std::nullopt : watched->lost_way(va, word)) return lost;
    }
    return std::nullopt;
}

Error Fleet::cause(std::uint64_t word, bool foreign, std::uint64_t va) const {
    const bool unreached = ORR_FAILURE_CODE(word) == ORR_QERR_PEER_LOST;
    if (unreached && va != 0) {
        if (auto lost = lost_way(va, word)) return *std::move(lost);
    }
    if (foreign || came_from_outside(word)) {
        const std::lock_guard lock(told_mutex_);
        if (foreign_words_.size() == kMostForeignWords) foreign_words_.clear();
        foreign_words_.insert(word);
        foreign = true;
    }
    const QueueKey key{ORR_FAILURE_NODE(word), ORR_FAILURE_QUEUE(word)};
    const std::uint64_t index = ORR_FAILURE_INDEX(word);
    const auto by_name = [](const std::string& who, const Error& error) {
        return Error{error.code, fmt::format("{} stopped: {}", who, error.text)};
    };
    {
        const std::lock_guard lock(told_mutex_);
        const auto told = told_.find({key.first, key.second, index});
        if (told != told_.end()) return by_name(told->second.who, told->second.error);
    }
    std::string where = fmt::format("the card whose uid ends in {:#04x}", key.first);
    for (const Context* context : contexts()) {
        if (context->node() == key.first) where = fmt::format("device {}", context->device());
    }
    if (foreign) {
        Error told = describe_foreign_failure(word, where);
        if (!unreached) return told;
        if (std::string lost = lost_on_way(va, key.first); !lost.empty()) {
            told.text += lost;
        } else if (key.second == ORR_FAILURE_NO_QUEUE) {
            for (const Context* context : contexts())
                told.text += context->lost_link(key.first);
        }
        return told;
    }
    // Who was the last that could signal may have stopped for what had become of others; any other word names
    // the first cause. It stands in memory of processes: one that names its own waiter would go round.
    const bool abandoned = ORR_FAILURE_CODE(word) == ORR_QERR_ABANDONED;
    thread_local int depth = 0;
    for (const auto& stream : streams()) {
        if (stream->number() != key.second || stream->context().node() != key.first) continue;
        // Numbers are used again.
        if (!abandoned && (stream->stopped_at() & ORR_FAILURE_INDEX(~0ull)) != index) continue;
        if (stream->poisoned() && (!abandoned || depth == kLongestChain)) continue;
        ++depth;
        const auto error = stream->error();
        --depth;
        if (error) return by_name(stream->label(), *error);
    }
    {
        const std::lock_guard lock(mutex_);
        const auto grave = graves_.find(key);
        if (grave != graves_.end() &&
            (abandoned ? grave->second.latest : (grave->second.index & ORR_FAILURE_INDEX(~0ull)) == index))
            return by_name(grave->second.who, grave->second.error);
    }
    Error told = describe_foreign_failure(word, where);
    if (unreached) told.text += lost_on_way(va, key.first);
    return told;
}

Context* Fleet::owner(std::uint64_t va) const {
    for (Context* context : contexts()) {
        if (context->semaphore_value(va)) return context;
    }
    return nullptr;
}

bool Fleet::reached(const SemaphorePoint& point) const {
    for (const Context* context : contexts()) {
        if (const auto value = context->semaphore_value(point.va)) return *value >= point.value;
    }
    return true;  // nobody's that we know
}

}  // namespace orrery::umd
