#include <gtest/gtest.h>

#include <cstring>

#include "tests/vm/umd/workers.h"

int main(int argc, char** argv) {
    constexpr const char* kWorker = "--worker=";
    if (argc == 2 && std::strncmp(argv[1], kWorker, std::strlen(kWorker)) == 0) {
        return orrery::umd::vm::run_worker(argv[1] + std::strlen(kWorker));
    }
    ::testing::InitGoogleTest(&argc, argv);
    return RUN_ALL_TESTS();
}
