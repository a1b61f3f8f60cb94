// Real cards, in a VM. Started without arguments the program runs the suite in pieces: a process that has
// seen its card go cannot use it any more, so each such cell has a process of its own, after which the driver
// takes the card back. With --unplugged it runs the cells whose link is cut, which cable.sh does on the host.
#include <gtest/gtest.h>
#include <orrery/orrery.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/system/runtime/rig.h"
#include "umd/samples/kernel_image.h"

namespace orrery::umd::conformance {
namespace {

constexpr const char* kDriver = "/sys/bus/pci/drivers/orrery/";
constexpr const char* kDevices = "/sys/bus/pci/devices/";
// cable.sh on the host pulls the cable between the cards, and says by the first file that it is there.
constexpr const char* kCables = "/share/cables";
constexpr const char* kOrder = "/share/cable.";

bool write_file(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text << std::flush;
    return file.good();
}

std::string address_of(int device) {
    orrDeviceProp prop{};
    EXPECT_EQ(orrGetDeviceProperties(&prop, device), orrSuccess) << orrGetLastErrorText();
    return prop.pci_address;
}

// Orders it from the host, which numbers what it is asked.
bool cable(const std::string& order) {
    int number = 0;
    const auto path = [&](const char* end) { return kOrder + std::to_string(number) + end; };
    while (::access(path(".done").c_str(), F_OK) == 0)
        ++number;
    if (!write_file(path(".new"), order + "\n")) return false;
    if (std::rename(path(".new").c_str(), path("").c_str()) != 0) return false;
    for (int tries = 0; tries < 1000; ++tries) {
        std::string answer;
        if (std::ifstream file(path(".done")); std::getline(file, answer)) {
            if (answer == "ok") return true;
            std::fprintf(stderr, "the card answers '%s' to '%s'\n", answer.c_str(), order.c_str());
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
}

bool link_up(const std::string& address) {
    std::string state;
    std::ifstream(kDevices + address + "/links/0/state") >> state;
    return state == "up";
}

class CardRig final : public Rig {
  public:
    std::span<const std::byte> module() const override { return kernel_image(); }
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

int run_piece(const std::string& filter) {
    std::string program = "umd_conformance_vm", mode = "--piece", gtest = "--gtest_filter=" + filter;
    std::string brief = "--gtest_brief=1";
    char* arguments[] = {program.data(), mode.data(), gtest.data(), brief.data(), nullptr};
    pid_t child = -1;
    if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, environ) != 0) return 1;
    int status = 0;
    while (::waitpid(child, &status, 0) < 0) {
        if (errno != EINTR) return 1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Cells that wear out a card, each by itself; the card is bound anew behind each, as the driver gives one up
// whose firmware crashes again and again.
int run_alone(const std::string& what, const std::vector<const char*>& whens, const std::string& address) {
    int failed = 0;
    for (const char* who : {"SameStream", "Event", "OtherCard", "Graph", "TaskGraph", "Poll", "HostWait"}) {
        for (const char* when : whens) {
            const std::string cell = "*/" + what + who + when;
            if (run_piece(cell) != 0) {
                std::fprintf(stderr, "FAILED: %s\n", cell.c_str());
                ++failed;
            }
            // One of the two does nothing, or both.
            (void)write_file(std::string(kDriver) + "unbind", address);
            (void)write_file(std::string(kDriver) + "bind", address);
        }
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
            up = tries < 500;
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (up) continue;
        std::fprintf(stderr, "FAILED: the link does not come up again\n");
        return failed + 1;
    }
    return failed;
}

}  // namespace

std::unique_ptr<Rig> make_rig() {
    return std::make_unique<CardRig>();
}

}  // namespace orrery::umd::conformance

int main(int argc, char** argv) {
    using namespace orrery::umd::conformance;
    if (argc > 1 && std::string_view(argv[1]) == "--unplugged")
        return run_unplugged(address_of(0)) == 0 ? 0 : 1;
    if (argc > 1) {
        ::testing::InitGoogleTest(&argc, argv);
        return RUN_ALL_TESTS();
    }
    (void)::mount("debugfs", "/sys/kernel/debug", "debugfs", 0, nullptr);
    int failed = run_piece("-*/Card*:*/Firmware*") == 0 ? 0 : 1;
    const std::string address = address_of(0);
    failed += run_alone("Firmware", {"Running"}, address);
    failed += run_alone("Card", {"Before", "Queued", "Running", "Parking"}, address);
    std::printf("%d pieces failed\n", failed);
    return failed == 0 ? 0 : 1;
}
