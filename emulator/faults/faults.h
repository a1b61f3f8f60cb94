// The faults of a card: its plan, how often each point was passed, and what is late.
//
// Whoever has a point holds a pointer to this, which is null in a card without a plan and without a control
// socket, so that a point costs one test. A point is passed on the card thread, kRegister on the I/O thread.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulator/faults/plan.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

struct Fault {
    FaultAction action = FaultAction::kNone;
    ModelTime delay = 0;
    std::uint64_t random = 0;  // of the seed, the rule and how often it has struck
    std::uint32_t lanes = 0;   // kLanes

    explicit operator bool() const { return action != FaultAction::kNone; }
};

class Faults {
  public:
    // `die` ends the process. `struck` hears of each fault, right after it was decided on, on the thread that
    // passed the point.
    struct Struck {
        FaultPoint point;
        FaultAction action;
        std::uint64_t subject;
        std::uint64_t pass;    // of the rule
        std::uint64_t number;  // of all that struck, from 1
    };
    struct Hooks {
        std::function<void()> die;
        std::function<void(const Struck&)> struck;
        std::span<const FaultPoint> points = {};  // rules of others are refused by add(); empty: it has all
    };
    Faults(FaultPlan plan, EventQueue& events, Hooks hooks);
    ~Faults();
    Faults(const Faults&) = delete;
    Faults& operator=(const Faults&) = delete;

    // --- at a point ---
    // What shall happen now. kHang and kDie are done here; the caller sees the other actions, of which its
    // point has said in plan.cc which it knows.
    Fault at(FaultPoint point, std::uint64_t subject = 0) {
        if (!is_armed(point)) return {};
        return strike(point, subject, {});
    }
    // There is a rule for that point: else no pass of it is counted, and nothing happens there.
    bool is_armed(FaultPoint point) const {
        return armed_[static_cast<unsigned>(point)].load(std::memory_order_relaxed);
    }
    // At kWire: `number` says which frame of this port it is, and `try_number` how often it was sent before.
    // What chance decides depends on these and the seed alone.
    struct Frame {
        std::uint64_t bits = 0, number = 0;
        unsigned try_number = 0;
    };
    Fault on_wire(std::uint64_t port, const Frame& frame) {
        if (!is_armed(FaultPoint::kWire)) return {};
        return strike(FaultPoint::kWire, port, frame);
    }
    // Calls `what` after `delay` of model time, unless the card is reset before. Card thread.
    void later(ModelTime delay, std::function<void()> what);
    // A bit of `bits` to turn over.
    static std::uint64_t bit_of(const Fault& fault, std::uint64_t bits) { return fault.random % bits; }

    // --- for the card ---
    // Stands still since kHang.
    bool hung() const { return hung_.load(std::memory_order_acquire); }
    // Reset: it stands still no more, and what is late does not come.
    void reset();

    // --- any thread ---
    const FaultPlan& plan() const { return plan_; }
    std::expected<void, std::string> add(std::string_view rules);
    void clear();
    // One line a rule: its number, how often its point was passed, how often it struck, and the rule.
    std::string hits() const;

    // Guest memory that is not what it seems: a page that reads as something else, or takes what is lost.
    static constexpr std::uint64_t kStandIn = 4096;
    std::uint8_t* stand_in() { return stand_in_->data(); }

  private:
    struct Live {
        FaultRule rule;
        std::uint64_t passed = 0;
        std::uint64_t struck = 0;
    };
    class Late;
    Fault strike(FaultPoint point, std::uint64_t subject, const Frame& frame);
    void arm();

    FaultPlan plan_;
    EventQueue& events_;
    Hooks hooks_;
    mutable std::mutex mutex_;  // rules_, struck_
    std::vector<Live> rules_;
    std::uint64_t struck_ = 0;
    std::array<std::atomic<bool>, kFaultPoints> armed_{};
    std::atomic<bool> hung_{false};
    std::vector<std::unique_ptr<Late>> late_;
    struct alignas(kStandIn) Page : std::array<std::uint8_t, kStandIn> {};
    std::unique_ptr<Page> stand_in_ = std::make_unique<Page>();
};

}  // namespace orrery::emu
