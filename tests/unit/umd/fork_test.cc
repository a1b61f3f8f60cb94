#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "tests/unit/umd/api_test.h"
#include "umd/runtime/runtime.h"

namespace orrery::umd::test {
namespace {

TEST(Fork, ChildIsToldInsteadOfSharingTheCards) {
    // The real runtime: whether there is a card does not matter.
    Runtime::replace(nullptr);
    int count = -1;
    (void)orrGetDeviceCount(&count);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        const bool told = orrGetDeviceCount(&count) == orrErrorNotSupported &&
                          std::strstr(orrGetLastErrorText(), "fork") != nullptr;
        ::_exit(told ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
    EXPECT_NE(orrGetDeviceCount(&count), orrErrorNotSupported) << "the parent goes on";
    Runtime::replace(nullptr);
}

}  // namespace
}  // namespace orrery::umd::test
