// A made-up recording for tests of the commands: SRAM, registers and trace records as a test writes them.
#pragma once

#include <orrery/fw/inspect.h>
#include <orrery/fw/mailbox.h>
#include <orrery/fw/packet.h>
#include <orrery/fw/trace.h>
#include <orrery/hw/engine.h>
#include <orrery/hw/soc.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/step/commands/debugger.h"
#include "tools/step/session/session.h"

namespace orrery::step {

inline constexpr Time kUs = 1'000'000;

// Steps are made one after the other with the calls below; each record and each store takes a step of its
// own.
class Story final : public Session {
  public:
    Story();

    // Model time of what follows.
    Story& at(Time time);
    // A field of the firmware's tables.
    Story& set(std::string_view table, std::uint32_t row, std::string_view field, std::uint64_t value);
    Story& set_text(std::string_view table, std::uint32_t row, std::string_view field, std::string_view text);
    Story& record(std::uint32_t type, std::uint32_t a, std::uint64_t b,
                  std::initializer_list<std::uint64_t> words = {});
    // Steps that only take time, a cycle each; pc goes on by 4 with each.
    Story& idle(unsigned steps);

    // What the firmware does at these moments, in records and tables.
    Story& create(std::uint32_t queue, std::uint32_t context, std::uint32_t priority, std::uint32_t weight,
                  std::string_view name);
    Story& state(std::uint32_t queue, std::uint32_t state);
    Story& doorbell(std::uint32_t queue, std::uint64_t producer);
    Story& decision(std::uint32_t queue, std::uint32_t rule, std::uint32_t resource, std::uint32_t candidates,
                    std::uint64_t index);
    Story& start_job(std::uint32_t queue, std::uint32_t port, std::uint64_t index, std::uint64_t groups);
    Story& end_job(std::uint32_t queue, std::uint32_t port, std::uint64_t index, Time start, Time used,
                   std::uint32_t status = ORR_DONE_OK);
    // Ends the story; needed before it is used.
    std::unique_ptr<Story> finish();

    About info;

    const About& about() const override { return info; }
    const std::vector<Record>& records() const override { return records_; }
    const std::vector<ClockJump>& jumps() const override { return clock_jumps; }
    std::vector<ClockJump> clock_jumps;
    std::uint64_t end() const override { return steps_.size(); }
    Time end_time() const override { return now_; }
    std::uint64_t position() const override { return position_; }
    Time time() const override { return position_ < steps_.size() ? steps_[position_].time : now_; }
    bool running() const override { return true; }
    bool sleeping() const override { return false; }
    emu::HartState registers() const override;
    Sram sram() const override { return sram_; }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) const override;
    bool verify(const std::function<bool(double)>&) override { return true; }
    bool take_divergence() override { return false; }
    emu::ReplayStopInfo seek(std::uint64_t position) override;
    emu::ReplayStopInfo seek_time(Time time) override;
    emu::ReplayStopInfo run(std::uint64_t target, const emu::ReplayLimits& limits) override;
    emu::ReplayStopInfo run_back(std::uint64_t target, const emu::ReplayLimits& limits) override;

  private:
    struct Step {
        Time time = 0;
        std::uint64_t pc = 0;
        std::uint64_t address = 0;  // of a store; 0: none
        std::vector<std::uint8_t> before, after;
        bool record = false;
    };
    void add(Step step);
    void store(std::uint64_t address, std::vector<std::uint8_t> bytes);

    std::vector<Step> steps_;
    std::vector<Record> records_;
    std::vector<std::uint8_t> sram_;
    std::vector<std::uint8_t> initial_;
    std::uint64_t position_ = 0;
    std::uint64_t pc_ = ORR_SRAM_BASE + 0x400;
    Time now_ = 0;
};

// A debugger over a story, without colours, 100 columns wide.
std::unique_ptr<Debugger> debug(std::unique_ptr<Session> session);
// The text of a command's reply; of a failed one "error: ...".
std::string run(Debugger& debugger, std::string_view line);

// Three queues share two vector ports: "ui" of class high, "train" and "batch" of class normal with weights
// 64 and 128. Decision 0: the core for train, the only one; 1: a port for batch by share; 2: ui preempts
// train.
std::unique_ptr<Story> three_queues();
// Two queues that wait for each other's signal, and one that is woken by another.
std::unique_ptr<Story> deadlock();

}  // namespace orrery::step
