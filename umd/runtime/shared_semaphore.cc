#include "umd/runtime/shared_semaphore.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "umd/runtime/context.h"
#include "umd/runtime/signal_log.h"

namespace orrery::umd {
namespace {

const char* name_of(std::uint64_t kind) {
    switch (static_cast<SharedSemaphores::Kind>(kind)) {
        case SharedSemaphores::Kind::kSemaphore:
            return "a semaphore";
        case SharedSemaphores::Kind::kEvent:
            return "an event";
        case SharedSemaphores::Kind::kGroup:
            return "of a group";
    }
    return "something that this version of the library does not know";
}

}  // namespace

SharedSemaphores::~SharedSemaphores() {
    for (const Parted& parted : parted_)
        free(parted);
}

void SharedSemaphores::free(const Parted& parted) {
    if (parted.barrier != nullptr) context_.memory().free_block(parted.barrier);
    context_.memory().free_block(parted.block);
}

SharedPage& SharedSemaphores::page(const SemaphoreSlot& slot) {
    return *reinterpret_cast<SharedPage*>(slot.cpu);
}

std::uint64_t SharedSemaphores::release_va(const SemaphoreSlot& slot) {
    return slot.va + offsetof(SharedPage, release);
}

Status SharedSemaphores::add_barrier(SemaphoreSlot& slot, int fd) {
    ORR_TRY(bo, context_.winsys().import_barrier(fd));
    ORR_TRY(block, context_.memory().import_block(context_.device(), std::move(*bo), ORR_BIND_WRITE));
    slot.barrier = *block;
    return {};
}

void SharedSemaphores::drop_barrier(SemaphoreSlot& slot) {
    if (Block* const page = std::exchange(slot.barrier, nullptr)) context_.memory().free_block(page);
}

Result<std::shared_ptr<SemaphoreSlot>> SharedSemaphores::make_slot(Block* block) {
    auto mapped = block->bo->map();
    if (!mapped) {
        context_.memory().free_block(block);
        return std::unexpected(mapped.error());
    }
    return make_slot(block, static_cast<orr_semaphore*>(*mapped));
}

std::shared_ptr<SemaphoreSlot> SharedSemaphores::make_slot(Block* block, orr_semaphore* cpu) {
    auto slot = std::make_unique<SemaphoreSlot>();
    slot->context = &context_;
    slot->block = block;
    slot->cpu = cpu;
    slot->elsewhere = block->elsewhere;
    slot->va = block->va;
    slot->shared = true;
    SignalLog::get().begin(slot->va, true);
    SignalLog::get().begin(release_va(*slot), true);
    context_.fleet().note_shared();
    {
        const std::lock_guard lock(mutex_);
        live_.push_back(slot.get());
    }
    return std::shared_ptr<SemaphoreSlot>(
        slot.release(), [this](SemaphoreSlot* gone) { part(std::unique_ptr<SemaphoreSlot>(gone)); });
}

Result<std::shared_ptr<SemaphoreSlot>> SharedSemaphores::create(Kind kind, std::uint64_t more) {
    sweep();
    ORR_TRY(block, context_.memory().create_block(context_.device(), kPage + more, BoKind::kVram));
    ORR_TRY(slot, make_slot(*block));
    SharedPage& shared = page(**slot);  // the driver cleared it
    shared.kind = static_cast<std::uint64_t>(kind);
    std::atomic_ref(shared.magic).store(SharedPage::kMagic, std::memory_order_release);
    return slot;
}

Result<std::shared_ptr<SemaphoreSlot>> SharedSemaphores::import(ForeignBo foreign, Kind kind) {
    sweep();
    const char* const wanted = name_of(static_cast<std::uint64_t>(kind));
    if (foreign.kind != BoKind::kVram || foreign.bo->size() != kPage) {
        return fail(orrErrorInvalidValue, "what was given is memory of {} bytes, not {}: import it as memory",
                    foreign.bo->size(), wanted);
    }
    ORR_TRY(block, context_.memory().import_block(context_.device(), std::move(foreign.bo)));
    ORR_TRY(slot, make_slot(*block));
    SharedPage& shared = page(**slot);
    const std::uint64_t magic = std::atomic_ref(shared.magic).load(std::memory_order_acquire);
    const std::uint64_t is = std::atomic_ref(shared.kind).load(std::memory_order_relaxed);
    if (magic == SharedPage::kMagic && is == static_cast<std::uint64_t>(kind)) return slot;
    slot->reset();
    sweep();
    return fail(orrErrorInvalidValue, "what was given is {}, not {}: use the call that imports that",
                magic == SharedPage::kMagic ? name_of(is) : "memory", wanted);
}

Result<std::shared_ptr<SemaphoreSlot>> SharedSemaphores::import_fabric(const FabricKey& key) {
    // Its value is 0 for ever: who asks for it here is refused.
    static orr_semaphore unknown{};
    sweep();
    ORR_TRY(bo, context_.winsys().import_fabric(key));
    ORR_TRY(block, context_.memory().import_elsewhere_block(context_.device(), std::move(*bo), key.node));
    return make_slot(*block, &unknown);
}

Result<UniqueFd> SharedSemaphores::export_fd(const SemaphoreSlot& slot) {
    if (slot.elsewhere) {
        return fail(orrErrorInvalidValue, "{} is another machine's: only its owner gives it on",
                    slot.context->describe_semaphore(slot.va));
    }
    if (!slot.shared) {
        return fail(orrErrorInvalidValue,
                    "{} shares its memory with others of this process: make it with "
                    "orrSemaphoreInterprocess, and an event with orrEventInterprocess",
                    slot.context->describe_semaphore(slot.va));
    }
    return slot.block->bo->export_fd();
}

// Whoever drops the last reference may hold any lock of a stream.
void SharedSemaphores::part(std::unique_ptr<SemaphoreSlot> slot) {
    const std::lock_guard lock(mutex_);
    std::erase(live_, slot.get());
    parted_.push_back({slot->block, slot->barrier, slot->ours(), false, {}});
    any_parted_.store(true, std::memory_order_release);
}

bool SharedSemaphores::settle(Parted& parted) {
    if (!std::exchange(parted.noted, true)) {
        // Another machine's is reached by this card alone, and those who wait there shall not wait for
        // others.
        for (const auto& stream : context_.fleet().streams(parted.block->elsewhere ? &context_ : nullptr))
            parted.users.emplace_back(stream, stream->rung());
    }
    std::erase_if(parted.users, [](const auto& user) {
        const auto stream = user.first.lock();
        if (stream == nullptr) return true;
        if (!stream->over(user.second)) return false;
        // Whose failure stopped it is known as long as the page is.
        (void)stream->error();
        return true;
    });
    return parted.users.empty();
}

// All stay in parted_ meanwhile, for ours(). The list keeps what is looked at in its place, and only here is
// anything taken out of it.
void SharedSemaphores::sweep() {
    if (!any_parted_.load(std::memory_order_acquire)) return;
    const std::lock_guard sweeping(sweep_mutex_);
    std::vector<Parted*> all;
    {
        const std::lock_guard lock(mutex_);
        for (Parted& parted : parted_)
            all.push_back(&parted);
    }
    std::erase_if(all, [&](Parted* parted) { return !settle(*parted); });
    if (all.empty()) return;
    std::list<Parted> gone;
    {
        const std::lock_guard lock(mutex_);
        for (auto it = parted_.begin(); it != parted_.end();) {
            const auto one = it++;
            if (std::ranges::find(all, &*one) != all.end()) gone.splice(gone.end(), parted_, one);
        }
        any_parted_.store(!parted_.empty(), std::memory_order_release);
    }
    for (const Parted& parted : gone) {
        context_.fleet().forget_semaphore(parted.block->va);
        context_.fleet().forget_semaphore(parted.block->va + offsetof(SharedPage, release));
        free(parted);
    }
}

bool SharedSemaphores::ours(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(live_,
                               [&](const auto* slot) { return va - slot->va < kPage && slot->ours(); }) ||
           std::ranges::any_of(parted_,
                               [&](const Parted& one) { return va - one.block->va < kPage && one.ours; });
}

bool SharedSemaphores::signalled(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(live_, [&](const auto* slot) { return slot->va == va && slot->ours(); }) ||
           std::ranges::any_of(parted_, [&](const Parted& one) { return one.block->va == va && one.ours; });
}

bool SharedSemaphores::elsewhere(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(live_, [&](const auto* slot) { return slot->va == va && slot->elsewhere; }) ||
           std::ranges::any_of(
               parted_, [&](const Parted& one) { return one.block->va == va && one.block->elsewhere; });
}

std::optional<std::uint64_t> SharedSemaphores::value_of(std::uint64_t va) const {
    const std::lock_guard lock(mutex_);
    for (const SemaphoreSlot* slot : live_) {
        if (slot->va == va) return slot->value();
        if (release_va(*slot) == va) return load_semaphore(page(*slot).release);
    }
    return std::nullopt;
}

}  // namespace orrery::umd
