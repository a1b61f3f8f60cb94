// Requests that carry another key than the owner's driver has given: refused, counted at the owner's port,
// told to both. For a VM of two cards of which card 0 forges all that it sends, and card 1 sends all with its
// first key, by their fault plans (ORRERY_FORGES).
#include <gtest/gtest.h>
#include <orrery/hw/mmu.h>
#include <sys/klog.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

constexpr std::uint64_t kOwn = 0x50000000;

// Of a file of all ports of a card.
std::uint64_t sum_of(unsigned card, const char* file) {
    std::uint64_t sum = 0;
    const std::string links = "/sys/bus/pci/devices/" + pci_addresses().at(card) + "/links";
    for (const auto& port : std::filesystem::directory_iterator(links))
        sum += std::strtoull(read_file(port.path() / file).c_str(), nullptr, 10);
    return sum;
}

// Whether the kernel's log has a line of this card's with that.
bool is_told(unsigned card, const std::string& what) {
    constexpr int kReadAll = 3;
    std::string log(1 << 20, '\0');
    const int bytes = ::klogctl(kReadAll, log.data(), static_cast<int>(log.size()));
    log.resize(static_cast<std::size_t>(std::max(bytes, 0)));
    for (std::size_t at = 0; (at = log.find(what, at)) != std::string::npos; ++at) {
        const std::size_t line = log.rfind('\n', at) + 1;
        if (log.substr(line, at - line).find(pci_addresses().at(card)) != std::string::npos) return true;
    }
    return false;
}

// The same, as the card's driver tells a process.
std::uint64_t queried(const Place& place, std::uint32_t drm_orr_query_link::* count) {
    drm_orr_query_device card{};
    EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_DEVICE, &card), 0);
    std::uint64_t sum = 0;
    for (std::uint32_t port = 0; port < card.link_ports; ++port) {
        drm_orr_query_link link{};
        link.port = port;
        EXPECT_EQ(call(place.fd(), DRM_IOCTL_ORR_QUERY_LINK, &link), 0);
        sum += link.*count;
    }
    return sum;
}

class Forged : public ::testing::Test {
  protected:
    void SetUp() override {
        if (std::getenv("ORRERY_FORGES") == nullptr) GTEST_SKIP() << "no card forges";
        for (Place* place : {&forger_, &owner_})
            place->make_memory();
        EXPECT_EQ(make_buffer(forger_.fd(), forger_.vm, kOwn, 4096, ORR_BO_VRAM, own_), 0);
    }
    // At kThere of each the other's.
    void share(const Place& place, const Place& owner) const {
        File dma_buf;
        std::uint32_t handle = 0;
        ASSERT_EQ(export_bo(owner.fd(), owner.memory.handle, dma_buf), 0);
        ASSERT_EQ(import_bo(place.fd(), dma_buf.get(), handle), 0);
        ASSERT_EQ(map(place.fd(), place.vm, handle, kThere, 4096, ORR_BIND_READ | ORR_BIND_WRITE), 0);
    }
    static constexpr std::uint64_t kThere = 0x70000000;
    Place forger_{0}, owner_{1};
    Buffer own_;
};

TEST_F(Forged, IsRefusedCountedAndToldToBoth) {
    share(forger_, owner_);
    share(owner_, forger_);
    // The other direction is as it should be.
    ASSERT_EQ(owner_.queue->run(std::vector{fill(kVa, 4096, 7), copy(kVa, kThere, 2048)}), 0);
    EXPECT_TRUE(comes_true([&] { return forger_.memory.words()[255] == 7; }));
    EXPECT_EQ(sum_of(0, "bad_keys"), 0u);
    // A write and a signal: what says so comes behind them.
    std::uint64_t bad = sum_of(1, "bad_keys"), refused = sum_of(0, "refused");
    EXPECT_EQ(bad + refused, 0u);
    ASSERT_EQ(
        forger_.queue->run(std::vector{fill(kOwn, 4096, 9), copy(kOwn, kThere, 4096), signal(kThere, 99)}),
        0);
    EXPECT_TRUE(comes_true([&] { return sum_of(1, "bad_keys") >= 2; }));
    EXPECT_TRUE(comes_true([&] { return sum_of(0, "refused") >= 2; }));
    bad = sum_of(1, "bad_keys");
    EXPECT_EQ(sum_of(0, "refused"), bad) << "the sender hears of each";
    EXPECT_EQ(sum_of(1, "denied"), bad);
    EXPECT_EQ(queried(owner_, &drm_orr_query_link::bad_keys), bad);
    EXPECT_EQ(queried(owner_, &drm_orr_query_link::denied), bad);
    EXPECT_EQ(queried(forger_, &drm_orr_query_link::refused), bad);
    EXPECT_EQ(queried(forger_, &drm_orr_query_link::bad_keys), 0u);
    for (unsigned word = 0; word < 512; ++word)
        ASSERT_EQ(owner_.memory.words()[word], 7u) << word;
    // A read.
    drm_orr_queue_wait out{};
    std::ignore = forger_.queue->run(std::vector{copy(kThere, kOwn, 4096)}, out);
    EXPECT_NE(out.error, 0u);
    EXPECT_EQ(out.error_detail & 0xff, std::uint64_t{ORR_FAULT_PEER_KEY})
        << out.error << ' ' << out.error_detail;
    EXPECT_EQ(own_.words()[0], 9u);
    EXPECT_GT(sum_of(1, "bad_keys"), bad);
    EXPECT_EQ(sum_of(0, "bad_keys"), 0u);
    EXPECT_TRUE(comes_true([&] { return is_told(1, "requests came with a wrong key"); }));
    EXPECT_TRUE(comes_true([&] { return is_told(0, "the last for its key"); }));
}

// A card that holds on to the key of an earlier life, its own or the owner's, gets nowhere in the next: no
// key comes again.
TEST(Stale, KeysEndWithALifeOfEither) {
    if (std::getenv("ORRERY_FORGES") == nullptr) GTEST_SKIP() << "no card has old keys";
    const auto node = [](unsigned card) { return static_cast<unsigned>(node_of(pci_addresses().at(card))); };
    for (const unsigned reborn : {2u, 0u, 1u}) {  // at first neither
        SCOPED_TRACE(reborn);
        if (reborn < 2) {
            ASSERT_TRUE(unbind_driver(pci_addresses().at(reborn)));
            ASSERT_TRUE(bind_driver(pci_addresses().at(reborn)));
        }
        Place owner(node(0)), writer(node(1));
        owner.make_memory();
        ASSERT_EQ(owner.queue->run(std::vector{fill(kVa, 4096, 7)}), 0);
        Buffer own;
        ASSERT_EQ(make_buffer(writer.fd(), writer.vm, kOwn, 4096, ORR_BO_VRAM, own), 0);
        writer.share(owner, ORR_BIND_WRITE);
        const std::uint64_t bad = sum_of(0, "bad_keys"), refused = sum_of(1, "refused");
        ASSERT_EQ(writer.queue->run(std::vector{fill(kOwn, 4096, 9), copy(kOwn, kVa, 4096)}), 0);
        if (reborn == 2) {
            EXPECT_TRUE(comes_true([&] { return owner.memory.words()[511] == 9; })) << "it is its key";
            EXPECT_EQ(sum_of(0, "bad_keys"), bad);
            continue;
        }
        EXPECT_TRUE(comes_true([&] { return sum_of(0, "bad_keys") > bad; }));
        EXPECT_TRUE(comes_true([&] { return sum_of(1, "refused") > refused; }));
        for (unsigned word = 0; word < 512; ++word)
            ASSERT_EQ(owner.memory.words()[word], 7u) << word;
    }
}

}  // namespace
}  // namespace orrery::kmod_test
