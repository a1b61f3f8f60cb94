// A recording as a debugger's target: it runs in both directions, and nothing in it can be changed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/api/replayer.h"
#include "emulator/gdb/target.h"

namespace orrery::emu::gdb {

class ReplayTarget final : public Target {
  public:
    using Monitor = std::function<std::optional<std::string>(const std::string& command)>;
    // The replayer and the program's ELF are borrowed. `monitor` and `program` may be empty.
    explicit ReplayTarget(Replayer& replayer, Monitor monitor = {},
                          std::span<const std::uint8_t> program = {})
        : replayer_(replayer), monitor_(std::move(monitor)), program_(program) {}

    HartState state() override { return replayer_.state(); }
    bool set_state(const HartState&) override { return false; }
    bool read(std::uint64_t address, std::span<std::uint8_t> out) override {
        return replayer_.read(address, out);
    }
    bool write(std::uint64_t, std::span<const std::uint8_t>) override { return false; }
    bool insert_breakpoint(std::uint64_t address) override;
    bool remove_breakpoint(std::uint64_t address) override;
    bool insert_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) override;
    bool remove_watchpoint(std::uint64_t address, std::uint64_t bytes, Watch kind) override;
    bool can_reverse() const override { return true; }
    std::span<const std::uint8_t> program() const override { return program_; }
    void resume(Resume how) override;
    bool poll(Stop& stop) override;
    void interrupt() override { interrupted_ = true; }
    void attach() override {}
    void detach() override;
    // where, seek STEP, time PS, record next, record previous, and what `monitor` knows
    std::string monitor(const std::string& command) override;

  private:
    Watch kind_of(const ReplayStopInfo& info) const;

    Replayer& replayer_;
    Monitor monitor_;
    std::span<const std::uint8_t> program_;
    ReplayLimits limits_;
    Resume how_ = Resume::kStep;
    bool interrupted_ = false;
};

}  // namespace orrery::emu::gdb
