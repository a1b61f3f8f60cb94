// Our interpreter as a machine.
#pragma once

#include <array>

#include "emulator/core/hart.h"
#include "tests/unit/riscv/program.h"

namespace orrery::riscv::test {

class Interpreter : public Machine, private emu::Bus {
  public:
    Interpreter(unsigned vlen, emu::Simd simd);
    const char* name() const override { return name_.c_str(); }
    std::vector<Observation> run(const Program& program) override;

  private:
    emu::PageRef translate(u64 va, emu::Access access) override;
    bool load(u64, unsigned, u64&) override { return false; }
    bool store(u64, unsigned, u64) override { return false; }
    void prepare(const Step& step, model::State& state);
    Observation look(emu::StopReason reason) const;

    std::string name_;
    alignas(8) std::array<u8, 4096> code_{};
    alignas(8) std::array<u8, model::kWindowBytes> memory_{};
    emu::Hart hart_;
};

}  // namespace orrery::riscv::test
