#include "tests/vm/kmod/pci.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/klog.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace orrery::kmod_test {

namespace fs = std::filesystem;

std::vector<std::string> pci_addresses() {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices"))
        if (read_file(entry.path() / "vendor") == "0x1af4" && read_file(entry.path() / "device") == "0x10f0")
            found.push_back(entry.path().filename());
    std::sort(found.begin(), found.end());
    return found;
}

int node_of(const std::string& address) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices/" + address + "/accel", error))
        return std::stoi(entry.path().filename().string().substr(5));
    return -1;
}

bool bind_driver(const std::string& address) {
    return write_file("/sys/bus/pci/drivers/orrery/bind", address);
}

bool unbind_driver(const std::string& address) {
    return write_file("/sys/bus/pci/drivers/orrery/unbind", address);
}

std::string route_of(const std::string& from, const std::string& to) {
    const std::string uid = read_file("/sys/bus/pci/devices/" + to + "/uid");
    std::ifstream routes("/sys/bus/pci/devices/" + from + "/routes");
    for (std::string line; !uid.empty() && std::getline(routes, line);) {
        if (!line.starts_with(uid + ' ')) continue;
        const std::size_t node = uid.size() + 1, rest = line.find(' ', node);
        // As the other card says.
        if (line.substr(node, rest - node) != read_file("/sys/bus/pci/devices/" + to + "/node")) return line;
        return line.substr(rest + 1);
    }
    return "";
}

std::uint64_t bad_keys() {
    std::uint64_t sum = 0;
    std::error_code error;
    for (const std::string& address : pci_addresses())
        for (const auto& port : fs::directory_iterator("/sys/bus/pci/devices/" + address + "/links", error))
            sum += std::strtoull(read_file(port.path() / "bad_keys").c_str(), nullptr, 10);
    return sum;
}

std::string kernel_log() {
    constexpr int kReadAll = 3;
    std::string log(1 << 20, '\0');
    log.resize(
        static_cast<std::size_t>(std::max(::klogctl(kReadAll, log.data(), static_cast<int>(log.size())), 0)));
    return log;
}

bool write_file(const std::string& path, const std::string& text) {
    // A stream would write a second time, at its end, what was refused the first time.
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) return false;
    const bool written = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::close(file);
    return written;
}

std::string read_file(const std::string& path) {
    std::ifstream file(path);
    std::string text;
    std::getline(file, text);
    return text;
}

TimeOut::TimeOut(const std::string& parameter, const std::string& milliseconds)
    : path_("/sys/module/orrery/parameters/" + parameter), was_(read_file(path_)) {
    EXPECT_TRUE(write_file(path_, milliseconds)) << path_;
}

TimeOut::~TimeOut() {
    EXPECT_TRUE(write_file(path_, was_)) << path_;
}

}  // namespace orrery::kmod_test
