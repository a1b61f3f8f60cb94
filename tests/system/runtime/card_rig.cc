// Real cards, in a VM. Started without arguments the program runs the suite in pieces: a process that has
// seen its card go cannot use it any more, so each such cell has a process of its own, after which the driver
// takes the card back: it is unbound from the driver there. With --unplugged it runs the cells whose link is
// cut, which cable.sh does on the host; with --killed WHO... those whose card's process is killed, which
// killed.sh does: such a card never comes back, and the next one is used.
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <orrery/embedded_kernel.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "tests/system/runtime/hand.h"
#include "tests/system/runtime/rig.h"

ORR_EMBEDDED_KERNEL(umd_test_kernels);

namespace orrery::umd::conformance {
namespace {

constexpr const char* kDriver = "/sys/bus/pci/drivers/orrery/";
constexpr const char* kDevices = "/sys/bus/pci/devices/";
// cable.sh on the host pulls the cable between the cards, and says by this file that it is there.
constexpr const char* kCables = "/share/cables";

// killed.sh says so too.
constexpr const char* kKiller = "/share/killer";
// A piece all of whose tests were skipped.
constexpr int kSkipped = 77;

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
}

std::string address_of(int device) {
    orrDeviceProp prop = ORR_INIT(orrDeviceProp);
    EXPECT_EQ(orrGetDeviceProperties(&prop, device), orrSuccess) << orrGetLastErrorText();
    return prop.pci_address;
}

bool ask(const std::string& name, const std::string& order, std::chrono::milliseconds most) {
    const std::string answer = ask_host(name, order, most);
    if (answer == "ok\n") return true;
    std::fprintf(stderr, "the host answers '%s' to '%s'\n", answer.c_str(), order.c_str());
    return false;
}
bool cable(const std::string& order) {
    return ask("cable", order, std::chrono::seconds(60));
}
// Of the first card that lives.
bool kill_card() {
    return ask("kill", "please", std::chrono::seconds(60));
}

bool link_up(const std::string& address) {
    std::string state;
    std::ifstream(kDevices + address + "/links/0/state") >> state;
    return state == "up";
}

// The first card that the driver has.
std::string first_bound() {
    std::string first;
    for (const auto& entry : std::filesystem::directory_iterator(kDriver)) {
        const std::string name = entry.path().filename();
        if (name.starts_with("0000:") && (first.empty() || name < first)) first = name;
    }
    return first;
}

class CardRig final : public Rig {
  public:
    std::span<const std::byte> module() const override { return umd_test_kernels_image(); }
    std::string cannot(Mishap mishap) const override {
        if (mishap == Mishap::kLinkCut && ::access(kCables, F_OK) != 0)
            return "nobody on the host pulls the cable (cable.sh does)";
        return {};
    }
    void happen(Mishap mishap, int device, const std::string& stream) override {
        if (mishap == Mishap::kLinkCut) {
            EXPECT_TRUE(cable("unplug"));
            return;
        }
        const std::string address = address_of(device);
        if (mishap == Mishap::kCardKilled && ::access(kKiller, F_OK) == 0) {
            EXPECT_EQ(address, first_bound());
            EXPECT_TRUE(kill_card()) << "killed.sh does not answer";
            return;
        }
        if (mishap == Mishap::kCardKilled) {
            EXPECT_TRUE(write_file(std::string(kDriver) + "unbind", address)) << address;
            return;
        }
        const std::string folder = "/sys/kernel/debug/accel/" + address;
        std::ifstream queues(folder + "/queues");
        for (std::string line; std::getline(queues, line);) {
            std::istringstream words(line);
            std::string number, name;
            words >> number >> name;
            if (name != stream) continue;
            EXPECT_TRUE(write_file(folder + "/crash_firmware", number));
            return;
        }
        ADD_FAILURE() << "no queue '" << stream << "' in " << folder << "/queues";
    }
};

// expected: so many tests have to pass, the rest to be skipped; 0: no matter how many.
int run_piece(const std::string& filter, int expected = 0) {
    std::string program = "umd_conformance_vm", mode = "--piece=" + std::to_string(expected);
    std::string gtest = "--gtest_filter=" + filter, brief = "--gtest_brief=1";
    char* arguments[] = {program.data(), mode.data(), gtest.data(), brief.data(), nullptr};
    pid_t child = -1;
    if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int piece(int argc, char** argv) {
    const int expected = std::atoi(argv[1] + std::strlen("--piece="));
    ::testing::InitGoogleTest(&argc, argv);
    const int failed = RUN_ALL_TESTS();
    const auto& unit = *::testing::UnitTest::GetInstance();
    if (failed != 0 || unit.test_to_run_count() == 0) return 1;
    if (unit.successful_test_count() == 0) return kSkipped;
    if (expected == 0 || unit.successful_test_count() == expected) return 0;
    std::fprintf(stderr, "FAILED: %d tests ran, %d are expected\n", unit.successful_test_count(), expected);
    return 1;
}

constexpr const char* kWhos[] = {"SameStream", "Event", "OtherCard", "Graph",
                                 "TaskGraph",  "Poll",  "HostWait"};

// Cells that wear out a card, each by itself. With killing: one card each; else it is bound anew behind each,
// as the driver gives one up whose firmware crashes again and again. Gives how many failed; ran: how many
// there were.
int run_alone(const std::string& what, const char* who, const std::vector<const char*>& whens, bool killing,
              int& ran) {
    int failed = 0;
    for (const char* when : whens) {
        const std::string cell = "*/" + what + who + when;
        const std::string address = first_bound();
        const int status = run_piece(cell);
        if (status == kSkipped) continue;
        ++ran;
        if (status != 0) {
            std::fprintf(stderr, "FAILED: %s\n", cell.c_str());
            ++failed;
        }
        // One of the two does nothing, or both.
        (void)write_file(std::string(kDriver) + "unbind", address);
        if (!killing) (void)write_file(std::string(kDriver) + "bind", address);
    }
    return failed;
}

// Cells without the cable; it is in again after each.
int run_unplugged(const std::string& address) {
    int failed = 0;
    for (const char* when : {"Queued", "Running", "Parking"}) {
        failed += run_piece(std::string("*/LinkOtherCard") + when) == 0 ? 0 : 1;
        bool up = cable("plug");
        for (int tries = 0; up && !link_up(address); ++tries) {
            up = tries < 6000;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (up) continue;
        std::fprintf(stderr, "FAILED: the link does not come up again\n");
        return failed + 1;
    }
    return failed;
}

int expect_ran(int ran, int expected) {
    if (ran == expected) return 0;
    std::fprintf(stderr, "FAILED: %d cells ran, %d are expected\n", ran, expected);
    return 1;
}

}  // namespace

std::unique_ptr<Rig> make_rig() {
    return std::make_unique<CardRig>();
}

}  // namespace orrery::umd::conformance

int main(int argc, char** argv) {
    using namespace orrery::umd::conformance;
    const std::string_view mode = argc > 1 ? argv[1] : "";
    if (mode.starts_with("--piece=")) return piece(argc, argv);
    if (mode == "--unplugged") return run_unplugged(first_bound()) == 0 ? 0 : 1;
    (void)::mount("debugfs", "/sys/kernel/debug", "debugfs", 0, nullptr);
    int failed = 0, ran = 0;
    if (mode == "--killed") {
        int expected = 0;
        for (const char* const who : std::vector<const char*>(argv + 2, argv + argc)) {
            expected += std::string_view(who) == "TaskGraph" ? 1 : 4;
            failed += run_alone("Card", who, {"Before", "Queued", "Running", "Parking"}, true, ran);
        }
        failed += expect_ran(ran, expected);
    } else {
        failed += run_piece("*/Trap*:*/Fault*:*/Limit*:*/Abort*", 99) == 0 ? 0 : 1;
        failed += run_piece("Waits.*") == 0 ? 0 : 1;
        for (const char* who : kWhos)
            failed += run_alone("Firmware", who, {"Running"}, false, ran);
        failed += expect_ran(std::exchange(ran, 0), 6);
        for (const char* who : kWhos)
            failed += run_alone("Card", who, {"Running"}, false, ran);
        failed += expect_ran(ran, 7);
    }
    std::printf("%d pieces failed\n", failed);
    return failed == 0 ? 0 : 1;
}
