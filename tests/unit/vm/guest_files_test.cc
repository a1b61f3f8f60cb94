#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <fstream>

#include "tools/text/shell.h"
#include "tools/vm/files.h"
#include "tools/vm/modules.h"
#include "tools/vm/process.h"
#include "tools/vm/programs.h"

namespace orrery::vm {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Modules, LoadOrderIsTheReverseOfModulesDep) {
    const auto index = ModuleIndex::parse(
        "kernel/drm/drm.ko.xz:\n"
        "kernel/drm/drm_exec.ko.xz: kernel/drm/drm.ko.xz\n"
        "kernel/drm/drm-gpuvm.ko.xz: kernel/drm/drm_exec.ko.xz kernel/drm/drm.ko.xz\n");
    std::vector<std::string> order;
    EXPECT_TRUE(index.resolve("drm_gpuvm", order));
    EXPECT_TRUE(index.resolve("drm_exec", order));
    EXPECT_FALSE(index.resolve("nvme", order));
    EXPECT_THAT(order, ElementsAre("kernel/drm/drm.ko.xz", "kernel/drm/drm_exec.ko.xz",
                                   "kernel/drm/drm-gpuvm.ko.xz"));
}

TEST(Modules, DependenciesComeFromModinfo) {
    EXPECT_THAT(module_dependencies(std::string("xx\0license=GPL\0depends=drm,drm_gpuvm\0name=orrery\0", 48)),
                ElementsAre("drm", "drm_gpuvm"));
    EXPECT_THAT(module_dependencies(std::string("xx\0depends=\0name=orrery\0", 24)), IsEmpty());
    EXPECT_THAT(module_dependencies("no module"), IsEmpty());
    EXPECT_EQ(module_release(std::string("x\0vermagic=6.12.1-own SMP mod_unload\0", 38)), "6.12.1-own");
    EXPECT_EQ(module_release("no module"), "");
}

TEST(ShellQuote, SurvivesARealShell) {
    for (const std::string word :
         {"", "plain", "two words", "it's", "$HOME `id` \\ \" ' ''", "a\nb\t*", "-n"}) {
        const auto echoed = capture({"sh", "-c", "printf %s. " + text::shell_quote(word)});
        ASSERT_TRUE(echoed) << echoed.error().text;
        EXPECT_EQ(*echoed, word + ".");
    }
}

TEST(Programs, ClosureOfARealProgram) {
    const auto bytes = read_file("/bin/sh");
    ASSERT_TRUE(bytes);
    const std::string interpreter = elf_interpreter(*bytes);
    ASSERT_THAT(interpreter, HasSubstr("ld-linux"));
    const auto libraries = library_closure("/bin/sh", interpreter);
    ASSERT_TRUE(libraries) << libraries.error().text;
    EXPECT_THAT(libraries->missing, IsEmpty());
    EXPECT_THAT(libraries->paths, Contains(interpreter));
    EXPECT_THAT(libraries->paths, Contains(HasSubstr("libc.so.6")));
    for (const auto& path : libraries->paths)
        EXPECT_TRUE(fs::path(path).is_absolute() && fs::exists(path)) << path;
}

TEST(Programs, DamagedElfFilesHaveNoInterpreter) {
    const auto bytes = read_file("/bin/sh");
    ASSERT_TRUE(bytes);
    for (std::size_t size = 0; size < 1024; ++size)
        EXPECT_EQ(elf_interpreter(bytes->substr(0, size)).find('\0'), std::string::npos);
    std::string wild = bytes->substr(0, 4096);
    for (std::size_t i = 32; i < 40; ++i)
        wild[i] = '\xff';  // the offset of the program headers
    EXPECT_EQ(elf_interpreter(wild), "");
    EXPECT_EQ(elf_interpreter("#!/bin/sh\n"), "");
}

TEST(Programs, AreChosenByWordsOfTheCommand) {
    const fs::path directory = fs::path(testing::TempDir()) / ("programs" + std::to_string(::getpid()));
    fs::create_directories(directory);
    for (const char* name : {"histogram", "orrery-smi", "other", "data"}) {
        std::ofstream(directory / name) << "x";
        if (name != std::string("data")) fs::permissions(directory / name, fs::perms::owner_all);
    }
    EXPECT_THAT(choose_programs(directory, {"sh", "-c", "cd /tmp;histogram data|cat"}),
                ElementsAre("histogram", "orrery-smi"));
    EXPECT_THAT(choose_programs(directory, {"/usr/local/bin/other"}), ElementsAre("orrery-smi"));
    EXPECT_THAT(choose_programs(directory, {"other"}), ElementsAre("orrery-smi", "other"));
    fs::remove_all(directory);
}

TEST(Process, StatusesAndMissingPrograms) {
    const auto missing =
        Child::start({.argv = {"/nonexistent/program"}, .in = -1, .out = -1, .err = -1, .keep = {}});
    ASSERT_FALSE(missing);
    EXPECT_THAT(missing.error().text, HasSubstr("No such file"));
    auto child = Child::start({.argv = {"sh", "-c", "exit 3"}, .in = -1, .out = -1, .err = -1, .keep = {}});
    ASSERT_TRUE(child);
    EXPECT_EQ(describe_status(child->wait(-1).value()), "exited with status 3");
    const auto failed = capture({"sh", "-c", "echo why >&2; exit 1"});
    ASSERT_FALSE(failed);
    EXPECT_THAT(failed.error().text, HasSubstr("why"));
}

TEST(Process, GoesWithItsObject) {
    pid_t pid = 0;
    {
        auto child = Child::start({.argv = {"sleep", "1000"}, .in = -1, .out = -1, .err = -1, .keep = {}});
        ASSERT_TRUE(child);
        pid = child->pid();
        EXPECT_EQ(::kill(pid, 0), 0);
        EXPECT_FALSE(child->wait(0));
    }
    EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace orrery::vm
