#include "umd/runtime/mutex.h"

namespace orrery::umd {

// Who has slept does not know whether others still do, so it takes it as wanted.
void Mutex::lock_late() noexcept {
    while (state_.exchange(kWanted, std::memory_order_acquire) != kFree)
        state_.wait(kWanted, std::memory_order_relaxed);
}

void Mutex::wake_one() noexcept {
    state_.notify_one();
}

}  // namespace orrery::umd
