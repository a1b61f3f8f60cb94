// What the members of a lockstep share: a file that each of them maps, with a slot for each.
//
// All of them can write all of it, so no member believes what would harm its process: there are numbers and
// no pointers, and a lock that its owner does not give back is waited for within bounds. A member that lies
// can make the others' times wrong, hold them back, or send them on without lockstep; and whoever may write
// the file may end them by making it shorter. So it belongs to one user, as all members do.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <string>

#include "emulator/api/model_time.h"
#include "emulator/base/unique_fd.h"

namespace orrery::emu::sync {

inline constexpr std::uint64_t kMagic = 0x434e59535952524full;  // "ORRYSYNC"
inline constexpr std::uint32_t kVersion = 1;
inline constexpr unsigned kMembers = 32;

enum State : std::uint32_t {
    kFree = 0,
    kMember = 1,
    kLost = 2,  // it is gone, has stopped or has given up
};

// All times are system times of the cards, in ps. Changed under the area's lock, but for `beats` and a
// member's own `asleep` and `state`; looked at without it too.
struct alignas(64) Slot {
    std::atomic<std::uint32_t> state;
    std::atomic<std::uint32_t> active;   // it has something to do beside waiting for a timer
    std::atomic<std::uint32_t> asleep;   // wake it when its horizon is behind `next`, or `next` falls
    std::atomic<std::uint32_t> entries;  // members that have taken the slot
    std::atomic<std::uint64_t> uid;
    std::atomic<ModelTime> next;  // see Promise
    std::atomic<ModelTime> lookahead;
    std::atomic<ModelTime> grant;  // it has done nothing at or after this
    // Grows with each message that somebody accounts to it: it looks for messages before it says `next`.
    std::atomic<std::uint64_t> accounted;
    std::atomic<std::uint64_t> beats;  // grows while the member's process runs
};
static_assert(sizeof(Slot) == 64);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "processes share them");

struct Area {
    std::uint64_t magic;
    std::uint32_t version;
    std::atomic<std::uint32_t> lock;  // 0, or one more than the slot of its owner
    std::uint64_t reserved[6];
    Slot slots[kMembers];
};

// The mapped file. A member's process holds a lock of the file system on one byte, which the system gives
// back when the process ends, however it ends.
class SharedArea {
  public:
    // Makes the file if it is not there.
    static std::expected<SharedArea, std::string> open(const std::filesystem::path& file);
    SharedArea(SharedArea&& other) noexcept;
    SharedArea& operator=(SharedArea&&) = delete;
    ~SharedArea();

    Area* operator->() const { return area_; }
    // False: another process holds it.
    bool hold(unsigned slot) const;
    void give_back(unsigned slot) const;
    bool held_by_another(unsigned slot) const;

  private:
    SharedArea(UniqueFd fd, Area* area) : fd_(std::move(fd)), area_(area) {}
    UniqueFd fd_;
    Area* area_;
};

}  // namespace orrery::emu::sync
