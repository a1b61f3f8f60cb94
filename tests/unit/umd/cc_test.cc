// orrery-cc as a user calls it: what it makes, what it refuses, and how it says so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace {

namespace fs = std::filesystem;

class CcTest : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "orrery-cc-test-XXXXXX").string();
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    std::string write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ / name) << text;
        return folder_ / name;
    }
    static std::string read(const fs::path& path) {
        std::ifstream in(path, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    // Exit status; what it printed is in output_.
    int run(const std::string& arguments, const std::string& environment = "") {
        const std::string command = fmt::format("cd {} && {} {} {} > output 2>&1", folder_.string(),
                                                environment, ORRERY_CC, arguments);
        const int status = std::system(command.c_str());
        output_ = read(folder_ / "output");
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }

    fs::path folder_;
    std::string output_;
};

constexpr const char* kGood =
    "#include <orrery/kernel.h>\n"
    "#include \"own.h\"\n"
    "ORR_KERNEL void twice(uint64_t* p) { p[orr::global_id()] *= FACTOR; }\n";

TEST_F(CcTest, MakesAModuleAndNothingElse) {
    write("k.cc", kGood);
    fs::create_directory(folder_ / "inc");
    write("inc/own.h", "");
    ASSERT_EQ(run("-O1 -g -I inc -D FACTOR=2 -o k.elf k.cc"), 0) << output_;
    EXPECT_EQ(output_, "");
    const std::string image = read(folder_ / "k.elf");
    EXPECT_EQ(orrModuleCheckData(image.data(), image.size()), orrSuccess) << orrGetLastErrorText();
    EXPECT_FALSE(fs::exists(folder_ / "k.elf.s"));
    ASSERT_EQ(run("--save-temps -Iinc -DFACTOR=2 k.cc"), 0) << output_;
    EXPECT_THAT(read(folder_ / "k.elf.s"), ::testing::HasSubstr("twice"));
}

TEST_F(CcTest, NamesTheHeadersForBuildTools) {
    write("shared.h", "");
    write("k.cc", "#include \"shared.h\"\n#include <orrery/kernel.h>\nORR_KERNEL void nothing() {}\n");
    ASSERT_EQ(run("-MD -o k.elf k.cc"), 0) << output_;
    EXPECT_THAT(read(folder_ / "k.elf.d"), ::testing::HasSubstr("shared.h"));
    ASSERT_EQ(run("-MF list -o k.elf k.cc"), 0) << output_;
    EXPECT_EQ(read(folder_ / "list"), read(folder_ / "k.elf.d"));
}

constexpr const char* kCaller =
    "#include <orrery/kernel.h>\n#include \"shared.h\"\n"
    "ORR_KERNEL void plus(uint64_t* p) { *p = add(*p, OTHER); }\n";
constexpr const char* kCallee =
    "#include <stdint.h>\n#include \"shared.h\"\nuint64_t add(uint64_t a, uint64_t b) { return a + b; }\n";

TEST_F(CcTest, MakesAModuleOfSeveralFiles) {
    write("shared.h", "#include <stdint.h>\nuint64_t add(uint64_t, uint64_t);\n#define OTHER 2\n");
    fs::create_directory(folder_ / "sub");
    write("k.cc", kCaller);
    write("sub/k.cc", kCallee);
    const auto good = [&](const char* name) {
        const std::string image = read(folder_ / name);
        return orrModuleCheckData(image.data(), image.size()) == orrSuccess;
    };
    ASSERT_EQ(run("-I . -MF list --save-temps k.cc sub/k.cc"), 0) << output_;
    EXPECT_TRUE(good("k.elf"));
    // The list has a rule for each source, both for the module.
    const std::string list = read(folder_ / "list");
    EXPECT_THAT(list, ::testing::HasSubstr("sub/k.cc"));
    EXPECT_NE(list.find("k.elf:"), list.rfind("k.elf:"));
    EXPECT_THAT(read(folder_ / "k.elf.0.k.s"), ::testing::HasSubstr("plus"));
    EXPECT_THAT(read(folder_ / "k.elf.1.k.s"), ::testing::HasSubstr("add"));
    // Objects, and an archive of one.
    ASSERT_EQ(run("-c -I . -MD k.cc"), 0) << output_;
    EXPECT_THAT(read(folder_ / "k.d"), ::testing::StartsWith("k.o:"));
    ASSERT_EQ(run("-c -I . -o sub/k.o sub/k.cc"), 0) << output_;
    ASSERT_EQ(run("-o objects.elf k.o sub/k.o"), 0) << output_;
    EXPECT_TRUE(good("objects.elf"));
    ASSERT_EQ(std::system(fmt::format("cd {} && ar rc sub/libadd.a sub/k.o", folder_.string()).c_str()), 0);
    EXPECT_EQ(run("-o archive.elf k.o"), 1) << "without it something is missing";
    EXPECT_THAT(output_, ::testing::HasSubstr("add"));
    ASSERT_EQ(run("-o archive.elf k.o -L sub -l add"), 0) << output_;
    EXPECT_TRUE(good("archive.elf"));
    ASSERT_EQ(run("-I. -o mixed.elf k.cc sub/libadd.a"), 0) << output_;
    EXPECT_TRUE(good("mixed.elf"));
}

TEST_F(CcTest, WhatHasNoNameGoesIntoTheCurrentFolder) {
    fs::create_directories(folder_ / "sources/more");
    for (const char* name : {"sources/k.cc", "sources/more/k.cpp", "sources/more/l.v2.cc"})
        write(name, "#include <orrery/kernel.h>\nORR_KERNEL void nothing() {}\n");
    ASSERT_EQ(run("-c -MD --save-temps sources/k.cc sources/more/l.v2.cc"), 0) << output_;
    ASSERT_EQ(run("sources/k.cc"), 0) << output_;
    for (const char* name : {"k.o", "k.d", "k.s", "l.v2.o", "l.v2.d", "l.v2.s", "k.elf"})
        EXPECT_TRUE(fs::exists(folder_ / name)) << name;
    EXPECT_EQ(std::distance(fs::recursive_directory_iterator(folder_ / "sources"), {}), 4);
    fs::remove(folder_ / "k.o");
    EXPECT_EQ(run("-c sources/k.cc sources/more/k.cpp"), 1);
    EXPECT_EQ(output_,
              "orrery-cc: sources/k.cc and sources/more/k.cpp would both become k.o: compile one of them "
              "with -o\n");
    EXPECT_FALSE(fs::exists(folder_ / "k.o"));
}

TEST_F(CcTest, CallsThatACompilerInventsAreThere) {
    write(
        "k.cc",
        "#include <orrery/kernel.h>\n"
        "struct Big { uint64_t word[100]; };\n"
        "ORR_KERNEL void copy(Big* p) { p[0] = p[1]; __builtin_memset(p + 2, orr::core(), sizeof(Big)); }\n");
    EXPECT_EQ(run("-o k.elf k.cc"), 0) << output_;
}

TEST_F(CcTest, ErrorsOfTheCompilerAndLinkerPassThrough) {
    write("syntax.cc", "this is no C++\n");
    EXPECT_EQ(run("-o k.elf syntax.cc"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("syntax.cc:1"));
    write("undefined.cc",
          "#include <orrery/kernel.h>\nvoid missing();\nORR_KERNEL void f(void*) { missing(); }\n");
    EXPECT_EQ(run("-o k.elf undefined.cc"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("missing"));
    write("empty.cc", "int not_a_kernel() { return 1; }\n");
    EXPECT_EQ(run("-o k.elf empty.cc"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("ORR_KERNEL"));
    write("constructor.cc",
          "#include <orrery/kernel.h>\nstruct S { S(); int x; };\nS::S() : x(orr::core()) {}\nS s;\n"
          "ORR_KERNEL void f(int* p) { *p = s.x; }\n");
    EXPECT_EQ(run("-o k.elf constructor.cc"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("constructors"));
    EXPECT_FALSE(fs::exists(folder_ / "k.elf")) << "a refused module stays";
}

TEST_F(CcTest, AnIsaThatNoCardHasIsRefused) {
    write("k.cc", "#include <orrery/kernel.h>\nORR_KERNEL void f(int* p) { *p = 1; }\n");
    EXPECT_EQ(run("-march=rv64gcv_zvl2048b -o k.elf k.cc"), 0) << output_;
    EXPECT_EQ(run("-march=rv64gcv_zvfh_zvfbfwma -o k.elf k.cc"), 0) << output_;
    EXPECT_EQ(run("-march=rv64gc_zbb -o zbb.elf k.cc"), 1);
    EXPECT_EQ(output_, "orrery-cc: zbb.elf: the module needs zbb, which no card has\n");
    EXPECT_EQ(run("-march=rv64gcv_zvl8192b -o wide.elf k.cc"), 1);
    EXPECT_EQ(output_, "orrery-cc: wide.elf: the module needs VLEN >= 8192, which no card has\n");
    EXPECT_FALSE(fs::exists(folder_ / "wide.elf"));
}

TEST_F(CcTest, MakesModulesWithSixteenBitFloatingPoint) {
    write("k.cc",
          "#include <orrery/kernel.h>\n#include <riscv_vector.h>\n"
          "struct Args { _Float16* x; unsigned long count; float factor; };\n"
          "ORR_KERNEL void scale(const Args* a) {\n"
          "    const unsigned long vl = __riscv_vsetvl_e16m1(a->count);\n"
          "    const vfloat16m1_t v = __riscv_vle16_v_f16m1(a->x, vl);\n"
          "    __riscv_vse16(a->x, __riscv_vfmul(v, static_cast<_Float16>(a->factor), vl), vl);\n"
          "}\n");
    ASSERT_EQ(run("-march=rv64gcv_zvfh --save-temps -o k.elf k.cc"), 0) << output_;
    const std::string assembly = read(folder_ / "k.elf.s");
    EXPECT_THAT(assembly, ::testing::HasSubstr("fcvt.h.s"));
    EXPECT_THAT(assembly, ::testing::HasSubstr("zfhmin"));
    const std::string image = read(folder_ / "k.elf");
    EXPECT_EQ(orrModuleCheckData(image.data(), image.size()), orrSuccess) << orrGetLastErrorText();
}

TEST_F(CcTest, CommandLineMistakes) {
    EXPECT_EQ(run(""), 2);
    EXPECT_EQ(run("--nonsense k.cc"), 2);
    EXPECT_EQ(run("-o"), 2);
    EXPECT_EQ(run("-c -o x.o a.cc b.cc"), 2);
    EXPECT_EQ(run("-c -MF x.d a.cc b.cc"), 2);
    EXPECT_EQ(run("-c a.cc b.o"), 2);
    EXPECT_EQ(run("-l"), 2);
    for (const char* option : {"-mcmodel=large", "-mno-relax", "-mabi=lp64", "-march=rv32gc", "-m32"}) {
        EXPECT_EQ(run(fmt::format("{} -o k.elf k.cc", option)), 2);
        EXPECT_THAT(output_, ::testing::HasSubstr(option));
        EXPECT_EQ(std::count(output_.begin(), output_.end(), '\n'), 1) << output_;
    }
    EXPECT_EQ(run("-o k.elf missing.o"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("missing.o: no such file"));
    EXPECT_EQ(run("-o k.elf missing.cc"), 1);
    EXPECT_THAT(output_, ::testing::HasSubstr("missing.cc: no such file"));
    EXPECT_EQ(run("--help"), 0);
    EXPECT_THAT(output_, ::testing::HasSubstr("usage"));
}

TEST_F(CcTest, MissingCompilerIsNamed) {
    write("k.cc", kGood);
    EXPECT_EQ(run("-o k.elf k.cc", "env PATH=/nonexistent"), 127);
    EXPECT_THAT(output_, ::testing::HasSubstr("apt-get install clang-19"));
}

}  // namespace
