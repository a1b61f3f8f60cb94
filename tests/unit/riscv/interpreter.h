// Our interpreter as a machine.
#pragma once

#include <array>

#include "emulator/core/hart.h"
#include "tests/unit/riscv/program.h"

namespace orrery::riscv::test {

class Interpreter : public Machine, private emu::Bus {
  public:
    // With `absent`, an instruction finds none of the memory: each page appears once a fault has asked for
    // it, and the instruction is executed again, from vstart on.
    Interpreter(unsigned vlen, emu::Simd simd, bool absent = false);
    u64 resumed() const { return resumed_; }
    const char* name() const override { return name_.c_str(); }
    std::vector<Observation> run(const Program& program) override;

  private:
    emu::PageRef translate(u64 va, emu::Access access) override;
    bool load(u64, unsigned, u64&) override { return false; }
    bool store(u64, unsigned, u64) override { return false; }
    void prepare(const Step& step, model::State& state);
    Observation look(emu::StopReason reason) const;

    std::string name_;
    bool absent_;
    u32 there_ = ~0u;  // pages of the window, a bit each
    u64 resumed_ = 0;
    alignas(8) std::array<u8, 4096> code_{};
    alignas(8) std::array<u8, model::kWindowBytes> memory_{};
    emu::Hart hart_;
};

}  // namespace orrery::riscv::test
