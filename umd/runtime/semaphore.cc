#include "umd/runtime/semaphore.h"

#include <orrery/fw/failure.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iterator>
#include <thread>
#include <utility>

#include "umd/runtime/clock.h"
#include "umd/runtime/context.h"
#include "umd/runtime/signal_log.h"

namespace orrery::umd {
namespace {

constexpr std::int64_t kSpinNs = 100'000, kShortestNapNs = 20'000, kLongestNapNs = 1'000'000;
// From then on who waits asks whether it is for streams that wait in a circle.
constexpr std::int64_t kPatienceNs = 20'000'000;
// A look for circles may take so long: who has less left has a limit that tells him.
constexpr std::uint64_t kLookNs = 100'000'000;

std::uint64_t read(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
}

void raise(std::uint64_t& word, std::uint64_t value) {
    const std::atomic_ref highest(word);
    std::uint64_t now = highest.load();
    while (now < value && !highest.compare_exchange_weak(now, value)) {
    }
}

}  // namespace

std::uint64_t load_semaphore(const orr_semaphore& semaphore) {
    return read(const_cast<orr_semaphore&>(semaphore).value);
}

std::uint64_t SemaphoreSlot::value() const {
    return load_semaphore(*cpu);
}
bool SemaphoreSlot::failed() const {
    return ORR_SEM_HAS_FAILED(value());
}
bool SemaphoreSlot::closed() const {
    return (read(cpu->time_ps) & ORR_SEM_CLOSED) != 0;
}
bool SemaphoreSlot::reached(std::uint64_t least) const {
    const std::uint64_t now = value();
    return now >= least && !ORR_SEM_HAS_FAILED(now);
}
std::uint64_t SemaphoreSlot::time_ps() const {
    return read(cpu->time_ps) & ~ORR_SEM_CLOSED;
}

Status SemaphoreSlot::check() const {
    if (!failed()) return {};
    const Error cause = context->fleet().cause(ORR_SEM_FAILURE(value()), shared && !ours(), va);
    return fail(cause.code, "{} has failed: {}. Destroy it and make a new one",
                context->describe_semaphore(va), cause.text);
}
Result<SemaphoreSlot::State> SemaphoreSlot::look() const {
    // In this order: what came before it was closed is seen.
    const bool last_one = closed();
    const std::uint64_t now = value();
    ORR_TRY(good, check());
    return State{now, last_one};
}
Status SemaphoreSlot::abandoned(std::uint64_t now) const {
    return fail(orrErrorAbandoned, "nobody is left who may signal {}: its value stays {}",
                context->describe_semaphore(va), now);
}

void SemaphoreSlot::promise(std::uint64_t to) {
    raise(last, to);
}
void SemaphoreSlot::want(std::uint64_t to) {
    raise(wanted, to);
}

// It looks, as no packet shall tell the card's clock that somebody waits: at first all the time, then after
// an eighth of what it has waited already.
Status SemaphoreSlot::wait(std::uint64_t value, std::uint64_t limit_ns,
                           const std::atomic<bool>& destroyed) const {
    const std::int64_t start = now_ns();
    while (true) {
        ORR_TRY(state, look());
        if (state->value >= value) return {};
        if (destroyed.load(std::memory_order_acquire)) {
            return fail(orrErrorInvalidHandle,
                        "the semaphore or event was destroyed at value {} while this thread waited for {}",
                        state->value, value);
        }
        if (state->closed) return abandoned(state->value);
        if (const auto loss = context->loss()) return std::unexpected(*loss);
        const std::int64_t waited = now_ns() - start;
        if (static_cast<std::uint64_t>(waited) >= limit_ns) {
            return fail(orrErrorTimeout, "{} is {} after {} ns, and {} was waited for",
                        context->describe_semaphore(va), state->value, waited, value);
        }
        if (waited < kSpinNs) continue;
        context->fleet().watch();
        if (waited > kPatienceNs && limit_ns - static_cast<std::uint64_t>(waited) > kLookNs) {
            if (auto circle = context->fleet().deadlock(*this, value)) {
                // Another thread may have signalled since the driver looked.
                ORR_TRY(now, look());
                if (now->value < value) return std::unexpected(*std::move(circle));
            }
        }
        const std::int64_t nap = std::min(std::clamp(waited / 8, kShortestNapNs, kLongestNapNs),
                                          static_cast<std::int64_t>(std::min<std::uint64_t>(
                                              limit_ns - static_cast<std::uint64_t>(waited), kLongestNapNs)));
        std::this_thread::sleep_for(std::chrono::nanoseconds(nap));
    }
}

Semaphore::~Semaphore() {
    Context& context = *slot->context;
    const std::uint64_t value = slot->value();
    // Of a shared one another process may signal it yet.
    if (!slot->shared && slot->wanted > value && slot->wanted > slot->last) {
        slot->lost = true;
        // While signals are on their way some may wait for those.
        if (value >= slot->last) {
            (void)context.fleet().fail_semaphore(
                context, slot->va, ORR_QERR_ABANDONED, context.describe_semaphore(slot->va),
                Error{orrErrorAbandoned,
                      fmt::format("it was destroyed at value {} while a stream waited for {}", value,
                                  slot->wanted)});
        }
    }
    for (const auto& weak : signallers_) {
        if (const auto stream = weak.lock()) (void)stream->remove_signal(slot->va);
    }
    // The card closes it once. As long as that is under way nobody else may have the memory.
    if (declared_ && !slot->closed()) slot->lost = true;
    context.name_semaphore(slot->va, {});
}

Status Semaphore::add_signaller(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex_);
    if (slot->closed()) {
        return fail(orrErrorAbandoned, "nobody was left who may signal {}: destroy it and make a new one",
                    slot->context->describe_semaphore(slot->va));
    }
    if (slot->elsewhere || slot->abroad) {
        return fail(orrErrorInvalidValue,
                    "{} is shared with another machine, so all that import it are who may signal it: streams "
                    "need not be added",
                    slot->context->describe_semaphore(slot->va));
    }
    slot->claim();
    ORR_TRY(added, stream->declare_signal(slot->va));
    declared_ = true;
    std::erase_if(signallers_, [&](const auto& weak) {
        const auto one = weak.lock();
        return one == nullptr || one == stream;
    });
    signallers_.push_back(stream);
    return {};
}

Result<FabricKey> Semaphore::export_fabric() {
    const std::lock_guard lock(mutex_);
    if (!slot->shared || slot->elsewhere || declared_) {
        return fail(orrErrorInvalidValue, "{} {}: make one with orrSemaphoreInterprocess for it",
                    slot->context->describe_semaphore(slot->va),
                    slot->elsewhere ? "is another machine's"
                    : declared_     ? "has streams that were added as its signallers, and cards of other "
                                      "machines would be, too"
                                    : "shares its memory with others of this process");
    }
    ORR_TRY(card, slot->context->winsys().query());
    if ((card->features & ORR_FEATURE_FABRIC_SEMAPHORES) == 0) {
        return fail(orrErrorNotSupported,
                    "device {}, its firmware or its driver is older than this library: it would not notice "
                    "when nobody of another machine is left who may signal the semaphore",
                    slot->context->device());
    }
    // Before any other machine can signal it.
    const bool abroad = slot->abroad.exchange(true);
    slot->context->note_links();  // for whoever waits in vain
    auto key = slot->context->memory().export_fabric(*slot->block);
    if (!key) slot->abroad = abroad;
    return key;
}

Status Semaphore::remove_signaller(const std::shared_ptr<Stream>& stream) {
    const std::lock_guard lock(mutex_);
    const auto removed = std::erase_if(signallers_, [&](const auto& weak) { return weak.lock() == stream; });
    if (removed == 0)
        return fail(orrErrorInvalidValue, "{} was not added to this semaphore", stream->label());
    return stream->remove_signal(slot->va);
}

orr_semaphore* SemaphorePool::find(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    for (const auto& [start, memory] : blocks_) {
        if (va - start->va < kBlockBytes && va % sizeof(orr_semaphore) == 0)
            return memory + (va - start->va) / sizeof(orr_semaphore);
    }
    return nullptr;
}

SemaphorePool::~SemaphorePool() {
    drop_retired();
    free_.clear();
    lost_.clear();
    for (const auto& [block, memory] : blocks_)
        context_.memory().free_block(block);
}

Status SemaphorePool::grow() {
    ORR_TRY(block, context_.memory().create_block(context_.device(), kBlockBytes, kind_));
    auto mapped = (*block)->bo->map();
    if (!mapped) {
        context_.memory().free_block(*block);
        return std::unexpected(mapped.error());
    }
    auto* first = static_cast<orr_semaphore*>(*mapped);
    blocks_.emplace_back(*block, first);
    for (std::uint64_t i = kBlockBytes / sizeof(orr_semaphore); i-- > 0;) {
        auto slot = std::make_unique<SemaphoreSlot>();
        slot->context = &context_;
        slot->block = *block;
        slot->cpu = first + i;
        slot->va = (*block)->va + i * sizeof(orr_semaphore);
        SignalLog::get().begin(slot->va, false);
        slot->pool = this;
        free_.push_back(std::move(slot));
    }
    return {};
}

// Not under the lock: whoever tells what became of a stream looks for semaphores here, and slots that go come
// back here.
void SemaphorePool::take_back_retired() {
    std::vector<Retired> all;
    {
        const std::lock_guard lock(mutex_);
        all.swap(retired_);
    }
    std::erase_if(all, [&](const Retired& r) {
        const bool reached = r.stream->done(r.index);
        if (!reached && !r.stream->error()) return false;
        if (!reached) r.slot->lost = true;
        return true;
    });
    const std::lock_guard lock(mutex_);
    std::ranges::move(all, std::back_inserter(retired_));
}

Result<std::shared_ptr<SemaphoreSlot>> SemaphorePool::take(bool fresh) {
    take_back_retired();
    std::unique_lock lock(mutex_);
    if (free_.empty()) {
        ORR_TRY(grown, grow());
    }
    SemaphoreSlot* slot = free_.back().release();
    free_.pop_back();
    lock.unlock();
    if (fresh) {
        std::atomic_ref(slot->cpu->time_ps).store(0, std::memory_order_relaxed);
        std::atomic_ref(slot->cpu->value).store(0, std::memory_order_release);
        slot->last = slot->wanted = 0;
        slot->claimed.store(false);
        SignalLog::get().begin(slot->va, false);
    }
    return std::shared_ptr<SemaphoreSlot>(
        slot, [](SemaphoreSlot* back) { back->pool->give_back(std::unique_ptr<SemaphoreSlot>(back)); });
}

void SemaphorePool::give_back(std::unique_ptr<SemaphoreSlot> slot) {
    const bool lost = slot->lost || slot->failed() || slot->value() < slot->last;
    slot->lost = lost;
    const std::lock_guard lock(mutex_);
    (lost ? lost_ : free_).push_back(std::move(slot));
}

void SemaphorePool::retire(std::shared_ptr<SemaphoreSlot> slot, std::shared_ptr<Stream> stream,
                           std::uint64_t index) {
    const std::lock_guard lock(mutex_);
    retired_.push_back({std::move(slot), std::move(stream), index});
}

void SemaphorePool::drop_retired() {
    std::vector<Retired> gone;  // destroyed after the lock, as the slots' deleters take it
    {
        const std::lock_guard lock(mutex_);
        gone.swap(retired_);
    }
    for (const Retired& r : gone)
        r.slot->lost |= !r.stream->done(r.index);
}

}  // namespace orrery::umd
