// Semaphores that several processes have: each in a page of a card's memory of its own, as whoever gets the
// page has all of it. What another process may write there is looked at as what it is: a value, no address.
#pragma once

#include <orrery/hw/link.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "umd/winsys/error.h"
#include "umd/winsys/unique_fd.h"
#include "umd/winsys/winsys.h"

namespace orrery::umd {

class Context;
class Stream;
struct Block;
struct SemaphoreSlot;

// What is in the page; the same for all processes, whichever version of the library they have.
struct SharedPage {
    orr_semaphore semaphore;
    std::uint8_t unused[64 - sizeof(orr_semaphore)];
    std::uint64_t magic;     // kMagic; 0: no semaphore
    std::uint64_t kind;      // SharedSemaphores::Kind
    std::uint64_t recorded;  // of an event: the value of its last record, which is in a ring; 0: none
    std::uint64_t unused_2;
    orr_semaphore release;  // of a group's barrier in the cards' barrier units

    static constexpr std::uint64_t kMagic = 0x31'4d'45'53'52'52'4fULL;  // "ORRSEM1"
};
static_assert(offsetof(SharedPage, magic) == 64 && offsetof(SharedPage, release) == 96 &&
              sizeof(SharedPage) <= 4096);

// Of one card. Thread safe. It outlives its slots.
class SharedSemaphores {
  public:
    enum class Kind : std::uint64_t { kSemaphore = 1, kEvent = 2, kGroup = 3 };

    explicit SharedSemaphores(Context& context) : context_(context) {}
    ~SharedSemaphores();
    SharedSemaphores(const SharedSemaphores&) = delete;
    SharedSemaphores& operator=(const SharedSemaphores&) = delete;

    // more: bytes behind its page that go and are exported with it.
    Result<std::shared_ptr<SemaphoreSlot>> create(Kind kind, std::uint64_t more = 0);
    // A page of this card's memory that another process has exported.
    Result<std::shared_ptr<SemaphoreSlot>> import(ForeignBo foreign, Kind kind);
    // A semaphore of another machine, which this card reaches.
    Result<std::shared_ptr<SemaphoreSlot>> import_fabric(const FabricKey& key);
    static Result<UniqueFd> export_fd(const SemaphoreSlot& slot);
    static SharedPage& page(const SemaphoreSlot& slot);
    // Its SharedPage::release.
    static std::uint64_t release_va(const SemaphoreSlot& slot);
    // A page of this card's barrier unit by which that is raised; it goes with the slot.
    Status add_barrier(SemaphoreSlot& slot, int fd);
    // Gives that page back before: no packet that touches it is in any ring, and none follows.
    void drop_barrier(SemaphoreSlot& slot);
    // Gives back the pages of slots that are gone, as soon as no stream of the process can touch them any
    // more. Not from inside of a stream.
    void sweep();
    // The one at this address, or one that is parted from it, was signalled by this process or declared so.
    bool ours(std::uint64_t va) const;
    // The same of the semaphore itself, not of what else is in its page.
    bool signalled(std::uint64_t va) const;
    // It, likewise, is another machine's.
    bool elsewhere(std::uint64_t va) const;
    // Of the one at this address, as load_semaphore(); its page may go right after.
    std::optional<std::uint64_t> value_of(std::uint64_t va) const;

  private:
    struct Parted {
        Block* block = nullptr;
        Block* barrier = nullptr;
        bool ours = false;
        bool noted = false;  // `users` are; both are the sweeper's
        // What may still use it: each stream with all that it had then.
        std::vector<std::pair<std::weak_ptr<Stream>, std::uint64_t>> users;
    };
    Result<std::shared_ptr<SemaphoreSlot>> make_slot(Block* block);
    // cpu: where its value is seen.
    std::shared_ptr<SemaphoreSlot> make_slot(Block* block, orr_semaphore* cpu);
    void part(std::unique_ptr<SemaphoreSlot> slot);
    void free(const Parted& parted);
    // Whether no stream can touch it any more.
    bool settle(Parted& parted);

    Context& context_;
    std::mutex sweep_mutex_;    // one at a time; before mutex_, which is not held while streams are looked at
    mutable std::mutex mutex_;  // behind all locks of a stream
    std::vector<const SemaphoreSlot*> live_;
    std::list<Parted> parted_;
    std::atomic<bool> any_parted_{false};  // so that a sweep of nothing costs a load
};

}  // namespace orrery::umd
