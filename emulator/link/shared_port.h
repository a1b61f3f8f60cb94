// Ports to a peer on the same host, by memory that both share (shared_link.h): kind `local` of a card, and
// kind `switch` of a switch.
#pragma once

#include "emulator/link/link_port.h"
#include "emulator/link/shared_link.h"

namespace orrery::emu {

// What both kinds do alike.
class SharedPort : public LinkPort {
  public:
    std::uint32_t state() const override;
    std::uint32_t lanes() const override;
    std::uint32_t mbps() const override;
    std::uint64_t without_room_ps() const override;
    const link::Counts& counts() const override;
    std::uint64_t peer_uid() const override;
    std::uint32_t peer_port() const override;
    const LinkConfig& config() const override;
    const std::string& down_reason() const override;
    void set_node(std::uint32_t node) override;
    bool set_grant(std::uint32_t slot, std::uint64_t base, std::uint64_t size, std::uint32_t node,
                   const GrantTerms& terms) override;
    bool clear_grant(std::uint32_t slot) override;
    void set_forward(bool on) override;
    void routes_changed() override;
    bool forwards() const override;
    bool peer_is_switch() const override;
    std::uint32_t peer_level() const override;
    std::uint32_t peer_node() const override;
    std::uint64_t peer_reach_version() const override;
    link::Reach peer_reach(std::uint32_t node) const override;
    std::uint64_t peer_switches_version() const override;
    std::optional<std::vector<link::SwitchWords>> peer_switches() const override;
    void poke_room() override;
    ModelTime next_arrival() const override;
    bool has_unseen() const override;
    unsigned arrivals() const override;
    void clock_jumped(ModelTime gap) override;
    void reset() override;
    bool settle(std::uint64_t offset) override;
    void unplug() override;
    void reset_link() override;
    std::expected<void, std::string> plug() override;
    std::uint64_t bytes_per_second() const override;
    LinkSend write(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data,
                   ModelTime at) override;
    std::uint32_t signal(std::uint32_t node, std::uint64_t offset, std::uint64_t value) override;
    std::uint32_t note(std::uint32_t node, std::span<const std::byte> data) override;
    std::uint32_t member(std::uint32_t multicast, std::uint32_t node, std::uint64_t base) override;
    std::uint32_t post(std::uint32_t node, std::uint64_t offset, std::span<const std::byte> data) override;
    link::Passed pass(const link::Passing& passing) override;
    LinkAsk read(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to, ModelTime at,
                 Asker& asker) override;
    LinkAsk reduce(std::uint32_t node, std::uint64_t offset, std::span<std::byte> to,
                   const LinkReduction& how, ModelTime at, Asker& asker) override;
    LinkAsk atomic(std::uint32_t node, std::uint64_t offset, const LinkAtomic& atomic, ModelTime at,
                   Asker& asker) override;
    LinkTold tell(std::uint32_t node, const BarrierWord& word) override;
    void abandon(std::uint32_t tag) override;
    void put_aside(std::uint32_t tag, bool aside) override;
    PeerPort::Refusals refused_by(std::uint32_t node) const override;
    unsigned lane_of(const link::Message& message) const override;
    void end_turn(unsigned lane, Event& event) override;
    void wait_for_room(std::uint32_t node, Event& event) override;
    void wait_to_pass(const link::Message& message, Event& event) override;
    void forget(Event& event) override;
    std::uint64_t session() const override;
    bool has_called(const Event& event) const override;
    bool congested() const override;
    bool peer_stands(std::chrono::steady_clock::time_point now) override;
    bool poll() override;
    void service() override;
    bool prepare_sleep() override;
    void after_sleep() override;
    int poll_fd() const override;

    SharedPort(LinkConfig config, link::Socket socket, EventQueue& events, Vram& vram, Counters& counters,
               Errors& errors, LinkHooks hooks)
        : link_(std::move(config), std::move(socket), events, vram, counters, errors, std::move(hooks)) {}

  protected:
    SharedLink link_;
};

class LocalPort final : public SharedPort {
  public:
    using SharedPort::SharedPort;
    void drain(bool force) override;
};

class SwitchPort final : public SharedPort {
  public:
    using SharedPort::SharedPort;
    std::uint64_t peer_lives() const override;
    void show_reach(std::uint32_t node, const link::Reach& reach) override;
    void tell_reach() override;
    void show_switches(std::span<const link::SwitchWords> all) override;
    std::uint64_t drains_wanted() const override;
    std::uint64_t drains_forced() const override;
    void show_drained(std::uint64_t drains) override;
    void answer(const link::Message& request, link::Status status) override;
    Taken taken() const override;
    void drain(bool force) override;
    void drain_here(bool force) override;
    void drain_peer(bool force) override;
};

}  // namespace orrery::emu
