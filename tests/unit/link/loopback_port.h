// A link port of a kind of the tests' own: its peer is this card's own VRAM, a wire away. It keeps what a
// port has to and no more: no grants, nothing passed on, no answers.
#pragma once

#include <unistd.h>

#include <cstring>
#include <deque>
#include <utility>

#include <sys/eventfd.h>

#include "emulator/base/unique_fd.h"
#include "emulator/link/forwarder.h"
#include "emulator/link/link_port.h"
#include "emulator/memory/semaphore.h"
#include "emulator/time/rate.h"

namespace orrery::emu::test {

class LoopbackPort final : public LinkPort {
  public:
    static constexpr std::uint64_t kPeerUid = 77;
    static constexpr std::uint32_t kPeerNode = 2;

    LoopbackPort(LinkConfig config, EventQueue& events, Vram& vram, LinkHooks hooks)
        : config_(std::move(config)),
          events_(events),
          vram_(vram),
          hooks_(std::move(hooks)),
          arrival_(Event::of<&LoopbackPort::on_arrival>(this)),
          fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

    std::uint32_t state() const override { return state_; }
    std::uint32_t lanes() const override { return up() ? config_.lanes : 0; }
    std::uint32_t mbps() const override { return up() ? config_.gbps * 1000 : 0; }
    std::uint64_t peer_uid() const override { return up() ? kPeerUid : 0; }
    std::uint32_t peer_port() const override { return up() ? config_.port : 0; }
    std::uint32_t peer_node() const override { return up() ? kPeerNode : 0; }
    const LinkConfig& config() const override { return config_; }
    const link::Counts& counts() const override { return counts_; }
    std::uint64_t without_room_ps() const override { return 0; }
    const std::string& down_reason() const override { return reason_; }
    void set_node(std::uint32_t) override {}
    bool set_grant(std::uint32_t, std::uint64_t, std::uint64_t, std::uint32_t, const GrantTerms&) override {
        return false;
    }
    bool clear_grant(std::uint32_t) override { return false; }
    void reset() override { signals_.clear(); }
    void set_forward(bool) override {}
    void routes_changed() override {}
    bool forwards() const override { return false; }
    void drain(bool) override { hooks_.drained(config_.port, 1); }
    std::uint32_t note(std::uint32_t, std::span<const std::byte>) override { return ORR_FAULT_NO_ROUTE; }
    void unplug() override { plugged_ = false, set_state(ORR_LINK_DOWN); }
    std::expected<void, std::string> plug() override {
        return plugged_ = true, std::expected<void, std::string>();
    }
    void reset_link() override { set_state(ORR_LINK_DOWN); }
    void poke_room() override {}
    ModelTime next_arrival() const override { return arrival_.scheduled() ? arrival_.time() : kNever; }
    bool has_unseen() const override { return false; }
    unsigned arrivals() const override { return arrival_.scheduled() ? 1 : 0; }
    void clock_jumped(ModelTime) override {}
    link::Passed pass(const link::Passing&) override { return {}; }
    void wait_to_pass(const link::Message&, Event&) override {}
    unsigned lane_of(const link::Message&) const override { return 0; }
    void end_turn(unsigned, Event&) override {}
    bool has_called(const Event&) const override { return false; }
    bool congested() const override { return false; }
    bool peer_stands(std::chrono::steady_clock::time_point) override { return false; }
    bool poll() override { return plugged_ && !up() && (set_state(ORR_LINK_UP), true); }
    void service() override {}
    bool prepare_sleep() override { return up() || !plugged_; }
    void after_sleep() override {}
    int poll_fd() const override { return fd_.get(); }

    std::uint64_t bytes_per_second() const override { return std::uint64_t{config_.gbps} * 125'000'000; }
    LinkSend write(std::uint32_t, std::uint64_t offset, std::span<const std::byte> data, ModelTime) override {
        std::uint8_t* const at = vram_.at(offset, data.size());
        if (!up() || at == nullptr) return {.fault = up() ? ORR_FAULT_PEER_DENIED : ORR_FAULT_PEER_DOWN};
        std::memcpy(at, data.data(), data.size());
        free_at_ = std::max(free_at_, events_.now()) + duration_ps(data.size(), bytes_per_second());
        return {.bytes = data.size(), .sent_ps = free_at_};
    }
    LinkAsk read(std::uint32_t, std::uint64_t, std::span<std::byte>, ModelTime, Asker&) override {
        return {.fault = ORR_FAULT_NO_ROUTE};
    }
    LinkAsk atomic(std::uint32_t, std::uint64_t, const LinkAtomic&, ModelTime, Asker&) override {
        return {.fault = ORR_FAULT_NO_ROUTE};
    }
    void abandon(std::uint32_t) override {}
    void put_aside(std::uint32_t, bool) override {}
    Refusals refused_by(std::uint32_t) const override { return {}; }
    LinkTold tell(std::uint32_t, const BarrierWord&) override { return {.fault = ORR_FAULT_NO_ROUTE}; }
    void wait_for_room(std::uint32_t, Event& event) override { events_.schedule(event, events_.now()); }
    void forget(Event&) override {}
    std::uint64_t session() const override { return session_; }
    std::uint32_t signal(std::uint32_t, std::uint64_t offset, std::uint64_t value) override {
        if (!up() || vram_.at(offset, sizeof(orr_semaphore)) == nullptr) return ORR_FAULT_PEER_DOWN;
        signals_.push_back(
            {offset, value, std::max(free_at_, events_.now()) + config_.latency_ns * kPsPerNs});
        if (!arrival_.scheduled()) events_.schedule(arrival_, signals_.front().when);
        return ORR_FAULT_NONE;
    }
    std::uint32_t post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) override {
        return write(node, offset, data, kNever).fault;
    }
    bool settle(std::uint64_t) override { return true; }

  private:
    struct Signal {
        std::uint64_t offset, value;
        ModelTime when;
    };
    void set_state(std::uint32_t state) {
        if (std::exchange(state_, state) == state) return;
        if (!up()) ++session_;
        hooks_.changed(config_.port, state);
    }
    void on_arrival(ModelTime) {
        for (; !signals_.empty() && signals_.front().when <= events_.now(); signals_.pop_front()) {
            const Signal& first = signals_.front();
            raise_semaphore(vram_.at(first.offset, sizeof(orr_semaphore)), first.value, first.when);
            hooks_.poke(first.offset);
        }
        if (!signals_.empty()) events_.schedule(arrival_, signals_.front().when);
    }

    LinkConfig config_;
    EventQueue& events_;
    Vram& vram_;
    LinkHooks hooks_;
    Event arrival_;
    UniqueFd fd_;
    link::Counts counts_;
    std::string reason_;
    std::uint32_t state_ = ORR_LINK_DOWN;
    bool plugged_ = true;
    std::uint64_t session_ = 0;
    ModelTime free_at_ = 0;
    std::deque<Signal> signals_;
};

inline const LinkKind kLoopback{"loopback",
                                [](LinkConfig config, EventQueue& events, Vram& vram, Counters&, Errors&,
                                   LinkHooks hooks) -> std::expected<std::unique_ptr<LinkPort>, std::string> {
                                    return std::make_unique<LoopbackPort>(std::move(config), events, vram,
                                                                          std::move(hooks));
                                }};

}  // namespace orrery::emu::test
