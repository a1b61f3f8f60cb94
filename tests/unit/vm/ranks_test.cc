#include "tools/run/ranks.h"

#include <gtest/gtest.h>

namespace orrery::run {
namespace {

TEST(Ranks, AreSharedOutEvenlyAndInOrder) {
    for (unsigned vms = 1; vms <= 8; ++vms)
        for (unsigned ranks = vms; ranks <= 20; ++ranks) {
            unsigned next = 0;
            for (unsigned vm = 0; vm < vms; ++vm) {
                const Share share = share_of(ranks, vms, vm);
                EXPECT_EQ(share.first, next);
                EXPECT_GE(share.count, ranks / vms);
                EXPECT_LE(share.count, (ranks + vms - 1) / vms);
                next += share.count;
            }
            EXPECT_EQ(next, ranks);
        }
}

TEST(Ranks, EachRunHasATokenOfItsOwn) {
    EXPECT_EQ(make_token(1).size(), std::string("orrg1-unix-").size() + 32 + 1 + 32);
    EXPECT_NE(make_token(1), make_token(1));
    EXPECT_TRUE(make_token(2).starts_with("orrg1-dir-"));
    EXPECT_TRUE(make_token(2).ends_with("-/share"));
}

}  // namespace
}  // namespace orrery::run
