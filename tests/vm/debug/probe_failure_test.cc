// Each allocation of the driver's probe and of its loading fails once. Takes the cards away: run it alone.
#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "tests/vm/debug/injector.h"
#include "tests/vm/kmod/device.h"
#include "tests/vm/kmod/pci.h"

namespace orrery::kmod_test {
namespace {

// write() that begins and ends inside the injector; what it needs is made before.
class Attribute {
  public:
    explicit Attribute(const std::string& path) : file_(::open(path.c_str(), O_WRONLY | O_CLOEXEC)) {
        EXPECT_TRUE(file_) << path << ": " << std::strerror(errno);
    }
    int write(const std::string& text) const {
        return ::pwrite(file_.get(), text.data(), text.size(), 0) >= 0 ? 0 : errno;
    }

  private:
    File file_;
};

void expect_works(const std::string& card) {
    const int node = node_of(card);
    ASSERT_GE(node, 0) << card;
    const File file = open_card(static_cast<unsigned>(node));
    EXPECT_EQ(vram_used(file.get()), 0u);
    std::uint32_t vm = 0;
    ASSERT_EQ(create_vm(file.get(), vm), 0);
    Queue queue(file.get(), vm, 0x10000000);
    ASSERT_EQ(queue.error(), 0);
    EXPECT_EQ(queue.run(std::vector{nop()}), 0);
}

TEST(ProbeFailures, EachAllocationOfAProbe) {
    const std::vector<std::string> cards = pci_addresses();
    ASSERT_FALSE(cards.empty());
    const std::string& card = cards[0];
    const Attribute bind("/sys/bus/pci/drivers/orrery/bind");
    const Attribute unbind("/sys/bus/pci/drivers/orrery/unbind");
    Injector injector;
    // The DRM core of 6.12 drops a device that it did not get (drm_minor_alloc_release()) if this fails.
    Injector::spare("drm_sysfs_minor_alloc");
    // Not what the bus does around a probe: a point is some 0.7 s here, most of it for locks that are
    // checked.
    Injector::only_below("orrery");
    ASSERT_EQ(unbind.write(card), 0);
    unsigned failures = 0;
    bool busy = false;
    const unsigned points = injector.each_point([&](unsigned n) {
        const int error = bind.write(card);
        // Off for what follows: only the probe is to fail.
        injector.stop();
        EXPECT_EQ(node_of(card) >= 0, error == 0) << "point " << n << ": " << std::strerror(error);
        failures += error != 0;
        if (error == 0) {
            EXPECT_EQ(unbind.write(card), 0) << "point " << n;
        }
        // The BARs could not be claimed. From here on the interrupts' files in /proc are spared, of which the
        // kernel warns when it removes those that it did not get; what was spared so far, and is counted now,
        // lies behind us.
        if (error == EBUSY && !busy) Injector::spare("register_irq_proc");
        busy |= error == EBUSY;
        if (n % 50 == 0) fmt::print("{} points, {} probes failed\n", n, failures);
    });
    fmt::print("{} points, {} of them failed the probe\n", points, failures);
    EXPECT_GT(failures, 50u);
    EXPECT_TRUE(busy) << "no point failed the claim of the BARs";
    Injector::below_anything();
    ASSERT_EQ(bind.write(card), 0);
    for (const std::string& each : cards)
        expect_works(each);
}

TEST(ProbeFailures, EachAllocationOfLoadingTheModule) {
    const std::vector<std::string> cards = pci_addresses();
    utsname name{};
    ASSERT_EQ(::uname(&name), 0);
    const std::string path = fmt::format("/lib/modules/{}/orrery.ko", name.release);
    const File module(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(module) << path;
    const auto load = [&] { return ::syscall(SYS_finit_module, module.get(), "", 0) == 0 ? 0 : errno; };
    const auto unload = [] { return ::syscall(SYS_delete_module, "orrery", O_NONBLOCK) == 0 ? 0 : errno; };
    ASSERT_EQ(unload(), 0);
    // Not to the cards: their probe has its own test.
    for (const std::string& card : cards)
        ASSERT_TRUE(write_file("/sys/bus/pci/devices/" + card + "/driver_override", "none"));
    Injector injector;
    unsigned failures = 0;
    const unsigned points = injector.each_point([&](unsigned n) {
        const int error = load();
        injector.stop();
        failures += error != 0;
        if (error == 0) {
            EXPECT_EQ(unload(), 0) << "point " << n;
        }
    });
    fmt::print("{} points, {} of them failed the loading\n", points, failures);
    EXPECT_GT(failures, 10u);
    for (const std::string& card : cards)
        ASSERT_TRUE(write_file("/sys/bus/pci/devices/" + card + "/driver_override", "\n"));
    ASSERT_EQ(load(), 0);
    for (const std::string& card : cards)
        expect_works(card);
}

}  // namespace
}  // namespace orrery::kmod_test
