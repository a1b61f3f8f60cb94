// The wire of one direction in model time: lanes, rate, and frames that it damages. A frame that comes
// damaged is refused by the receiver (a round trip) and sent again, before anything behind it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/faults/faults.h"
#include "emulator/link/counts.h"
#include "emulator/link/wire.h"
#include "emulator/model/resource.h"

namespace orrery::emu::link {

class Line {
  public:
    struct Config {
        std::uint32_t port = 0;
        std::uint32_t lanes = 0;
        std::uint64_t bytes_per_second = 0;  // of all lanes
        ModelTime latency = 0;
        std::uint32_t retries = 0;  // of a frame, before the link trains anew
        ModelTime retrain = 0;      // what that takes
    };
    // `faults` may be null: then no frame is ever damaged.
    Line(const Config& config, Faults* faults, Counts& counts);

    // Lanes that are good, as training begins.
    std::uint32_t offer();
    std::uint32_t lane_mbps() const;
    // So many are used, each at that rate or less. What was reserved before concerns no later link.
    void train(std::uint32_t width, std::uint32_t lane_mbps);
    // Frames are checked by the receiver, and may be damaged.
    bool frames() const { return faults_ != nullptr; }

    std::uint32_t width() const { return width_; }
    std::uint64_t bytes_per_second() const { return wire_.bytes_per_second(); }
    // Bytes and messages that lie in the ring by themselves are charged at least this, so that the ring is
    // never full of what the receiver's clock cannot reach: two cards that write to each other cannot block
    // each other.
    ModelTime min_message_ps() const { return min_message_ps_; }
    // By itself on the wire, once.
    ModelTime takes(std::uint64_t bytes) const;

    // Sends a message of so many bytes, no sooner than `begin`; its end leaves no sooner than `soonest`.
    // Gives the time when it has left for good; the message says the rest. Frames leave in order.
    ModelTime send(Message& message, ModelTime begin, std::uint64_t bytes, ModelTime soonest = 0);
    // Nothing is damaged at the moment.
    bool is_clean() const { return faults_ == nullptr || !faults_->is_armed(FaultPoint::kWire); }
    // The same of a signal on a wire that is clean: when its end arrives, and its head.
    struct Arrival {
        ModelTime end, head;
    };
    Arrival send_signal(ModelTime begin);
    // What is sent from now on is so much later, and the last one too.
    void delay(ModelTime time);
    // Why the link has to go down.
    const std::optional<std::string>& failed() const { return failed_; }

  private:
    // What the wire does to it: the time that takes, in front of the try that is good.
    ModelTime damage(Message& message, std::uint64_t bytes);
    ModelTime retrain();
    void narrow(std::uint32_t lanes);
    void set_rate(std::uint64_t bytes_per_second);

    Config config_;
    Faults* faults_;
    Counts& counts_;
    Resource wire_;  // in system time
    ModelTime min_message_ps_ = 0;
    std::uint32_t width_;
    std::uint32_t good_lanes_;
    std::uint64_t frame_ = 0;  // that were sent since power-on
    ModelTime last_sent_ = 0;
    std::optional<std::string> failed_;
};

inline Line::Arrival Line::send_signal(ModelTime begin) {
    if (faults_ != nullptr) ++frame_;
    // A fourth of what the least message is charged for, which is several picoseconds at any rate.
    static_assert(4 * sizeof(orr_semaphore) <= kLeastBytes);
    if (wire_.free_at() > begin) counts_.waited_ps.add(wire_.free_at() - begin);
    const ModelTime through = wire_.reserve_least(begin, sizeof(orr_semaphore), min_message_ps_);
    last_sent_ = through > last_sent_ ? through : last_sent_;
    return {.end = later(last_sent_, config_.latency),
            .head = later(last_sent_ > min_message_ps_ ? last_sent_ - min_message_ps_ : 0, config_.latency)};
}

}  // namespace orrery::emu::link
