#include "tests/unit/core/unicorn_oracle.h"

#include <unicorn/unicorn.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace orrery::emu::test {
namespace {

void check(uc_err error) {
    if (error != UC_ERR_OK) throw std::runtime_error(uc_strerror(error));
}

}  // namespace

UnicornOracle::UnicornOracle(std::uint64_t base, std::span<std::uint8_t> ram)
    : base_(base), size_(ram.size()), ram_(ram) {
    check(uc_open(UC_ARCH_RISCV, UC_MODE_RISCV64, &uc_));
    check(uc_mem_map_ptr(uc_, base, ram.size(), UC_PROT_ALL, ram.data()));
    // FP starts switched off.
    std::uint64_t mstatus = 0;
    check(uc_reg_read(uc_, UC_RISCV_REG_MSTATUS, &mstatus));
    mstatus |= 3u << 13;
    check(uc_reg_write(uc_, UC_RISCV_REG_MSTATUS, &mstatus));
}

UnicornOracle::~UnicornOracle() {
    uc_close(uc_);
}

void UnicornOracle::set(const HartState& state, bool fp) {
    for (int i = 1; i < 32; ++i)
        check(uc_reg_write(uc_, UC_RISCV_REG_X0 + i, &state.x[i]));
    if (fp) {
        for (int i = 0; i < 32; ++i)
            check(uc_reg_write(uc_, UC_RISCV_REG_F0 + i, &state.f[i]));
        const std::uint64_t fcsr = state.fcsr;
        check(uc_reg_write(uc_, UC_RISCV_REG_FCSR, &fcsr));
    }
    check(uc_reg_write(uc_, UC_RISCV_REG_PC, &state.pc));
}

HartState UnicornOracle::get(bool fp) const {
    HartState state;
    for (int i = 1; i < 32; ++i)
        check(uc_reg_read(uc_, UC_RISCV_REG_X0 + i, &state.x[i]));
    if (fp) {
        for (int i = 0; i < 32; ++i)
            check(uc_reg_read(uc_, UC_RISCV_REG_F0 + i, &state.f[i]));
        std::uint64_t fcsr = 0;
        check(uc_reg_read(uc_, UC_RISCV_REG_FCSR, &fcsr));
        state.fcsr = static_cast<std::uint32_t>(fcsr);
    }
    check(uc_reg_read(uc_, UC_RISCV_REG_PC, &state.pc));
    return state;
}

std::string UnicornOracle::run(std::uint64_t until, std::uint64_t count) {
    std::uint64_t pc = 0;
    check(uc_reg_read(uc_, UC_RISCV_REG_PC, &pc));
    // The memory changed behind its back.
    uc_ctl_remove_cache(uc_, base_, base_ + size_);
    const uc_err error = uc_emu_start(uc_, pc, until, 0, count);
    return error == UC_ERR_OK ? "" : uc_strerror(error);
}

std::string UnicornOracle::run(std::uint64_t until, std::uint64_t count, ClassCounts& executed) {
    struct Seen {
        UnicornOracle& oracle;
        ClassCounts& executed;
    } seen{*this, executed};
    const auto look = [](uc_engine*, std::uint64_t pc, std::uint32_t size, void* user) {
        const Seen& into = *static_cast<Seen*>(user);
        std::uint32_t bits = 0;
        const auto code = into.oracle.ram_.subspan(pc - into.oracle.base_, size);
        std::copy(code.begin(), code.end(), reinterpret_cast<std::uint8_t*>(&bits));
        into.executed.add(bits);
    };
    void (*const hook)(uc_engine*, std::uint64_t, std::uint32_t, void*) = look;
    uc_hook handle = 0;
    check(uc_hook_add(uc_, &handle, UC_HOOK_CODE, reinterpret_cast<void*>(hook), &seen, 1, 0));
    const std::string error = run(until, count);
    check(uc_hook_del(uc_, handle));
    return error;
}

}  // namespace orrery::emu::test
