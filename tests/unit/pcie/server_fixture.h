// A server with a test card on a thread of its own, for tests that speak the protocol to it.
#pragma once

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "emulator/pcie/server.h"
#include "tests/unit/pcie/client.h"
#include "tests/unit/pcie/test_card.h"

namespace orrery::test {

class ServerFixture : public testing::Test {
  protected:
    void start(emu::InterruptMode mode = emu::InterruptMode::kMsix) {
        server_.reset();  // of an earlier start(): its socket goes with it
        path_ = testing::TempDir() + "orrery-pcie-" + std::to_string(::getpid()) + ".sock";
        auto server = emu::VfioUserServer::create(path_, card_.description(mode), card_, interrupts_,
                                                  [this](std::string_view line) { log_.emplace_back(line); });
        ASSERT_TRUE(server) << server.error();
        server_ = std::move(*server);
        thread_ = std::thread([this] { EXPECT_TRUE(server_->run()); });
    }

    void stop() {
        if (!thread_.joinable()) return;
        server_->request_stop();
        thread_.join();
    }

    void TearDown() override {
        stop();
        EXPECT_EQ(card_.broken_promises(), 0u);
    }

    // A client that has agreed on the version.
    Client attach() {
        auto client = Client::connect(path_);
        EXPECT_TRUE(client);
        EXPECT_TRUE(client && client->negotiate());
        return client ? std::move(*client) : Client(emu::UniqueFd());
    }

    // Waits until the server has done with the client: it then serves the next one.
    void settle() { EXPECT_EQ(attach().error_of(wire::kDeviceReset, {}), 0); }

    static emu::UniqueFd memory(uint64_t size) {
        emu::UniqueFd fd(::memfd_create("guest", MFD_CLOEXEC));
        EXPECT_EQ(::ftruncate(fd.get(), static_cast<off_t>(size)), 0);
        return fd;
    }
    static emu::UniqueFd event() { return emu::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)); }
    static uint64_t signals(const emu::UniqueFd& fd) {
        uint64_t value = 0;
        return ::read(fd.get(), &value, sizeof value) == sizeof value ? value : 0;
    }

    emu::Interrupts interrupts_;
    TestCard card_{interrupts_};
    std::string path_;
    std::vector<std::string> log_;  // to be read after stop()
    std::unique_ptr<emu::VfioUserServer> server_;
    std::thread thread_;
};

}  // namespace orrery::test
