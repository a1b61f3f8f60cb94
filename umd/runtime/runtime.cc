#include "umd/runtime/runtime.h"

#include <pthread.h>

#include <utility>

#include "umd/runtime/group.h"
#include "umd/winsys/drm_winsys.h"
#include "umd/winsys/env.h"

namespace orrery::umd {
namespace {

std::mutex g_mutex;
// Never destroyed at exit: other threads may be inside, and the kernel frees what the process had.
std::atomic<Runtime*> g_runtime{nullptr};
std::atomic<bool> g_in_child{false};

}  // namespace

int& current_device() {
    thread_local int device = 0;
    return device;
}

void Runtime::enter_child() {
    if (g_runtime.load(std::memory_order_relaxed) != nullptr)
        g_in_child.store(true, std::memory_order_relaxed);
    usable_.store(nullptr, std::memory_order_relaxed);
    close_inherited_cards();
}

Result<Runtime*> Runtime::make() {
    if (g_in_child.load(std::memory_order_relaxed)) {
        return fail(
            orrErrorNotSupported,
            "this process is a fork() of one that had used its cards, and cannot share them: fork before "
            "the first orr* call, or exec a new program");
    }
    const std::lock_guard lock(g_mutex);
    if (Runtime* runtime = g_runtime.load(std::memory_order_relaxed)) return runtime;
    static const int registered = ::pthread_atfork(nullptr, nullptr, &Runtime::enter_child);
    if (registered != 0) return fail_errno(registered, "pthread_atfork");
    auto* runtime = std::make_unique<Runtime>(make_drm_winsys()).release();
    g_runtime.store(runtime, std::memory_order_relaxed);
    usable_.store(runtime, std::memory_order_release);
    return runtime;
}

void Runtime::replace(std::unique_ptr<Runtime> runtime) {
    const std::lock_guard lock(g_mutex);
    const std::unique_ptr<Runtime> old(g_runtime.exchange(runtime.release()));
    usable_.store(g_in_child.load(std::memory_order_relaxed) ? nullptr : g_runtime.load(),
                  std::memory_order_release);
    current_device() = 0;
}

Runtime::Runtime(std::unique_ptr<Winsys> winsys) : winsys_(std::move(winsys)) {}

Runtime::~Runtime() {
    task_graphs.clear();
    task_data.clear();
    task_kernels.clear();
    for (auto& card : cards_) {
        if (card->context_owner != nullptr) card->context_owner->shutdown();
    }
    groups.clear();
    graph_execs.clear();
    graphs.clear();
    events.clear();
    functions.clear();
    libraries.clear();
    modules.clear();
    streams.clear();
    semaphores.clear();
    for (auto& card : cards_) {
        if (card->context_owner != nullptr) card->context_owner->shutdown();
    }
    for (auto& card : cards_)
        card->context_owner.reset();
    memory_.clear();
}

Status Runtime::open() {
    if (opened_.load(std::memory_order_acquire)) return {};
    const std::lock_guard lock(mutex_);
    if (opened_.load(std::memory_order_relaxed)) return {};
    ORR_TRY(devices, winsys_->open_devices());
    // The next call looks again: the module may be loaded later.
    if (devices->empty()) return {};
    ORR_TRY(visible, Env::visible_devices(devices->size()));
    std::vector<std::unique_ptr<Card>> cards;
    for (const std::size_t number : *visible) {
        auto& device = (*devices)[number];
        auto card = std::make_unique<Card>();
        // A card that is lost keeps its number; using it gives the reason.
        if (auto query = device->query()) {
            card->uid = query->uid;
            fleet_.know(card->uid, static_cast<int>(cards.size()));
        }
        card->winsys = std::move(device);
        cards.push_back(std::move(card));
    }
    cards_ = std::move(cards);
    opened_.store(true, std::memory_order_release);
    return {};
}

Result<int> Runtime::device_count() {
    ORR_TRY(opened, open());
    return opened_.load(std::memory_order_acquire) ? static_cast<int>(cards_.size()) : 0;
}

Result<Device*> Runtime::device(int number) {
    ORR_TRY(count, device_count());
    if (*count == 0) {
        return fail(
            orrErrorNoDevice,
            "there is no Orrery card: is the module loaded (modprobe orrery), and does orrery-smi list "
            "one?");
    }
    if (number < 0 || number >= *count) {
        return fail(orrErrorInvalidDevice, "there is no device {}: this process sees {} (0 to {})", number,
                    *count, *count - 1);
    }
    return cards_[static_cast<std::size_t>(number)]->winsys.get();
}

Result<Context*> Runtime::context(int number) {
    ORR_TRY(winsys, device(number));
    Card& card = *cards_[static_cast<std::size_t>(number)];
    if (Context* context = card.context.load(std::memory_order_acquire)) return context;
    const std::lock_guard lock(mutex_);
    if (Context* context = card.context.load(std::memory_order_relaxed)) return context;
    if (!card.quota) {
        ORR_TRY(quota, Env::quota());
        card.quota = *quota;
    }
    ORR_TRY(made, Context::create(number, **winsys, memory_, fleet_, *card.quota));
    card.context_owner = std::move(*made);
    card.context.store(card.context_owner.get(), std::memory_order_release);
    return card.context_owner.get();
}

Status Runtime::set_quota(int number, Quota quota) {
    ORR_TRY(winsys, device(number));
    ORR_TRY(good, check_quota(quota, "the quota"));
    Card& card = *cards_[static_cast<std::size_t>(number)];
    const std::lock_guard lock(mutex_);
    if (card.context.load(std::memory_order_relaxed) != nullptr) {
        return fail(orrErrorInvalidValue,
                    "device {} is in use already: set its quota before the first call that uses it", number);
    }
    card.quota = quota;
    return {};
}

Result<Context*> Runtime::current_context() {
    return context(current_device());
}

std::vector<Context*> Runtime::contexts() const {
    std::vector<Context*> contexts;
    if (!opened_.load(std::memory_order_acquire)) return contexts;
    for (const auto& card : cards_) {
        if (Context* context = card->context.load(std::memory_order_acquire)) contexts.push_back(context);
    }
    return contexts;
}

void Runtime::sweep() {
    for (Context* context : contexts())
        context->shared_semaphores().sweep();
}

int Runtime::device_of_uid(std::uint64_t uid) {
    if (uid == 0 || !opened_.load(std::memory_order_acquire)) return -1;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
        if (cards_[i]->uid == uid) return static_cast<int>(i);
    }
    return -1;
}

Result<Runtime::Found> Runtime::find_foreign(int fd) {
    ORR_TRY(first, device(0));  // or there is none
    ORR_TRY(count, device_count());
    std::optional<Error> refused;  // first
    for (int number = 0; number < *count; ++number) {
        ORR_TRY(card, device(number));
        auto found = memory_.probe(**card, fd);
        if (!found && found.error().code == orrErrorInvalidValue) return std::unexpected(found.error());
        if (!found && !refused) refused = found.error();
        if (!found || !*found) continue;  // another one may have it
        ORR_TRY(context, this->context(number));
        return Found{*context, *std::move(*found)};
    }
    if (refused) return std::unexpected(*refused);
    return fail(orrErrorInvalidValue,
                "file descriptor {} is memory of another driver, or of a card that this process does not see "
                "(ORR_VISIBLE_DEVICES)",
                fd);
}

Result<drm_orr_query_way> Runtime::way(int number, int peer) {
    ORR_TRY(own, device(number));
    ORR_TRY(known, device(peer));
    if (number == peer) return drm_orr_query_way{};
    Card& card = *cards_[static_cast<std::size_t>(number)];
    ORR_TRY(way, (*own)->way(cards_[static_cast<std::size_t>(peer)]->uid));
    if (Context* const context = card.context.load()) context->saw_way(peer, way->links > 0);
    if (way->links > 0) return way;
    // A card that has just died has no links; the driver may not have noticed yet.
    for (const int end : {number, peer}) {
        const auto there = cards_[static_cast<std::size_t>(end)]->winsys->query();
        if (there || there.error().code != orrErrorDeviceLost) continue;
        return fail(orrErrorDeviceLost, "no way joins device {} and device {}, as device {} is lost: {}",
                    number, peer, end, there.error().text);
    }
    return way;
}

Result<bool> Runtime::linked(int number, int peer) {
    ORR_TRY(found, way(number, peer));
    return found->links > 0;
}

bool Runtime::went_by_host(int number, int peer) const {
    const Context* const context = cards_[static_cast<std::size_t>(number)]->context.load();
    return context != nullptr && context->went_by_host(peer);
}

void Runtime::offer_awaited() {
    memory_.offer_again([this](int number, int peer) {
        Context* const own = cards_[static_cast<std::size_t>(number)]->context.load();
        const Context* const other = cards_[static_cast<std::size_t>(peer)]->context.load();
        return own != nullptr && other != nullptr && own->reaches(*other);
    });
}

Result<std::shared_ptr<Stream>> Runtime::stream(orrStream_t handle) {
    if (handle != nullptr) {
        auto stream = streams.find_shared(handle);
        if (stream == nullptr) {
            return fail(orrErrorInvalidHandle, "{} is not a stream, or was destroyed", fmt::ptr(handle));
        }
        return stream;
    }
    ORR_TRY(context, current_context());
    return (*context)->null_stream();
}

}  // namespace orrery::umd
