// kmod_fabric, in two VMs with a card each that are joined: VM 0 makes a handle for memory of its card, VM 1
// writes there. They tell each other by files in /share what has been done. VM 1 ends in the middle of it.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "tests/vm/kmod/place.h"

namespace {

using namespace orrery::kmod_test;

constexpr std::uint64_t kThere = 0x50000000;
constexpr std::uint64_t kBytes = 1 << 20;

[[noreturn]] void fail(const std::string& what) {
    fmt::print(stderr, "kmod_fabric: {}\n", what);
    std::exit(1);
}

void check(bool good, const std::string& what) {
    if (!good) fail(what);
    fmt::print("{}\n", what);
    std::fflush(stdout);
}

std::string link_file(const char* name) {
    std::string first;
    for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/drivers/orrery"))
        if (entry.path().filename().string().starts_with("0000:")) first = entry.path();
    std::ifstream file(first + "/links/0/" + name);
    std::string word;
    file >> word;
    return word;
}

void put(const std::string& name, const std::string& text) {
    std::ofstream("/share/" + name + ".new", std::ios::binary) << text;
    std::filesystem::rename("/share/" + name + ".new", "/share/" + name);
}

std::string get(const std::string& name) {
    for (;;) {
        if (std::ifstream file("/share/" + name, std::ios::binary); file)
            return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
}

template <typename Condition>
bool comes_true(Condition condition) {
    for (int i = 0; i < 1000; ++i) {
        if (condition()) return true;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    return false;
}

drm_orr_fabric_export make_handle(const Place& place) {
    drm_orr_fabric_export handle{};
    handle.handle = place.memory.handle;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &handle) == 0, "a handle was made");
    return handle;
}

int revoke(const Place& place, const drm_orr_fabric_export& handle) {
    drm_orr_fabric_revoke args{.object = handle.object, .pad = 0};
    return call(place.fd(), DRM_IOCTL_ORR_FABRIC_REVOKE, &args);
}

int own() {
    Place place(0);
    place.make_memory(kBytes);
    drm_orr_fabric_export wrong{};
    wrong.handle = 12345;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &wrong) == ENOENT, "no handle of nothing");
    wrong.handle = place.memory.handle;
    wrong.flags = 2;
    check(call(place.fd(), DRM_IOCTL_ORR_FABRIC_EXPORT, &wrong) == EINVAL, "nor with unknown flags");
    const drm_orr_fabric_export handle = make_handle(place);
    check(handle.size == kBytes && handle.node == 1, "it says what it is");
    check(revoke(Place(0), handle) == ENOENT, "another file's handle is nobody's");
    place.queue->submit(wait_for(kVa, 7));
    put("handle", std::string(reinterpret_cast<const char*>(&handle), sizeof handle));
    check(place.outcome().error == 0, "the other machine's signal came");
    check(place.memory.words()[kBytes / 8 - 1] == 0x1234567, "and all that it had written before");
    check(link_file("forged") == "2", "forged handles are counted");
    check(link_file("foreign_node") == "512", "the other's number is known");
    check(revoke(place, handle) == 0, "the handle was taken back");
    put("revoked", "");
    get("denied");
    check(place.memory.words()[kBytes / 8 - 1] == 0x1234567, "nothing was written after that");
    const drm_orr_fabric_export again = make_handle(place);
    put("again", std::string(reinterpret_cast<const char*>(&again), sizeof again));
    check(comes_true([] { return link_file("foreign_node") == "0"; }), "the other machine is gone");
    check(revoke(place, again) == 0, "and its mapping with it");
    check(place.queue->run(std::vector{fill(kVa, kBytes, 9)}) == 0 && place.memory.words()[1] == 9,
          "the card works on");
    fmt::print("owner: passed\n");
    return 0;
}

drm_orr_fabric_import to_import(const std::string& bytes) {
    drm_orr_fabric_export handle{};
    if (bytes.size() != sizeof handle) fail("half a handle");
    bytes.copy(reinterpret_cast<char*>(&handle), sizeof handle);
    drm_orr_fabric_import import{};
    import.object = handle.object;
    import.size = handle.size;
    import.node = handle.node;
    std::memcpy(import.secret, handle.secret, sizeof import.secret);
    return import;
}

int import_of(const Place& place, drm_orr_fabric_import import, std::uint32_t* handle = nullptr) {
    const int error = call(place.fd(), DRM_IOCTL_ORR_FABRIC_IMPORT, &import);
    if (handle != nullptr) *handle = import.handle;
    return error;
}

int write_there() {
    Place place(0);
    place.make_memory(kBytes);
    const drm_orr_fabric_import import = to_import(get("handle"));
    drm_orr_fabric_import wrong = import;
    wrong.secret[15] ^= 1;
    check(import_of(place, wrong) == EACCES, "a wrong secret is refused");
    wrong = import;
    wrong.object += 1;
    check(import_of(place, wrong) == EACCES, "so is a wrong number");
    wrong = import;
    wrong.node = 77;
    check(import_of(place, wrong) == EXDEV, "no link leads to card 77");
    wrong.node = 5000;
    check(import_of(place, wrong) == EINVAL, "there can be no card 5000");
    wrong.node = 512;
    check(import_of(place, wrong) == EINVAL, "card 512 is this machine's own");
    std::uint32_t handle = 0;
    check(import_of(place, import, &handle) == 0, "the handle is good");
    check(map(place.fd(), place.vm, handle, kThere, kBytes, ORR_BIND_WRITE) == 0, "and can be bound");
    check(place.queue->run(std::vector{fill(kVa, kBytes, 0x1234567), copy(kVa + 16, kThere + 16, kBytes - 16),
                                       signal(kThere, 7)}) == 0,
          "written and signalled");
    get("revoked");
    drm_orr_queue_wait out{};
    std::ignore = place.queue->run(std::vector{fill(kVa, kBytes, 5), copy(kVa, kThere, kBytes)}, out);
    check(out.error != 0, fmt::format("a write after that fails ({})", out.error));
    check(comes_true([&] {
              return map(place.fd(), place.vm, handle, kThere + kBytes, 4096, ORR_BIND_WRITE) == ENOTCONN;
          }),
          "what was taken back can be bound no more");
    put("denied", "");
    Place other(0);
    check(import_of(other, to_import(get("again")), &handle) == 0, "a new handle is good");
    check(map(other.fd(), other.vm, handle, kThere, kBytes, ORR_BIND_WRITE) == 0, "and can be bound, too");
    std::fflush(stdout);
    std::this_thread::sleep_for(std::chrono::seconds(1));  // for what was said to get out
    // Without a word to anybody.
    std::ofstream("/proc/sysrq-trigger") << "b" << std::flush;
    std::this_thread::sleep_for(std::chrono::seconds(30));
    return 1;
}

}  // namespace

int main() {
    const char* vm = std::getenv("ORR_VM");
    return vm != nullptr && *vm == '1' ? write_there() : own();
}
