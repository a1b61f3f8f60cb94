#include "emulator/gdb/vector_registers.h"

#include <array>

#include <fmt/format.h>

#include <orrery/hw/kernel_abi.h>

#include "emulator/gdb/registers.h"

namespace orrery::emu::gdb {

namespace {

// gdb's own numbers.
constexpr std::uint64_t kPc = 32, kFirstFloat = 33, kFirstCsr = 65, kFirstVector = 4162;
constexpr std::uint64_t kFcsr = kFirstCsr + 3;
constexpr std::uint64_t kVstart = kFirstCsr + 8, kVxsat = kFirstCsr + 9, kVxrm = kFirstCsr + 10,
                        kVl = kFirstCsr + 0xc20, kVtype = kFirstCsr + 0xc21;

constexpr std::array<const char*, 32> kFloats = {"ft0", "ft1", "ft2",  "ft3",  "ft4", "ft5", "ft6",  "ft7",
                                                 "fs0", "fs1", "fa0",  "fa1",  "fa2", "fa3", "fa4",  "fa5",
                                                 "fa6", "fa7", "fs2",  "fs3",  "fs4", "fs5", "fs6",  "fs7",
                                                 "fs8", "fs9", "fs10", "fs11", "ft8", "ft9", "ft10", "ft11"};

struct Csr {
    std::uint32_t number;
    const char* name;
    unsigned bits;
};
// Of the vector extension: gdb reads vl and vlenb for what is in vector registers.
constexpr std::array<Csr, 7> kVectorCsrs = {{{8, "vstart", 64},
                                             {9, "vxsat", 8},
                                             {10, "vxrm", 8},
                                             {15, "vcsr", 64},
                                             {0xc20, "vl", 64},
                                             {0xc21, "vtype", 64},
                                             {0xc22, "vlenb", 64}}};
constexpr std::array<Csr, 13> kCardCsrs = {{{ORR_CSR_GROUP_X, "group_x", 64},
                                            {ORR_CSR_GROUP_Y, "group_y", 64},
                                            {ORR_CSR_GROUP_Z, "group_z", 64},
                                            {ORR_CSR_ITEM_X, "item_x", 64},
                                            {ORR_CSR_ITEM_Y, "item_y", 64},
                                            {ORR_CSR_ITEM_Z, "item_z", 64},
                                            {ORR_CSR_GRID_X, "grid_x", 64},
                                            {ORR_CSR_GRID_Y, "grid_y", 64},
                                            {ORR_CSR_GRID_Z, "grid_z", 64},
                                            {ORR_CSR_BLOCK_X, "block_x", 64},
                                            {ORR_CSR_BLOCK_Y, "block_y", 64},
                                            {ORR_CSR_BLOCK_Z, "block_z", 64},
                                            {ORR_CSR_CORE, "core", 64}}};

template <class Word>
std::span<std::uint8_t> bytes_of(Word& word) {
    return {reinterpret_cast<std::uint8_t*>(&word), sizeof word};
}

std::string reg(const char* name, unsigned bits, const char* type, std::uint64_t number, const char* group) {
    return fmt::format(R"(<reg name="{}" bitsize="{}" type="{}" regnum="{}" group="{}"/>)"
                       "\n",
                       name, bits, type, number, group);
}

// Elements of each width, as gdb shows a vector register.
std::string vector_types(std::uint32_t vlen) {
    struct Element {
        const char* field;
        const char* type;
        unsigned bits;
    };
    constexpr std::array<Element, 7> kElements = {{{"b", "uint8", 8},
                                                   {"s", "uint16", 16},
                                                   {"w", "uint32", 32},
                                                   {"l", "uint64", 64},
                                                   {"h", "ieee_half", 16},
                                                   {"f", "ieee_single", 32},
                                                   {"d", "ieee_double", 64}}};
    std::string out, fields;
    for (const Element& each : kElements) {
        out += fmt::format("<vector id=\"v{0}\" type=\"{1}\" count=\"{2}\"/>\n", each.field, each.type,
                           vlen / each.bits);
        fields += fmt::format("<field name=\"{0}\" type=\"v{0}\"/>", each.field);
    }
    return out + "<union id=\"riscv_vector\">" + fields + "</union>\n";
}

}  // namespace

std::string vector_description(std::uint32_t vlen) {
    // With its core registers, which are the same.
    std::string out = target_description();
    out.insert(out.find("<feature"), "<osabi>none</osabi>\n");
    out.erase(out.find("<feature name=\"org.gnu.gdb.riscv.csr\">"));
    out += "<feature name=\"org.gnu.gdb.riscv.fpu\">\n";
    for (unsigned i = 0; i < kFloats.size(); ++i)
        out += reg(kFloats[i], 64, "ieee_double", kFirstFloat + i, "float");
    out += reg("fflags", 32, "int", kFirstCsr + 1, "float") + reg("frm", 32, "int", kFirstCsr + 2, "float") +
           reg("fcsr", 32, "int", kFcsr, "float") + "</feature>\n";
    if (vlen != 0) {
        out += "<feature name=\"org.gnu.gdb.riscv.vector\">\n" + vector_types(vlen);
        for (unsigned i = 0; i < kVectorRegisters; ++i)
            out += reg(fmt::format("v{}", i).c_str(), vlen, "riscv_vector", kFirstVector + i, "vector");
        out += "</feature>\n";
    }
    out += "<feature name=\"org.gnu.gdb.riscv.csr\">\n";
    for (const Csr& each : kVectorCsrs) {
        if (vlen != 0) out += reg(each.name, each.bits, "int", kFirstCsr + each.number, "vector");
    }
    out += "</feature>\n<feature name=\"org.orrery.kernel\">\n";
    for (const Csr& each : kCardCsrs)
        out += reg(each.name, each.bits, "int", kFirstCsr + each.number, "general");
    return out + "</feature>\n</target>\n";
}

bool is_vector_register(std::uint64_t number) {
    return (number >= kFirstVector && number < kFirstVector + kVectorRegisters) || number == kVstart ||
           number == kVxsat || number == kVxrm || number == kVl || number == kVtype;
}

std::span<std::uint8_t> register_bytes(VectorHart& hart, std::uint64_t number, std::uint32_t vlen) {
    if (number < 32) return bytes_of(hart.state.x[number]);
    if (number == kPc) return bytes_of(hart.state.pc);
    if (number < kFirstFloat + 32) return bytes_of(hart.state.f[number - kFirstFloat]);
    if (number == kFcsr) return bytes_of(hart.state.fcsr);
    if (vlen == 0) return {};
    if (number >= kFirstVector && number < kFirstVector + kVectorRegisters)
        return std::span(hart.vectors.v).subspan((number - kFirstVector) * (vlen / 8), vlen / 8);
    if (number == kVstart) return bytes_of(hart.vectors.vstart);
    if (number == kVxsat) return bytes_of(hart.vectors.vxsat);
    if (number == kVxrm) return bytes_of(hart.vectors.vxrm);
    if (number == kVl) return bytes_of(hart.vectors.vl);
    if (number == kVtype) return bytes_of(hart.vectors.vtype);
    return {};
}

std::uint32_t csr_number(std::uint64_t number) {
    return number > kFirstCsr && number < kFirstCsr + 4096 ? static_cast<std::uint32_t>(number - kFirstCsr)
                                                           : 0;
}

}  // namespace orrery::emu::gdb
