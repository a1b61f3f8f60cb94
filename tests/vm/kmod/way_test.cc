// Ways over several links: for a VM of three cards or more in a chain, between whose ends they lead, or with
// ORRERY_AT_SWITCH set of cards at one switch.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>

#include "tests/system/runtime/hand.h"
#include "tests/vm/kmod/pci.h"
#include "tests/vm/kmod/place.h"

namespace orrery::kmod_test {
namespace {

drm_orr_query_way way_between(const Place& from, const Place& to) {
    return kmod_test::way_between(from.fd(), to.fd());
}

class Ways : public ::testing::Test {
  protected:
    void SetUp() override {
        if (count_cards() < 3) GTEST_SKIP() << "needs three cards";
        far_ = count_cards() - 1;
        at_switch_ = std::getenv("ORRERY_AT_SWITCH") != nullptr;
        links_ = at_switch_ ? 2 : far_;
        signaller_ = std::make_unique<Place>(0);
        waiter_ = std::make_unique<Place>(far_);
        waiter_->make_memory();
        before_ = way_between(*signaller_, *waiter_);
        signaller_->share(*waiter_, ORR_BIND_WRITE);
    }
    int attach_signaller() const { return attach(signaller_->fd(), signaller_->queue->number(), kVa); }
    unsigned far_ = 0, links_ = 0;  // the waiter's card, and to it
    bool at_switch_ = false;
    std::unique_ptr<Place> signaller_, waiter_;
    drm_orr_query_way before_{};
};

TEST_F(Ways, AreTold) {
    EXPECT_EQ(before_.links, links_);
    EXPECT_EQ(before_.version, 0u) << "nothing had been imported";
    const drm_orr_query_way there = way_between(*signaller_, *waiter_),
                            back = way_between(*waiter_, *signaller_);
    EXPECT_EQ(there.links, links_);
    EXPECT_EQ(back.links, links_);
    EXPECT_NE(there.version, 0u);
    EXPECT_EQ(there.lost_uid, 0u) << "no link has gone down";
    EXPECT_EQ(before_.settled, 0u);
    EXPECT_EQ(there.settled, there.version);
    EXPECT_EQ(there.version, back.version);
    EXPECT_EQ(there.latency_ns, back.latency_ns);
    EXPECT_EQ(there.latency_ns, before_.latency_ns);
    EXPECT_GT(there.gbps, 0u);
    const drm_orr_query_way part = way_between(*signaller_, Place(1));
    if (at_switch_) {
        EXPECT_EQ(part.links, 2u);
        EXPECT_EQ(part.latency_ns, there.latency_ns) << "all are as far";
    } else {
        EXPECT_EQ(part.links, 1u);
        EXPECT_GT(there.latency_ns, links_ * part.latency_ns) << "passing on takes time";
    }
    EXPECT_EQ(way_between(*signaller_, *signaller_).links, 0u);
    drm_orr_query_way nobody{};
    nobody.peer_uid = 0x1234567812345678;
    EXPECT_EQ(call(signaller_->fd(), DRM_IOCTL_ORR_QUERY_WAY, &nobody), 0);
    EXPECT_EQ(nobody.links, 0u);
    nobody.node = 500;
    EXPECT_EQ(call(signaller_->fd(), DRM_IOCTL_ORR_QUERY_WAY, &nobody), EINVAL) << "one or the other";
    nobody.peer_uid = 0;
    EXPECT_EQ(call(signaller_->fd(), DRM_IOCTL_ORR_QUERY_WAY, &nobody), EINVAL) << "this driver's number";
    nobody.node = 1u << 31;
    EXPECT_EQ(call(signaller_->fd(), DRM_IOCTL_ORR_QUERY_WAY, &nobody), EINVAL);
}

// The driver's file says what QUERY_WAY does, of all cards.
std::string route_between(unsigned from, unsigned to) {
    return route_of(pci_addresses().at(from), pci_addresses().at(to));
}

std::string up_by(const drm_orr_query_way& way) {
    return std::to_string(way.port) + ' ' + std::to_string(way.links) + ' ' + std::to_string(way.version) +
           " up";
}

TEST_F(Ways, AreInSysfs) {
    const drm_orr_query_way there = way_between(*signaller_, *waiter_),
                            back = way_between(*waiter_, *signaller_),
                            part = way_between(*signaller_, Place(1));
    EXPECT_EQ(route_between(0, far_), up_by(there));
    EXPECT_EQ(route_between(far_, 0), up_by(back));
    EXPECT_EQ(route_between(0, 0), "") << "of itself it says nothing";
    // What nobody has asked for has no generation.
    if (part.version == 0)
        EXPECT_EQ(route_between(0, 1),
                  std::to_string(part.port) + ' ' + std::to_string(part.links) + " 0 unused");
    else
        EXPECT_EQ(route_between(0, 1), up_by(part));
    EXPECT_EQ(read_file("/sys/bus/pci/devices/" + pci_addresses().at(0) + "/foreign_routes"), "");
}

TEST_F(Ways, ASignalPassesThroughACard) {
    ASSERT_EQ(attach_signaller(), 0);
    waiter_->queue->submit(wait_for(kVa, 7));
    EXPECT_EQ(signaller_->queue->run(std::vector{signal(kVa, 7)}), 0);
    EXPECT_EQ(waiter_->outcome().error, 0u);
}

// From a signal of the card's own memory to the one behind it, on a card next to it and on the one far away:
// the firmware takes the same time for both, and the way what the driver says that it takes.
TEST_F(Ways, TakeToThePicosecondWhatIsTold) {
    constexpr std::uint64_t kNear = kVa + 0x10000, kOwn = kVa + 0x20000;
    Place middle(1);
    middle.make_memory();
    File dma_buf;
    std::uint32_t handle = 0;
    ASSERT_EQ(export_bo(middle.fd(), middle.memory.handle, dma_buf), 0);
    ASSERT_EQ(import_bo(signaller_->fd(), dma_buf.get(), handle), 0);
    ASSERT_EQ(map(signaller_->fd(), signaller_->vm, handle, kNear, 4096, ORR_BIND_WRITE), 0);
    Buffer own;
    ASSERT_EQ(make_buffer(signaller_->fd(), signaller_->vm, kOwn, 4096, ORR_BO_VRAM, own), 0);
    ASSERT_EQ(attach_signaller(), 0);
    ASSERT_EQ(attach(signaller_->fd(), signaller_->queue->number(), kNear), 0);
    const std::uint64_t *near = middle.memory.words(), *far = waiter_->memory.words();
    // The shortest of several rounds: the first finds tables that nobody has used, and a firmware may have
    // something else to do between two packets.
    std::uint64_t to_near = ~std::uint64_t{0}, to_far = to_near;
    for (std::uint64_t round = 1; round <= 16; ++round) {
        const orr_packet packets[] = {signal(kOwn, round), signal(kNear, round), signal(kOwn + 16, round),
                                      signal(kVa, round)};
        signaller_->queue->submit(packets);
        for (const std::uint64_t* semaphore : {near, far})
            while (std::atomic_ref(const_cast<std::uint64_t&>(semaphore[0])).load() != round)
                std::this_thread::yield();
        ASSERT_EQ(signaller_->outcome().error, 0u);
        to_near = std::min(to_near, near[1] - own.words()[1]);
        to_far = std::min(to_far, far[1] - own.words()[3]);
    }
    const std::uint32_t one = way_between(*signaller_, middle).latency_ns,
                        all = way_between(*signaller_, *waiter_).latency_ns;
    EXPECT_EQ(to_far - to_near, std::uint64_t{all - one} * 1000);
}

// What has been signalled arrives before the semaphore is closed.
TEST_F(Ways, ACloseComesBehindTheSignal) {
    for (std::uint64_t round = 1; round <= 20; ++round) {
        waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
        Queue other(signaller_->fd(), signaller_->vm, kRingVa + (round << 20));
        ASSERT_EQ(attach(signaller_->fd(), other.number(), kVa), 0);
        ASSERT_EQ(other.run(std::vector{signal(kVa, round)}), 0);
        ASSERT_EQ(detach(signaller_->fd(), other.number(), kVa), 0);
        EXPECT_EQ(waiter_->memory.words()[0], round);
    }
}

class WayCut : public Ways {
  protected:
    void SetUp() override {
        if (::access("/share/cables", F_OK) != 0) GTEST_SKIP() << "nobody on the host pulls the cable";
        Ways::SetUp();
    }
    void TearDown() override {
        if (out_) put_in();
        EXPECT_EQ(bad_keys(), 0u);
    }
    void pull() {
        out_ = true;
        ASSERT_EQ(ask_host("cable", "unplug", std::chrono::seconds(30)), "ok\n");
        wait_for_links(0);
    }
    void put_in() {
        out_ = false;
        ASSERT_EQ(ask_host("cable", "plug", std::chrono::seconds(30)), "ok\n");
        wait_for_links(links_);
    }

  private:
    void wait_for_links(std::uint32_t links) const {
        ASSERT_TRUE(comes_true([&] { return way_between(*signaller_, *waiter_).links == links; })) << links;
    }
    bool out_ = false;
};

// The link that is cut is none of the waiter's card.
TEST_F(WayCut, UnderAWaitingSemaphore) {
    ASSERT_EQ(attach_signaller(), 0);
    ASSERT_EQ(signaller_->queue->run(std::vector{signal(kVa, 1)}), 0);
    const orr_packet packets[] = {wait_for(kVa, 1), wait_for(kVa, 2)};
    waiter_->queue->submit(packets);
    // The queue was done when it was on the link.
    ASSERT_TRUE(comes_true([&] { return waiter_->memory.words()[0] == 1; }));
    ASSERT_NO_FATAL_FAILURE(pull());
    waiter_->expect_poisoned(ORR_QERR_PEER_LOST);
    EXPECT_EQ(waiter_->queue->ring().error_index, 1u);
}

TEST_F(WayCut, UnderABarrier) {
    Buffer own;
    ASSERT_EQ(make_buffer(signaller_->fd(), signaller_->vm, kVa + 0x10000, 4096, ORR_BO_VRAM, own), 0);
    const File other = barrier_with(*waiter_, signaller_->fd(), own.handle);
    waiter_->queue->submit(std::vector{signal(kPage, 1), wait_for(kVa, 1)});
    ASSERT_NO_FATAL_FAILURE(pull());
    waiter_->expect_poisoned(ORR_QERR_PEER_LOST);
}

TEST_F(WayCut, AllBeginsAnewWhenItIsInAgain) {
    for (std::uint64_t round = 1; round <= 3; ++round) {
        waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
        ASSERT_EQ(attach_signaller(), 0);
        const std::uint32_t before = way_between(*signaller_, *waiter_).version;
        ASSERT_NO_FATAL_FAILURE(pull());
        const drm_orr_query_way gone = way_between(*signaller_, *waiter_);
        EXPECT_NE(gone.version, before);
        EXPECT_EQ(gone.settled, gone.version) << "both ends deny what is left";
        // Another generation, and card 0 has no link that is up.
        const std::string cut = route_between(0, far_);
        EXPECT_TRUE(cut.starts_with("- 0 ") && cut.ends_with(" down")) << cut;
        EXPECT_NE(cut, "- 0 " + std::to_string(before) + " down");
        EXPECT_EQ(route_between(1, far_).find("- "), std::string::npos) << "that link is up";
        ASSERT_NO_FATAL_FAILURE(put_in());
        const drm_orr_query_way way = way_between(*signaller_, *waiter_);
        EXPECT_EQ(route_between(0, far_), up_by(way));
        EXPECT_NE(way.version, before);
        EXPECT_EQ(way.settled, way.version);
        EXPECT_EQ(way.lost_version, before);
        EXPECT_EQ(way.lost_uid, uid_of(signaller_->fd()));
        EXPECT_EQ(way.lost_peer_uid, at_switch_ ? 0 : uid_of(Place(1).fd()));
        ASSERT_EQ(attach_signaller(), 0);
        waiter_->memory.words()[0] = waiter_->memory.words()[1] = 0;
        Queue later(waiter_->fd(), waiter_->vm, kRingVa + (round << 20));
        ASSERT_EQ(signaller_->queue->run(std::vector{signal(kVa, 7)}), 0);
        EXPECT_EQ(later.run(std::vector{wait_for(kVa, 7)}), 0);
        ASSERT_EQ(detach(signaller_->fd(), signaller_->queue->number(), kVa), 0);
    }
}

constexpr std::uint64_t kWork = 0x70000000;

// A debugger holds card 0, and the others keep step with it. For a VM under held.sh.
const std::string kHeld = "/sys/class/accel/accel0/device/held";

void hold(bool on) {
    ASSERT_EQ(ask_host("hold", on ? "on" : "off", std::chrono::seconds(30)), "ok\n");
    ASSERT_TRUE(comes_true([&] { return read_file(kHeld) == (on ? "firmware" : "none"); }))
        << read_file(kHeld);
}

class HeldWays : public ::testing::Test {
  protected:
    void SetUp() override {
        if (::access("/share/debugger", F_OK) != 0) GTEST_SKIP() << "nobody on the host has a debugger";
    }
    static std::string state(unsigned card) {
        return read_file("/sys/class/accel/accel" + std::to_string(card) + "/device/state");
    }
    // Whichever node it has in this life.
    static unsigned node(unsigned card) { return static_cast<unsigned>(node_of(pci_addresses().at(card))); }
    // Cards at work come to where they have to wait for the one that is held, and hear nothing from there on.
    static void stand(const std::vector<Place*>& places) {
        for (Place* place : places)
            ASSERT_EQ(make_buffer(place->fd(), place->vm, kWork, 1 << 20, ORR_BO_VRAM, place->work), 0);
        ASSERT_NO_FATAL_FAILURE(hold(true));
        for (const Place* place : places)
            place->queue->submit(std::vector<orr_packet>(60, fill(kWork, 1 << 20, 3)));
        std::this_thread::sleep_for(std::chrono::seconds(1));
    }
    // The driver leaves a card while the debugger holds another, which is what this is about; then all go on.
    static void expect_to_go(unsigned card) {
        const std::string gone = pci_addresses().at(card);
        ASSERT_TRUE(write_file("/sys/module/orrery/parameters/unbind_timeout_ms", "500"));
        ASSERT_TRUE(unbind_driver(gone));
        EXPECT_EQ(read_file(kHeld), "firmware");
        // The firmware of none is blamed.
        const std::string log = kernel_log(), cause = "has not cleared them, because a debugger holds ";
        EXPECT_NE(log.rfind(pci_addresses().at(0) + ' ' + cause + "it: "), std::string::npos);
        EXPECT_NE(log.rfind(pci_addresses().at(1) + ' ' + cause + "another card, for which it may wait: "),
                  std::string::npos);
        EXPECT_EQ(log.find("has not come to it in the"), std::string::npos);
        ASSERT_NO_FATAL_FAILURE(hold(false));
        ASSERT_TRUE(bind_driver(gone));
        ASSERT_TRUE(write_file("/sys/module/orrery/parameters/unbind_timeout_ms", "10000"));
    }
};

// A thread that waits in a function of the driver, or has been there.
class Caller {
  public:
    template <class Call>
    explicit Caller(Call call)
        : thread_([this, call] {
              id_ = ::gettid();
              call();
              done_ = true;
          }) {}
    ~Caller() {
        if (!done_ && read_file(kHeld) != "none") hold(false);
        thread_.join();
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;
    bool done() const { return done_; }
    void expect_in(const std::string& function) const {
        std::string stack;
        for (int tries = 0; tries < 2000; ++tries) {
            std::ifstream file("/proc/self/task/" + std::to_string(id_.load()) + "/stack");
            stack.assign(std::istreambuf_iterator<char>(file), {});
            if (stack.find(function) != std::string::npos) return;
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        }
        GTEST_FAIL() << "it is not in " << function << " but in " << stack;
    }

  private:
    std::atomic<pid_t> id_ = 0;
    std::atomic<bool> done_ = false;
    std::thread thread_;
};

// Cards that stand because another is held are not given up for what they do not do meanwhile, and are no
// reason for others to wait for ever.
TEST_F(HeldWays, StandAndGoOn) {
    Place owner(2), writer(1), first(0);
    owner.make_memory();
    ASSERT_NO_FATAL_FAILURE(stand({&owner, &writer}));
    std::thread shares([&] { writer.share(owner, ORR_BIND_WRITE); });
    // Longer than any of them may take for a route, a grant or a drain by itself.
    std::this_thread::sleep_for(std::chrono::seconds(8));
    // It ends, whatever it says.
    way_between(writer, first);
    for (unsigned card = 0; card < 3; ++card)
        EXPECT_EQ(state(card), "running") << "card " << card;
    ASSERT_NO_FATAL_FAILURE(hold(false));
    shares.join();
    ASSERT_EQ(writer.queue->run(std::vector{fill(kVa, 4096, 7)}), 0);
    EXPECT_EQ(unmap(writer.fd(), writer.vm, kVa, 4096), 0);
    EXPECT_EQ(owner.memory.words()[0], 7u);
    const drm_orr_query_way way = way_between(writer, owner);
    EXPECT_EQ(way.links, 1u);
    EXPECT_EQ(way.settled, way.version);
    for (unsigned card = 0; card < 3; ++card)
        EXPECT_EQ(state(card), "running") << "card " << card;
}

// What is signalled in memory of the card that goes is drained from the one between, which stands.
TEST_F(HeldWays, WhoGoesWaitsForNoCardBetween) {
    Place waiter(node(2)), signaller(node(0)), between(node(1));
    waiter.make_memory();
    signaller.share(waiter, ORR_BIND_WRITE);
    between.share(waiter, ORR_BIND_WRITE);
    ASSERT_EQ(attach(signaller.fd(), signaller.queue->number(), kVa), 0);
    ASSERT_NO_FATAL_FAILURE(stand({&between, &waiter}));
    const Caller detaches([&] { detach(signaller.fd(), signaller.queue->number(), kVa); });
    ASSERT_NO_FATAL_FAILURE(detaches.expect_in("orr_sems_wait_closed"));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));  // for the work that closes it to begin
    ASSERT_FALSE(detaches.done());
    ASSERT_NO_FATAL_FAILURE(expect_to_go(2));
}

}  // namespace
}  // namespace orrery::kmod_test
