// The vector cores' harts as gdb's target: those that have a work-group are its threads. Everything happens
// on the card thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "emulator/card/kernel_modules.h"
#include "emulator/engines/kernel_debugger.h"
#include "emulator/gdb/target.h"

namespace orrery::emu {

class KernelTarget final : public gdb::Target {
  public:
    // `note`: for the card's log.
    KernelTarget(KernelDebugger& debugger, std::function<void(const std::string& text)> note);

    // Thread N is core N - 1. Cores without a group are none; if no core has one, core 0 is there all the
    // same: gdb knows no program without threads.
    std::vector<Thread> threads() override;
    bool select(std::uint64_t thread) override;
    std::uint64_t selected() const override { return core_ + 1ull; }

    const std::string& description() const override { return description_; }
    std::vector<std::uint8_t> read_register(std::uint64_t number) override;
    gdb::Written write_register(std::uint64_t number, std::span<const std::uint8_t> bytes) override;
    HartState state() override { return debugger_.state(core_); }
    bool set_state(const HartState& state) override { return debugger_.set_state(core_, state); }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) override;
    bool write(std::uint64_t address, std::span<const std::uint8_t> in) override;

    bool insert_breakpoint(std::uint64_t address) override;
    bool remove_breakpoint(std::uint64_t address) override;
    bool insert_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) override;
    bool remove_watchpoint(std::uint64_t address, std::uint64_t bytes, gdb::Watch kind) override;

    std::string libraries() override;
    void resume(gdb::Resume how) override;
    bool poll(gdb::Stop& stop) override;
    void interrupt() override;
    void attach() override;
    void detach() override;
    // modules
    std::string monitor(const std::string& command) override;

  private:
    // Where a launch's code comes from; true: that is new.
    bool learn(std::uint32_t core);
    bool trap(gdb::Stop& stop, const KernelStop& why) const;
    std::uint64_t constant(std::uint32_t csr) const;

    KernelDebugger& debugger_;
    std::function<void(const std::string& text)> note_;
    std::string description_;
    std::uint32_t core_ = 0;
    bool interrupted_ = false;
    std::vector<std::uint64_t> breakpoints_;
    std::vector<KernelWatch> watches_;
    std::vector<KernelModule> modules_;
};

}  // namespace orrery::emu
