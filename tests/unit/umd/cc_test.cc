// orrery-cc as a user calls it: what it makes, what it refuses, and how it says so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <sys/wait.h>

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

TEST_F(CcTest, CommandLineMistakes) {
    EXPECT_EQ(run(""), 2);
    EXPECT_EQ(run("--nonsense k.cc"), 2);
    EXPECT_EQ(run("-o"), 2);
    EXPECT_EQ(run("a.cc b.cc"), 2);
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
