// What the members of a lockstep share: a file that each of them maps, with a slot for each.
//
// All of them can write all of it, so no member believes what would harm its process: there are numbers and
// no pointers, and a lock that its owner does not give back is waited for within bounds. A member that lies
// about its time makes the others' times wrong, and nothing worse.
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
    kLost = 2,  // somebody found that it is gone, or has stopped; the slot is free when its process knows
};

// All times are system times of the cards, in ps. Under the area's lock, but for `uid`, `beats` and
// `accounted`, which may be looked at without.
struct alignas(64) Slot {
    std::atomic<std::uint32_t> state;
    std::atomic<std::uint32_t> active;  // it has something to do beside waiting for a timer
    std::atomic<std::uint32_t> asleep;  // wake it when its horizon is behind `next`, or `accounted` changes
    std::uint32_t reserved;
    std::atomic<std::uint64_t> uid;
    std::atomic<ModelTime> next;  // see Promise
    std::atomic<ModelTime> lookahead;
    std::atomic<ModelTime> grant;  // it has done nothing at or after this
    // Grows with each message that somebody accounts to it: it looks for messages before it says `next`.
    std::atomic<std::uint64_t> accounted;
    std::atomic<std::uint64_t> beats;  // grows while the member's process runs
};
static_assert(sizeof(Slot) == 64);

struct Area {
    std::uint64_t magic;
    std::uint32_t version;
    std::atomic<std::uint32_t> lock;   // 0, or one more than the slot of its owner
    std::atomic<std::uint64_t> turns;  // grows with everything that may move somebody's horizon
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
