// Two cards on which this process plays another one too: what it has exported it may import.
#pragma once

#include <unistd.h>

#include <vector>

#include "tests/unit/umd/api_test.h"
#include "tests/unit/umd/fake_winsys.h"

namespace orrery::umd::test {

constexpr std::uint64_t kLongNs = 100'000'000'000;

class IpcTest : public ::testing::Test {
  protected:
    IpcTest() {
        for (std::size_t i = 0; i < 2; ++i)
            system_.card(i).as_another_process = true;
    }
    int keep(int fd) {
        fds_.push_back(fd);
        return fd;
    }
    int exported(void* memory) {
        int fd = -1;
        EXPECT_OK(orrIpcExportMemory(&fd, memory, 0));
        return keep(fd);
    }
    int exported(orrSemaphore_t semaphore) {
        int fd = -1;
        EXPECT_OK(orrIpcExportSemaphore(&fd, semaphore, 0));
        return keep(fd);
    }
    int exported(orrEvent_t event) {
        int fd = -1;
        EXPECT_OK(orrIpcExportEvent(&fd, event, 0));
        return keep(fd);
    }
    void TearDown() override {
        for (int fd : fds_)
            ::close(fd);
    }

    FakeSystem system_{2};
    std::vector<int> fds_;
};

}  // namespace orrery::umd::test
