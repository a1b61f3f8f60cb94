#include "emulator/gdb/registers.h"

#include <array>

#include <fmt/format.h>

namespace orrery::emu::gdb {

namespace {

constexpr std::array<const char*, 32> kNames = {
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0",  "a1",  "a2", "a3", "a4", "a5",
    "a6",   "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6"};
constexpr unsigned kPc = 32;
// gdb gives CSR n the number 65 + n.
constexpr std::uint64_t kFirstCsr = 65;

struct Csr {
    std::uint32_t number;
    const char* name;
    std::uint64_t HartState::* field;  // nullptr: constant 0
};
constexpr std::array<Csr, 11> kCsrs = {{
    {0x300, "mstatus", &HartState::mstatus},
    {0x304, "mie", &HartState::mie},
    {0x305, "mtvec", &HartState::mtvec},
    {0x340, "mscratch", &HartState::mscratch},
    {0x341, "mepc", &HartState::mepc},
    {0x342, "mcause", &HartState::mcause},
    {0x343, "mtval", &HartState::mtval},
    {0x344, "mip", &HartState::mip},
    {0xb00, "mcycle", &HartState::mcycle},
    {0xb02, "minstret", &HartState::minstret},
    {0xf14, "mhartid", nullptr},
}};

const Csr* find_csr(std::uint64_t number) {
    for (const Csr& each : kCsrs) {
        if (kFirstCsr + each.number == number) return &each;
    }
    return nullptr;
}

}  // namespace

bool read_register(const HartState& state, std::uint64_t number, std::uint64_t& value) {
    if (number < 32) {
        value = number == 0 ? 0 : state.x[number];
        return true;
    }
    if (number == kPc) {
        value = state.pc;
        return true;
    }
    const Csr* const csr = find_csr(number);
    if (csr == nullptr) return false;
    value = csr->field != nullptr ? state.*csr->field : 0;
    return true;
}

bool write_register(HartState& state, std::uint64_t number, std::uint64_t value) {
    if (number < 32) {
        if (number != 0) state.x[number] = value;
        return true;
    }
    if (number == kPc) {
        state.pc = value;
        return true;
    }
    const Csr* const csr = find_csr(number);
    // The interrupt lines belong to the hardware.
    if (csr == nullptr || csr->field == nullptr || csr->field == &HartState::mip) return false;
    state.*csr->field = value;
    return true;
}

const std::string& target_description() {
    static const std::string text = [] {
        std::string out =
            "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n"
            "<architecture>riscv:rv64</architecture>\n<feature name=\"org.gnu.gdb.riscv.cpu\">\n";
        for (unsigned i = 0; i < kNames.size(); ++i) {
            const bool pointer = i == 2 || i == 3 || i == 4 || i == 8;
            const char* const type = i == 1 ? "code_ptr" : pointer ? "data_ptr" : "int";
            out += fmt::format("<reg name=\"{}\" bitsize=\"64\" type=\"{}\" regnum=\"{}\"/>\n", kNames[i],
                               type, i);
        }
        out += fmt::format("<reg name=\"pc\" bitsize=\"64\" type=\"code_ptr\" regnum=\"{}\"/>\n</feature>\n",
                           kPc);
        out += "<feature name=\"org.gnu.gdb.riscv.csr\">\n";
        for (const Csr& each : kCsrs) {
            out += fmt::format("<reg name=\"{}\" bitsize=\"64\" type=\"int\" group=\"csr\" regnum=\"{}\"/>\n",
                               each.name, kFirstCsr + each.number);
        }
        return out + "</feature>\n</target>\n";
    }();
    return text;
}

}  // namespace orrery::emu::gdb
