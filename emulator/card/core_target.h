// The live control core as gdb's target. Everything happens on the card thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "emulator/core/watch.h"
#include "emulator/gdb/target.h"

namespace orrery::emu {

class Card;

class CoreTarget final : public gdb::Target {
  public:
    explicit CoreTarget(Card& card) : card_(card) {}

    HartState state() override;
    bool set_state(const HartState& state) override;
    // SRAM, ROM and the VRAM window: a register's read may change something, and host memory may be gone.
    bool read(std::uint64_t address, std::span<std::uint8_t> out) override;
    // SRAM.
    bool write(std::uint64_t address, std::span<const std::uint8_t> in) override;
    bool insert_breakpoint(std::uint64_t address) override;
    bool remove_breakpoint(std::uint64_t address) override;
    bool insert_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) override;
    bool remove_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) override;
    void resume(gdb::Resume how) override;
    bool poll(gdb::Stop& stop) override;
    void interrupt() override;
    void attach() override;
    void detach() override;
    // where; why, queues, waits and contexts by orrery-step
    std::string monitor(const std::string& command) override;

  private:
    bool set_points();

    Card& card_;
    std::vector<std::uint64_t> breakpoints_;
    std::vector<WatchRange> watches_;
    bool interrupted_ = false;
};

}  // namespace orrery::emu
