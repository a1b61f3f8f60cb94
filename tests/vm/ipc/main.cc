#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "tests/vm/ipc/peer.h"

int main(int argc, char** argv) {
    const std::string first = argc > 1 ? argv[1] : "";
    if (argc == 3 && first.starts_with("--role="))
        return orrery::umd::vm::run_role(first.substr(7), std::atoi(argv[2]));
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
