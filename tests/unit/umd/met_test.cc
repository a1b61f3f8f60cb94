// Whom the driver has met, as its files in sysfs say.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "umd/winsys/drm_device.h"

namespace orrery::umd {
namespace {

namespace fs = std::filesystem;

TEST(Met, ByWhateverPort) {
    const fs::path links = fs::temp_directory_path() / ("orrery-met-" + std::to_string(::getpid()));
    EXPECT_TRUE(is_met(links, 7)) << "nobody says";
    for (const char* port : {"0", "1", "2"})
        fs::create_directories(links / port);
    EXPECT_TRUE(is_met(links, 7)) << "an older driver says nothing";
    std::ofstream(links / "0" / "foreign_node") << "0\n";
    std::ofstream(links / "2" / "foreign_node") << "512 7\n";
    EXPECT_TRUE(is_met(links, 7));
    EXPECT_TRUE(is_met(links, 512));
    EXPECT_FALSE(is_met(links, 51));
    fs::remove_all(links);
}

}  // namespace
}  // namespace orrery::umd
