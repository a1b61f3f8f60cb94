// Our interpreter as a machine.
#pragma once

#include <array>
#include <vector>

#include "emulator/core/hart.h"
#include "tests/unit/riscv/program.h"

namespace orrery::riscv::test {

class Interpreter : public Machine, private emu::Bus {
  public:
    enum class Memory : u8 {
        kPlain,
        kAbsent,  // no page is there before a fault has asked for it; then the instruction goes on, from
                  // vstart
        kMmio,    // every other page is registers, which take aligned accesses only
        kKept,  // plain; and what was decoded, and found out about an instruction, is kept from step to step
    };
    Interpreter(unsigned vlen, emu::Simd simd, Memory memory = Memory::kPlain);
    u64 resumed() const { return resumed_; }
    u64 accesses() const { return accesses_; }  // to registers
    const char* name() const override { return name_.c_str(); }
    std::vector<Observation> run(const Program& program) override;
    // What the hart counted in each step of the last program.
    const std::vector<emu::WorkCounts>& work() const { return work_; }

  private:
    emu::PageRef translate(u64 va, emu::Access access) override;
    bool load(u64 va, unsigned size, u64& value) override;
    bool store(u64 va, unsigned size, u64 value) override;
    void prepare(const Step& step, model::State& state);
    u64 place(u32 instruction);
    Observation look(emu::StopReason reason) const;

    std::string name_;
    Memory kind_;
    u32 there_ = ~0u;          // pages of the window, a bit each
    std::vector<u32> placed_;  // instructions that have their own place in the code
    std::vector<emu::WorkCounts> work_;
    u64 resumed_ = 0, accesses_ = 0;
    alignas(8) std::array<u8, 4096> code_{};
    alignas(8) std::array<u8, model::kWindowBytes> memory_{};
    emu::Hart hart_;
};

}  // namespace orrery::riscv::test
