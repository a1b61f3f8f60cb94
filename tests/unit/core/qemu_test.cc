// One program in qemu-riscv64 and in our interpreter: FP with every rounding mode, flags and badly boxed
// operands, and the atomics that Unicorn gets wrong. All results agree bit for bit.
#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/unit/core/encode.h"
#include "tests/unit/core/machine.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kRecords = 300'000;

struct Record {
    std::uint64_t op, a, b, c, result, state;
    bool operator==(const Record&) const = default;
};

std::string read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

std::string input(std::uint64_t seed) {
    const std::uint64_t words[] = {seed, kRecords};
    return {reinterpret_cast<const char*>(words), sizeof words};
}

// Loads a static ELF for the address range of TestBus.
bool load_elf(const std::string& elf, Machine& machine) {
    Elf64_Ehdr header;
    if (elf.size() < sizeof header) return false;
    std::memcpy(&header, elf.data(), sizeof header);
    for (unsigned i = 0; i < header.e_phnum; ++i) {
        Elf64_Phdr segment;
        std::memcpy(&segment, elf.data() + header.e_phoff + i * sizeof segment, sizeof segment);
        if (segment.p_type != PT_LOAD) continue;
        if (segment.p_vaddr < kRam || segment.p_vaddr + segment.p_memsz > kRam + kRamBytes) return false;
        std::memcpy(machine.bus.ram() + (segment.p_vaddr - kRam), elf.data() + segment.p_offset,
                    segment.p_filesz);
    }
    machine.hart.set_pc(header.e_entry);
    return true;
}

// The three system calls that the program makes.
std::string run_here(const std::string& elf, const std::string& in) {
    Config config = fp_config();
    config.trap_to_host = true;
    Machine m(config);
    if (!load_elf(elf, m)) return "";
    m.hart.set_x(sp, kRam + kRamBytes - 64);
    std::string out;
    for (;;) {
        const StopReason reason = m.hart.run(1'000'000);
        if (reason == StopReason::kBudget) continue;
        if (reason != StopReason::kTrap || m.hart.trap().cause != Cause::kEcall) {
            ADD_FAILURE() << to_string(reason) << ": " << to_string(m.hart.trap().cause) << std::hex << " at "
                          << m.hart.pc() << ", " << m.hart.trap().tval;
            return out;
        }
        const std::uint64_t call = m.hart.x(a7), offset = m.hart.x(a1) - kRam, size = m.hart.x(a2);
        if (call != 63 && call != 64) return out;
        if (offset > kRamBytes || size > kRamBytes - offset) {
            ADD_FAILURE() << "buffer out of bounds";
            return out;
        }
        std::uint8_t* memory = m.bus.ram() + offset;
        if (call == 63) std::memcpy(memory, in.data(), std::min<std::size_t>(size, in.size()));
        if (call == 64) out.append(reinterpret_cast<const char*>(memory), size);
        m.hart.set_x(a0, m.hart.x(a2));
        m.hart.set_pc(m.hart.pc() + 4);
    }
}

std::string run_in_qemu(const std::string& elf_path, const std::string& in) {
    char name[] = "/tmp/orrery-qemu-test-XXXXXX";
    if (mkdtemp(name) == nullptr) return "";
    const std::filesystem::path folder(name);
    std::ofstream(folder / "in", std::ios::binary) << in;
    const std::string command = std::string("'") + ORRERY_QEMU_RISCV64 + "' '" + elf_path + "' < '" +
                                (folder / "in").string() + "' > '" + (folder / "out").string() + "'";
    const int status = std::system(command.c_str());
    EXPECT_EQ(status, 0) << command;
    std::string out = read_file(folder / "out");
    std::filesystem::remove_all(folder);
    return out;
}

TEST(Qemu, FpAndAtomicsAgree) {
    const char* given = std::getenv("ORRERY_SEED");
    const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 0) : 20261121;
    std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
    const std::string elf = read_file(ORRERY_QEMU_GUEST);
    ASSERT_FALSE(elf.empty()) << ORRERY_QEMU_GUEST;
    const std::string ours = run_here(elf, input(seed));
    const std::string theirs = run_in_qemu(ORRERY_QEMU_GUEST, input(seed));
    ASSERT_EQ(ours.size(), kRecords * sizeof(Record));
    ASSERT_EQ(theirs.size(), ours.size());
    unsigned differences = 0;
    for (std::size_t i = 0; i < kRecords && differences < 10; ++i) {
        Record a, b;
        std::memcpy(&a, ours.data() + i * sizeof a, sizeof a);
        std::memcpy(&b, theirs.data() + i * sizeof b, sizeof b);
        if (a == b) continue;
        ++differences;
        ADD_FAILURE() << "record " << i << ": op " << a.op << std::hex << " (see qemu_guest.c) of " << a.a
                      << " " << a.b << " " << a.c << ": ours " << a.result << " state " << a.state
                      << ", qemu's " << b.result << " state " << b.state;
    }
}

}  // namespace
}  // namespace orrery::emu::test
