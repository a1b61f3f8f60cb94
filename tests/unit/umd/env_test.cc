// Environment variables: what they do, that the docs have them all, and that nothing else reads any.
#include "umd/winsys/env.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {
namespace {

namespace fs = std::filesystem;

std::string contents(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
}

// Sets a variable for as long as it lives.
class With {
  public:
    With(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
    ~With() { ::unsetenv(name_); }
    With(const With&) = delete;
    With& operator=(const With&) = delete;

  private:
    const char* name_;
};

TEST(Env, DocsHaveEachVariable) {
    const std::string docs = contents(fs::path(ORRERY_CHECKOUT) / "docs/runtime.md");
    ASSERT_FALSE(Env::variables().empty());
    for (const auto& variable : Env::variables()) {
        EXPECT_TRUE(std::string_view(variable.name).starts_with("ORR_")) << variable.name;
        const std::string row =
            fmt::format("| `{}` | {} | {} |\n", variable.name, variable.form, variable.meaning);
        EXPECT_THAT(docs, ::testing::HasSubstr(row)) << "docs/runtime.md, Environment";
    }
}

TEST(Env, NothingElseOfTheLibraryReadsTheEnvironment) {
    int files = 0;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(ORRERY_CHECKOUT) / "umd")) {
        const std::string path = entry.path();
        if (!path.ends_with(".cc") && !path.ends_with(".h") && !path.ends_with(".hpp")) continue;
        if (path.find("/umd/samples/") != std::string::npos) continue;  // programs of their own
        ++files;
        if (path.ends_with("umd/winsys/env.cc")) continue;
        EXPECT_EQ(contents(path).find("getenv"), std::string::npos) << path << ": goes into Env";
    }
    EXPECT_GT(files, 50);
}

TEST(Env, VisibleDevicesChooseAndOrderTheCards) {
    const With some("ORR_VISIBLE_DEVICES", "2,0");
    FakeSystem system(4);
    int count = 0;
    ASSERT_OK(orrGetDeviceCount(&count));
    EXPECT_EQ(count, 2);
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    ASSERT_OK(orrGetDeviceProperties(&prop, 0));
    EXPECT_STREQ(prop.node, "/dev/accel/accel2");
    ASSERT_OK(orrGetDeviceProperties(&prop, 1));
    EXPECT_STREQ(prop.node, "/dev/accel/accel0");
    EXPECT_FAIL(orrSetDevice(2), orrErrorInvalidDevice, "sees 2");
}

TEST(Env, VisibleDevicesThatMakeNoSenseAreTold) {
    int count = 0;
    for (const char* text : {"0,", "x", "1,1", "0 1", "-1"}) {
        const With wrong("ORR_VISIBLE_DEVICES", text);
        FakeSystem system(2);
        EXPECT_FAIL(orrGetDeviceCount(&count), orrErrorInvalidValue, "as 2,0");
    }
    const With none("ORR_VISIBLE_DEVICES", "2");
    FakeSystem system(2);
    EXPECT_FAIL(orrGetDeviceCount(&count), orrErrorInvalidDevice, "no card 2");
}

}  // namespace
}  // namespace orrery::umd::test
