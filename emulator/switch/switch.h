// A switch: a process that joins cards, and other switches, and passes on what is for the cards behind it.
// docs/switch.md.
//
// It is made of link ports, a routing table that fills itself (fabric.h), and what it knows of each pair of
// nodes (flows.h). It has no memory but its ports' buffers, and no node: nothing is for it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <expected>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/base/unique_fd.h"
#include "emulator/control/fault_control.h"
#include "emulator/faults/faults.h"
#include "emulator/link/link_port.h"
#include "emulator/link/multicast.h"
#include "emulator/link/reductions.h"
#include "emulator/memory/vram.h"
#include "emulator/probes/counters.h"
#include "emulator/probes/errors.h"
#include "emulator/switch/fabric.h"
#include "emulator/switch/flows.h"
#include "emulator/switch/model.h"
#include "emulator/switch/switches.h"
#include "emulator/sync/lockstep.h"
#include "emulator/time/event_queue.h"

namespace orrery::emu {

struct SwitchConfig {
    std::uint64_t uid = 0;
    std::uint32_t level = 0;  // those of a higher one are nearer to the top
    SwitchModel model;
    std::vector<LinkConfig> links;  // rates and uid are filled in from the model
    std::filesystem::path lockstep;
    std::optional<FaultPlan> faults;
    std::filesystem::path control;  // UNIX socket at which faults can be ordered; empty: none
    std::function<void()> die;      // empty: kills the process
    std::uint32_t spin_us = 200;
    std::FILE* log = nullptr;
};

class Switch {
  public:
    static std::expected<std::unique_ptr<Switch>, std::string> create(SwitchConfig config);
    ~Switch();
    Switch(const Switch&) = delete;
    Switch& operator=(const Switch&) = delete;

    // --- from one thread ---
    // Works until request_stop().
    void run();
    // One round. False: there was nothing to do.
    bool step();
    // The first part of it, for whoever drives cards and switches by their times.
    bool take_arrivals();
    EventQueue& events() { return events_; }

    // --- any thread ---
    void request_stop();
    Errors& errors() { return errors_; }
    const Counters& counters() const { return counters_; }

    // --- for tests ---
    LinkPort* port(unsigned number) { return links_[number].get(); }
    const Fabric& fabric() const { return fabric_; }
    const link::Reductions& reductions() const { return reductions_; }

  private:
    static constexpr unsigned kPorts = Fabric::kPorts;
    static constexpr unsigned kBurst = 64;

    // A peer wants all to arrive that it has sent. What has come by any port is passed on; then the switches
    // above do the same, if it came from below; and then what has come from them meanwhile.
    struct Drain {
        unsigned port = 0;
        std::uint64_t wanted = 0;
        // What has come by that port waits for nobody, and that is all of this switch that it is about.
        bool forced = false;
        enum Stage : std::uint8_t { kHere, kAbove, kAgain } stage = kHere;
        std::array<std::uint64_t, kPorts> until{};  // of what the stage counts, for each port
    };

    Switch(SwitchConfig config, Vram none);
    std::expected<void, std::string> build();
    std::expected<void, std::string> build_faults();
    std::expected<void, std::string> build_link(LinkConfig link);
    LinkHooks hooks_of(unsigned port);
    void jumped(ModelTime gap, unsigned port);
    void port_changed(unsigned port, std::uint32_t state);
    // The card there may have begun anew: what it had made and sent is forgotten then.
    void look_at_life(unsigned port);
    void forget_multicasts(unsigned port);
    void on_ended(ModelTime);

    // Shows and learns. False: there was nothing new.
    bool refresh();
    void publish();
    void publish_switches();
    link::SwitchWords about_itself() const;

    void look_for_drains();
    void on_drain(ModelTime);
    void begin(Drain& drain, Drain::Stage stage);
    bool is_done(const Drain& drain) const;

    // --- in lockstep ---
    bool keeps_step() const { return lockstep_ != nullptr && lockstep_->active(); }
    bool waits_for_others() const;
    ModelTime time_for_news();
    bool step_in_lockstep();

    void sleep();

    SwitchConfig config_;
    Counters counters_;
    Errors errors_;
    EventQueue events_;
    Vram none_;  // what a link port writes to: nobody is granted anything of it
    std::unique_ptr<Faults> faults_;
    std::unique_ptr<FaultControl> fault_control_;
    std::unique_ptr<sync::Lockstep> lockstep_;
    Fabric fabric_;
    Flows flows_;
    std::array<link::Multicasts, kPorts> multicasts_;
    link::Reductions reductions_;
    std::array<bool, kPorts> were_up_{};
    std::array<std::unique_ptr<LinkPort>, kPorts> links_;
    std::vector<LinkPort*> active_links_;
    std::array<std::uint32_t, kPorts> nodes_{};  // that peers showed last
    std::array<std::uint64_t, kPorts> lives_{};  // of cards, as they were when something came from them last
    std::array<std::uint32_t, kPorts> believed_{};  // of cards, as long as they are there and behind that
    bool stale_ = true;                             // fabric_ is
    using Shown = std::array<link::Reach, ORR_NODES>;
    std::array<std::unique_ptr<Shown>, kPorts> shown_;  // of each port that is up
    std::array<std::uint32_t, kPorts> losses_{};        // how often each port has gone down
    SwitchesByPort heard_;
    // Of which switches the peer of each port that is up was told.
    std::array<std::optional<std::vector<link::SwitchWords>>, kPorts> switches_shown_;
    std::deque<Drain> drains_;
    std::array<std::uint64_t, kPorts> drains_known_{};
    // What the peers of all ports had taken when that port's oldest drain began: who has not gone on since is
    // not waited for by a forced one.
    using Taken = std::array<LinkPort::Taken, kPorts>;
    std::array<std::unique_ptr<Taken>, kPorts> taken_;
    bool is_stuck(unsigned drained, const LinkPort* onward, unsigned lane) const;
    std::array<std::uint64_t, kPorts> here_asked_{}, here_done_{}, above_asked_{}, above_done_{};
    Event drain_, ended_;
    UniqueFd wake_fd_;
    std::atomic<bool> stop_{false};
};

}  // namespace orrery::emu
