#include "tools/step/program/call_frames.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>

#include <cstdlib>
#include <span>

namespace orrery::step {
namespace {

constexpr unsigned kReturnAddress = 1, kStackPointer = 2, kRegisters = 32;

// What an expression of the call frame information gives.
struct Location {
    enum class Kind : std::uint8_t { kMemory, kValue, kRegister } kind = Kind::kMemory;
    std::uint64_t value = 0;  // address, value, or number
};

// The few operations that rules of call frames are made of; nothing for any other one.
std::optional<Location> evaluate(std::span<const Dwarf_Op> ops, const FrameRegisters& registers,
                                 std::optional<std::uint64_t> cfa) {
    std::vector<std::uint64_t> stack;
    Location result;
    const auto of_register = [&](Dwarf_Word number, Dwarf_Word offset) {
        if (number >= kRegisters) return false;
        stack.push_back(registers.x[number] + offset);
        return true;
    };
    for (const Dwarf_Op& op : ops) {
        if (op.atom >= DW_OP_breg0 && op.atom <= DW_OP_breg31) {
            if (!of_register(op.atom - DW_OP_breg0, op.number)) return std::nullopt;
        } else if (op.atom >= DW_OP_reg0 && op.atom <= DW_OP_reg31) {
            return Location{Location::Kind::kRegister, static_cast<std::uint64_t>(op.atom - DW_OP_reg0)};
        } else if (op.atom == DW_OP_regx) {
            return Location{Location::Kind::kRegister, op.number};
        } else if (op.atom == DW_OP_bregx) {
            if (!of_register(op.number, op.number2)) return std::nullopt;
        } else if (op.atom == DW_OP_call_frame_cfa && cfa) {
            stack.push_back(*cfa);
        } else if (op.atom == DW_OP_plus_uconst && !stack.empty()) {
            stack.back() += op.number;
        } else if (op.atom == DW_OP_stack_value) {
            result.kind = Location::Kind::kValue;
        } else {
            return std::nullopt;
        }
    }
    if (stack.size() != 1) return std::nullopt;
    result.value = stack.back();
    return result;
}

struct FrameEnd {
    void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};

}  // namespace

struct CallFrames::Held {
    std::vector<std::uint8_t> bytes;
    Elf* elf = nullptr;
    Dwarf* dwarf = nullptr;
    Dwarf_CFI* cfi = nullptr;  // of the Dwarf

    explicit Held(std::vector<std::uint8_t> from) : bytes(std::move(from)) {
        elf_version(EV_CURRENT);
        elf = elf_memory(reinterpret_cast<char*>(bytes.data()), bytes.size());
        if (elf != nullptr) dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
        if (dwarf != nullptr) cfi = dwarf_getcfi(dwarf);
    }
    ~Held() {
        if (dwarf != nullptr) dwarf_end(dwarf);
        if (elf != nullptr) elf_end(elf);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;
};

CallFrames::CallFrames() = default;
CallFrames::CallFrames(std::vector<std::uint8_t> elf) : held_(std::make_unique<Held>(std::move(elf))) {}
CallFrames::~CallFrames() = default;
CallFrames::CallFrames(CallFrames&&) noexcept = default;
CallFrames& CallFrames::operator=(CallFrames&&) noexcept = default;

std::optional<FrameRegisters> CallFrames::caller(const FrameRegisters& here, const ReadWord& read) const {
    if (!held_ || held_->cfi == nullptr) return std::nullopt;
    Dwarf_Frame* raw = nullptr;
    if (dwarf_cfi_addrframe(held_->cfi, here.pc, &raw) != 0) return std::nullopt;
    const std::unique_ptr<Dwarf_Frame, FrameEnd> frame(raw);
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (dwarf_frame_cfa(frame.get(), &ops, &count) != 0) return std::nullopt;
    const auto cfa = evaluate({ops, count}, here, std::nullopt);
    if (!cfa) return std::nullopt;

    FrameRegisters out;
    for (unsigned number = 1; number < kRegisters; ++number) {
        out.x[number] = here.x[number];
        Dwarf_Op memory[3];
        if (dwarf_frame_register(frame.get(), static_cast<int>(number), memory, &ops, &count) != 0)
            return std::nullopt;
        if (count == 0) continue;  // kept, or not known: what a caller may not rely on
        const auto rule = evaluate({ops, count}, here, cfa->value);
        if (!rule) return std::nullopt;
        if (rule->kind == Location::Kind::kValue) {
            out.x[number] = rule->value;
        } else if (rule->kind == Location::Kind::kRegister) {
            if (rule->value >= kRegisters) return std::nullopt;
            out.x[number] = here.x[rule->value];
        } else if (!read(rule->value, out.x[number])) {
            return std::nullopt;
        }
    }
    out.pc = out.x[kReturnAddress];
    out.x[kStackPointer] = cfa->value;
    // A frame below its caller, or the same code again, is no call.
    if (out.pc == 0 || out.sp() < here.sp() || (out.sp() == here.sp() && out.pc == here.pc))
        return std::nullopt;
    return out;
}

}  // namespace orrery::step
