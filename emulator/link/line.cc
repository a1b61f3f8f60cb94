#include "emulator/link/line.h"

#include <algorithm>

#include <fmt/format.h>

#include "emulator/link/frame.h"
#include "emulator/time/rate.h"

namespace orrery::emu::link {

Line::Line(const Config& config, Faults* faults, Counts& counts)
    : config_(config), faults_(faults), counts_(counts), width_(config.lanes), good_lanes_(config.lanes) {
    set_rate(config_.bytes_per_second);
}

void Line::set_rate(std::uint64_t bytes_per_second) {
    wire_.set_rate(bytes_per_second);
    min_message_ps_ =
        std::max(duration_ps(kLeastBytes, bytes_per_second), 2 * config_.latency / kRingEntries + 1);
}

std::uint32_t Line::lane_mbps() const {
    constexpr std::uint64_t kMbit = 125'000;  // bytes
    return static_cast<std::uint32_t>(config_.bytes_per_second / kMbit / config_.lanes);
}

std::uint32_t Line::offer() {
    good_lanes_ = config_.lanes;
    if (faults_ != nullptr) {
        const Fault fault = faults_->at(FaultPoint::kTraining, config_.port);
        if (fault.action == FaultAction::kLanes) good_lanes_ = std::min(good_lanes_, fault.lanes);
    }
    return good_lanes_;
}

void Line::train(std::uint32_t width, std::uint32_t lane_mbps) {
    wire_ = Resource();
    width_ = width;
    last_sent_ = 0;
    failed_.reset();
    // Of this card's own lanes it is exact, whatever a lane's share is.
    set_rate(lane_mbps >= this->lane_mbps() ? config_.bytes_per_second * width / config_.lanes
                                            : std::uint64_t{lane_mbps} * 125'000 * width);
}

void Line::narrow(std::uint32_t lanes) {
    set_rate(std::max<std::uint64_t>(1, wire_.bytes_per_second() * lanes / width_));
    width_ = lanes;
}

ModelTime Line::takes(std::uint64_t bytes) const {
    if (bytes <= kLeastBytes) return min_message_ps_;
    return std::max(duration_ps(bytes, wire_.bytes_per_second()), min_message_ps_);
}

ModelTime Line::retrain() {
    counts_.retrains.add();
    return config_.retrain;
}

ModelTime Line::damage(Message& message, std::uint64_t bytes) {
    message.damaged = 0;
    message.noise = 0;
    ModelTime lost = 0;
    bool trained = false;
    for (std::uint32_t in_a_row = 0;;) {
        const Fault fault = faults_->on_wire(
            config_.port,
            {.bits = frame_bits(payload_of(message)), .number = frame_, .try_number = message.damaged});
        if (fault.action == FaultAction::kLanes && fault.lanes < width_) {
            narrow(fault.lanes);
            lost = later(lost, retrain());
        }
        if (fault.action != FaultAction::kCorrupt) return lost;
        if (message.damaged++ == 0) message.noise = fault.random;
        // To the receiver, and its word that this was nothing back.
        lost = later(lost, later(takes(bytes), 2 * config_.latency));
        if (in_a_row++ < config_.retries) {
            counts_.retries.add();
            continue;
        }
        if (trained) {
            failed_ =
                fmt::format("{} retries of one frame, and as many after training anew", config_.retries);
            return lost;
        }
        trained = true;
        in_a_row = 0;
        counts_.retries.add();
        lost = later(lost, retrain());
    }
}

ModelTime Line::send(Message& message, ModelTime begin, std::uint64_t bytes, ModelTime soonest) {
    ModelTime lost = 0;
    if (faults_ != nullptr) {
        lost = damage(message, bytes);
        ++frame_;
    }
    if (wire_.free_at() > begin) counts_.waited_ps.add(wire_.free_at() - begin);
    ModelTime sent = std::max({wire_.reserve(begin, bytes, min_message_ps_), soonest, last_sent_});
    if (lost != 0) {
        sent = later(sent, lost);
        wire_.hold(lost);
    }
    last_sent_ = sent;
    const ModelTime alone = takes(bytes);
    message.arrival_ps = later(sent, config_.latency);
    message.head_ps = later(sent > alone ? sent - alone : 0, config_.latency);
    return sent;
}

void Line::delay(ModelTime time) {
    wire_.hold(time);
    last_sent_ = later(last_sent_, time);
}

}  // namespace orrery::emu::link
