// Vector programs in C, by intrinsics and by the compiler, give the same results at every VLEN, in our
// interpreter and in qemu-riscv64, which stops at 1,024; and those of the same programs in scalar code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "tests/unit/riscv/qemu.h"
#include "tests/unit/riscv/user_program.h"

namespace orrery::riscv::test {
namespace {

std::string in_qemu(unsigned vlen) {
    const std::string command = qemu_of_tree() + qemu_options(vlen) + ORRERY_PROGRAMS_ELF;
    FILE* pipe = popen(command.c_str(), "r");
    std::string out;
    for (int c = 0; pipe != nullptr && (c = std::fgetc(pipe)) != EOF;)
        out += static_cast<char>(c);
    EXPECT_TRUE(pipe != nullptr && pclose(pipe) == 0) << command;
    return out;
}

std::string in_interpreter(unsigned vlen, emu::Simd simd) {
    emu::Config config;
    config.fp = true;
    config.vlen = vlen;
    config.simd = simd;
    std::string error;
    const std::string out = run_user_program(read_file(ORRERY_PROGRAMS_ELF), "", config, error);
    EXPECT_EQ(error, "") << "vlen " << vlen << ", " << to_string(simd);
    return out;
}

TEST(Programs, AreRightAndDoNotDependOnVlen) {
    const std::string first = in_interpreter(128, emu::Simd::kPortable);
    EXPECT_EQ(first.find("WRONG"), std::string::npos) << "vector and scalar code differ:\n" << first;
    EXPECT_GT(std::count(first.begin(), first.end(), '\n'), 150);
    for (const unsigned vlen : {128u, 256u, 512u, 1024u, 2048u, 4096u})
        for (const emu::Simd simd : {emu::Simd::kPortable, emu::Simd::kAvx2, emu::Simd::kAvx512})
            if (emu::simd_usable(simd))
                EXPECT_EQ(in_interpreter(vlen, simd), first) << "vlen " << vlen << ", " << to_string(simd);
    for (const unsigned vlen : {128u, 512u, 1024u})
        EXPECT_EQ(in_qemu(vlen), first) << "qemu, vlen " << vlen;
}

}  // namespace
}  // namespace orrery::riscv::test
