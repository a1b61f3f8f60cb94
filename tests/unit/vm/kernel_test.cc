#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/vm/tree.h"

namespace orrery::vm {
namespace {

std::string image_with(const std::string& version) {
    std::string image(0x400, '\0');
    image.replace(0x202, 4, "HdrS");
    image[0x20e] = '\x10';  // at 0x310
    image[0x20f] = '\x01';
    image.replace(0x310, version.size(), version);
    return image;
}

TEST(BzImage, SaysItsRelease) {
    EXPECT_EQ(bzimage_release(image_with("6.12.1-own (me@here) #1 SMP")), "6.12.1-own");
    EXPECT_EQ(bzimage_release(image_with("7.3.4")), "7.3.4");
}

TEST(BzImage, WhatIsNoneIsRefused) {
    EXPECT_FALSE(bzimage_release(""));
    EXPECT_FALSE(bzimage_release(std::string(4096, 'x')));
    EXPECT_FALSE(bzimage_release(image_with("")));
    EXPECT_FALSE(bzimage_release(image_with(std::string(100, 'v'))));
    std::string beyond = image_with("6.12");
    beyond[0x20f] = '\x7f';
    EXPECT_FALSE(bzimage_release(beyond));
    const std::string whole = image_with("6.12.1-own x");
    for (std::size_t size = 0; size < 0x31a; ++size)
        EXPECT_FALSE(bzimage_release(whole.substr(0, size))) << size;
}

}  // namespace
}  // namespace orrery::vm
