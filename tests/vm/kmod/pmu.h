// The driver's PMUs, as perf sees them: orrery_N in /sys/bus/event_source/devices.
#pragma once

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {

inline std::string pmu_path(int node) {
    return "/sys/bus/event_source/devices/orrery_" + std::to_string(node);
}

inline perf_event_attr pmu_attributes(int node, const std::string& counter) {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = static_cast<std::uint32_t>(std::atoi(read_file(pmu_path(node) + "/type").c_str()));
    const std::string event = read_file(pmu_path(node) + "/events/" + counter);
    attributes.config = std::strtoull(event.substr(event.find('=') + 1).c_str(), nullptr, 0);
    return attributes;
}

// How often perf has asked a card in vain: all cards that there are. For root.
inline std::uint64_t late_snapshots() {
    std::uint64_t sum = 0;
    for (const auto& card : std::filesystem::directory_iterator("/sys/kernel/debug/accel")) {
        std::ifstream in(card.path() / "waits");
        std::string key;
        for (std::uint64_t value = 0; in >> key >> value;)
            if (key == "late_snapshots") sum += value;
    }
    return sum;
}

// An event of the whole card: a file, or 0 and the errno.
struct PmuEvent {
    PmuEvent() = default;
    // `leader`: of the group that it joins.
    explicit PmuEvent(perf_event_attr attributes, int cpu = 0, int process = -1,
                      const PmuEvent* leader = nullptr) {
        const long fd = ::syscall(SYS_perf_event_open, &attributes, process, cpu,
                                  leader != nullptr ? leader->file.get() : -1, 0);
        error = fd < 0 ? errno : 0;
        file = File(static_cast<int>(fd));
    }
    // Reads until the card has answered: without an answer an event stands where it stood, and one that was
    // started without has not begun.
    std::uint64_t count() const {
        std::uint64_t value = 0;
        for (int tries = 0; tries < 20; tries++) {
            const std::uint64_t late = late_snapshots();
            EXPECT_EQ(::read(file.get(), &value, sizeof value), static_cast<ssize_t>(sizeof value));
            if (late_snapshots() == late) return value;
        }
        ADD_FAILURE() << "a card was late each of 20 times";
        return value;
    }
    File file;
    int error = 0;
};

}  // namespace orrery::kmod_test
