// Ringing a doorbell as orrery/hw/doorbell.h prescribes. No system call, no lock.
#pragma once

#include <orrery/hw/doorbell.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::umd {

class Doorbell {
  public:
    Doorbell() = default;
    // page and kick: the mapped pages of this process, which outlive the object; slot < ORR_DB_SLOTS.
    Doorbell(orr_doorbell_page* page, std::byte* kick, std::uint32_t slot, std::uint64_t generation)
        : page_(page), kick_(kick), slot_(slot), generation_(generation) {}

    // Call it with rising indices, one thread at a time; other queues of the page may ring meanwhile.
    void ring(std::uint64_t index) const noexcept {
        std::atomic_ref<std::uint64_t>(page_->doorbell[slot_])
            .store(ORR_DB_VALUE(generation_, index), std::memory_order_release);
        // An addition, as all threads of the process share the summary: a lost change would be a lost ring.
        std::atomic_ref<std::uint64_t>(page_->summary).fetch_add(1, std::memory_order_seq_cst);
        // The card sets need_wakeup, fences and looks at the summary; we do the reverse. One of us sees.
        fence();
        if (std::atomic_ref<std::uint64_t>(page_->need_wakeup).load(std::memory_order_relaxed) != 0) kick();
    }

  private:
    // Stores before it are seen before loads after it are done, by a card in another process too. Compilers
    // may make a locked instruction of the standard fence, and QEMU that emulates a single CPU carries that
    // out without a fence of the host's; MFENCE it always translates into one.
    static void fence() noexcept {
#ifdef __x86_64__
        asm volatile("mfence" ::: "memory");
#else
        std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    }
    void kick() const noexcept {
        const std::size_t offset = offsetof(orr_doorbell_page, doorbell) + slot_ * sizeof(std::uint64_t);
        std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(kick_ + offset))
            .store(1, std::memory_order_relaxed);
    }

    orr_doorbell_page* page_ = nullptr;
    std::byte* kick_ = nullptr;
    std::uint32_t slot_ = 0;
    std::uint64_t generation_ = 0;
};

}  // namespace orrery::umd
