// One program in qemu-riscv64 and in our interpreter: FP with every rounding mode, flags and badly boxed
// operands, and the atomics that Unicorn gets wrong. All results agree bit for bit.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/unit/riscv/user_program.h"

namespace orrery::emu::test {
namespace {

using riscv::test::read_file;

constexpr std::uint64_t kRecords = 300'000;

struct Record {
    std::uint64_t op, a, b, c, result, state;
    bool operator==(const Record&) const = default;
};

std::string input(std::uint64_t seed) {
    const std::uint64_t words[] = {seed, kRecords};
    return {reinterpret_cast<const char*>(words), sizeof words};
}

std::string run_here(const std::string& elf, const std::string& in) {
    Config config;
    config.fp = true;
    std::string error;
    const std::string out = riscv::test::run_user_program(elf, in, config, error);
    EXPECT_EQ(error, "");
    return out;
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
    std::string out = read_file((folder / "out").string());
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
