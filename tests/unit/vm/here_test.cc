#include "tools/vm/here.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <fstream>

namespace orrery::vm {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

TEST(Here, IsWhereARelativePathOfTheCommandLeads) {
    std::string name = testing::TempDir() + "here-XXXXXX";
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    const fs::path folder = name;
    fs::create_directories(folder / "build");
    std::ofstream(folder / "gemm") << "x";
    std::ofstream(folder / "build/other") << "x";
    EXPECT_THAT(named_here({"./gemm", "gemm.elf"}, folder), ElementsAre(folder / "gemm"));
    EXPECT_THAT(named_here({"sh", "-c", "build/other>x && ./gemm"}, folder),
                ElementsAre(folder / "build/other", folder / "gemm"));
    EXPECT_THAT(named_here({"gemm", "./missing", "/bin/sh", "sh -c /gemm"}, folder), IsEmpty());
    EXPECT_THAT(named_here({"../" + folder.filename().string() + "/gemm", "build/../../x"}, folder),
                IsEmpty());
    fs::remove_all(folder);
}

TEST(Here, LeavesTheGuestsOwnFoldersAlone) {
    for (const char* path :
         {"/", "/usr", "/usr/src/mine", "/etc/x", "/tmp", "/run", "/share", "/var", "/lib64"})
        EXPECT_FALSE(can_be_shown(path)) << path;
    for (const char* path :
         {"/home/me/gemm", "/root", "/root/gemm", "/tmp/gemm", "/work", "/run/user/1000/x", "/srv"})
        EXPECT_TRUE(can_be_shown(path)) << path;
}

TEST(Here, IsNotAHomeDirectory) {
    EXPECT_TRUE(holds_home("/home/me", "/home/me"));
    EXPECT_TRUE(holds_home("/home/me", "/home/me/"));
    EXPECT_TRUE(holds_home("/home", "/home/me"));
    for (const char* folder : {"/home/me/gemm", "/home/other", "/home/m", "/work"})
        EXPECT_FALSE(holds_home(folder, "/home/me")) << folder;
    for (const char* home : {"", "/", "me"})
        EXPECT_FALSE(holds_home("/work", home)) << home;
}

}  // namespace
}  // namespace orrery::vm
