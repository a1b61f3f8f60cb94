// Cards on switches: exact times, shares, order, what is lost, and peers that lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <thread>

#include "tests/unit/switch/star.h"

namespace orrery::emu::test {
namespace {

TEST(Switch, TimesAreExact) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    ModelTime at = 10'000 * kPsPerNs;
    for (unsigned to = 1; to < 3; ++to) {
        for (const std::uint64_t bytes : {8ull, 64ull, 4096ull, 100'001ull, 256ull << 10}) {
            for (auto& card : star.cards)
                card->events.advance_to(at);
            star[to].arrivals.clear();
            ASSERT_EQ(star[0].write(to + 1, 0, bytes, 1).bytes, bytes);
            ASSERT_EQ(star[0].signal(to + 1, kSem, at), ORR_FAULT_NONE);
            star.run();
            const ModelTime end = at + 2 * kLatency + kHop + on_wire(bytes);
            ASSERT_EQ(star[to].arrivals.size(), 2u);
            EXPECT_EQ(star[to].arrivals[0], end) << bytes;
            EXPECT_EQ(star[to].semaphore(kSem).time_ps, end + on_wire(64)) << bytes;
            at += 1'000'000 * kPsPerNs;
        }
    }
    EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_FORWARDED), 20u);
}

// What waits for its turn behind others is not late, however long it waits.
TEST(Switch, CountsWhatComesAfterItsTime) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    Switch& one = *star.switches[0];
    const auto late = [&] { return one.counters().get(ORR_CTR_LINK_STRAGGLERS); };
    one.events().advance_to(1'000'000 * kPsPerNs);
    ASSERT_EQ(star[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(late(), 1u);
    for (auto& card : star.cards)
        card->events.advance_to(2'000'000 * kPsPerNs);
    std::vector<std::unique_ptr<Sender>> senders;
    for (unsigned from = 0; from < 2; ++from)
        senders.push_back(std::make_unique<Sender>(star[from], 3, 0, std::uint64_t{6} << 20,
                                                   value_of(from + 1, 3), std::uint64_t{64} << 10));
    star.run();
    EXPECT_EQ(star[2].semaphore(kSem + 16 * 2).value, 1u);
    EXPECT_EQ(late(), 1u);
    // Its clock is where that has brought it, and both cards are behind.
    one.events().advance_to(one.events().now() + 1'000'000 * kPsPerNs);
    ASSERT_EQ(star[1].signal(3, kSem + 8 * 16, 2), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(3, kSem + 9 * 16, 2), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(3, kSem + 9 * 16, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(late(), 4u);
}

TEST(Switch, ATreeTakesFourLinksAndThreeSwitches) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    ASSERT_EQ(star[0].write(4, 0, 4096, 1).bytes, 4096u);
    star.run();
    ASSERT_EQ(star[3].arrivals.size(), 1u);
    EXPECT_EQ(star[3].arrivals[0], 4 * kLatency + 3 * kHop + on_wire(4096));
}

TEST(Switch, TellsItsCardsWhomTheyReach) {
    Star star;
    star.make_tree(2, 2, 2);
    ASSERT_TRUE(star.up());
    // Its neighbour, by the first switch.
    EXPECT_EQ(star.reach(0, 2), (link::Route{.valid = true,
                                             .links = 1,
                                             .port = 1,
                                             .losses = 0,
                                             .latency_ns = 800,
                                             .fabric = 0x100,
                                             .mbps = 400'000}));
    // And one of the other leaf, over a spine.
    EXPECT_EQ(star.reach(0, 4), (link::Route{.valid = true,
                                             .links = 3,
                                             .port = 1,
                                             .losses = 0,
                                             .latency_ns = 2400,
                                             .fabric = 0x101,
                                             .mbps = 400'000}));
    EXPECT_FALSE(star.reach(0, 1).valid);
    EXPECT_FALSE(star.reach(0, 9).valid);
    EXPECT_EQ(star[0].ports[0]->peer_uid(), 0x100u);
    EXPECT_TRUE(star[0].ports[0]->peer_is_switch());
    // Of nodes that are as far, each goes by a spine of its own.
    EXPECT_NE(star.switches[0]->fabric().port_of(3), star.switches[0]->fabric().port_of(4));
}

class Incast : public testing::TestWithParam<std::tuple<unsigned, std::uint64_t>> {};

// All send all the time to one: each gets as much of its port.
TEST_P(Incast, SharesAreEven) {
    const auto [number, piece] = GetParam();
    Star star;
    star.make(number + 1);
    ASSERT_TRUE(star.up());
    constexpr std::uint64_t kBytes = 6 << 20;
    std::vector<std::unique_ptr<Sender>> senders;
    for (unsigned from = 1; from <= number; ++from)
        senders.push_back(std::make_unique<Sender>(star[from], 1, 0, kBytes, value_of(from + 1, 1), piece));
    star.run();
    ModelTime first = kNever, last = 0;
    for (unsigned from = 1; from <= number; ++from) {
        const orr_semaphore done = star[0].semaphore(kSem + 16 * (from + 1));
        ASSERT_EQ(done.value, 1u);
        first = std::min(first, done.time_ps);
        last = std::max(last, done.time_ps);
    }
    // Until the first is done each had its share, so what that is of all is the share it had.
    const double all = static_cast<double>(number * kBytes);
    const double ideal = all / static_cast<double>(kRate) * 1e12;
    EXPECT_GE(ideal / static_cast<double>(last), 0.95);
    const double share = static_cast<double>(kBytes) / (static_cast<double>(first) * 1e-12 * kRate);
    EXPECT_NEAR(share, 1.0 / number, 0.02);
    EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
    std::printf("incast %u to 1, %llu KiB: %.4f of the port, first share %.4f of %.4f\n", number,
                static_cast<unsigned long long>(piece >> 10), ideal / static_cast<double>(last), share,
                1.0 / number);
}
INSTANTIATE_TEST_SUITE_P(Numbers, Incast,
                         testing::Combine(testing::Values(3u, 7u),
                                          testing::Values<std::uint64_t>(4 << 10, 64 << 10, 256 << 10)));

class AllToAll : public testing::TestWithParam<bool> {};

TEST_P(AllToAll, EndsInOrderAndTheSameEachTime) {
    constexpr std::uint64_t kBytes = 500 << 10;  // of which 7 find room at once
    std::vector<ModelTime> first;
    for (int play = 0; play < 2; ++play) {
        Star star;
        if (GetParam())
            star.make_tree(4, 2, 2);
        else
            star.make(8);
        ASSERT_TRUE(star.up());
        std::vector<std::unique_ptr<Sender>> senders;
        for (unsigned from = 0; from < 8; ++from)
            for (unsigned to = 0; to < 8; ++to)
                if (from != to)
                    senders.push_back(std::make_unique<Sender>(star[from], to + 1,
                                                               from * std::uint64_t{700 << 10}, kBytes,
                                                               value_of(from + 1, to + 1)));
        star.run();
        std::vector<ModelTime> times;
        for (unsigned from = 0; from < 8; ++from) {
            for (unsigned to = 0; to < 8; ++to) {
                if (from == to) continue;
                const auto value = static_cast<std::uint8_t>(0x10 * (from + 1) + to + 1);
                EXPECT_EQ(star[to].byte(from * std::uint64_t{700 << 10}), value);
                EXPECT_EQ(star[to].byte(from * std::uint64_t{700 << 10} + kBytes - 1), value);
                const orr_semaphore semaphore = star[to].semaphore(kSem + 16 * (from + 1));
                EXPECT_EQ(semaphore.value, 1u) << from << " to " << to;
                times.push_back(semaphore.time_ps);
            }
        }
        EXPECT_EQ(star.sum(ORR_CTR_LINK_STRAGGLERS), 0u);
        EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED) + star.sum(ORR_CTR_LINK_DENIED), 0u);
        if (play == 0) first = times;
        EXPECT_EQ(times, first);
    }
    const double ideal = 7.0 * kBytes / kRate * 1e12;
    std::printf("all to all of 8, %s: %.3f of the ports\n", GetParam() ? "tree" : "one switch",
                ideal / static_cast<double>(*std::ranges::max_element(first)));
}
INSTANTIATE_TEST_SUITE_P(Shapes, AllToAll, testing::Bool());

// Nothing goes on behind a write that was lost until there is a new epoch.
TEST(Switch, NothingFollowsWhatIsLost) {
    Star star;
    star.make(3, plan("link port=1 first=1 count=1 drop"));
    ASSERT_TRUE(star.up());
    const std::uint32_t before = star.reach(0, 2).losses;
    const std::uint32_t other = star.reach(0, 3).losses;
    ASSERT_EQ(star[0].write(2, 0, 64, 7).bytes, 64u);
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(3, kSem, 1), ORR_FAULT_NONE);
    ASSERT_EQ(star[2].signal(2, kSem + 16, 1), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    EXPECT_EQ(star[2].semaphore(kSem).value, 1u);
    EXPECT_EQ(star[1].semaphore(kSem + 16).value, 1u);  // others' are others'
    EXPECT_NE(star.reach(0, 2).losses, before);
    EXPECT_EQ(star.reach(0, 3).losses, other);
    star[0].route(2, 0, 1);
    star[1].route(1, 0, 1);
    ASSERT_EQ(star[0].signal(2, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 2u);
}

// The card behind a link that was down gets nothing of what was sent before and after, until all begin anew.
TEST(Switch, ALinkThatGoesDownLosesWhatWentThere) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    star.run();
    const std::uint32_t before = star.reach(0, 2).losses;
    star[1].ports[0]->unplug();
    for (int i = 0; i < 100 && star.switches[0]->port(1)->up(); ++i) {
        star.switches[0]->port(1)->service();
        ::usleep(1000);
    }
    star.run();
    EXPECT_FALSE(star.reach(0, 2).valid);
    ASSERT_EQ(star[0].signal(2, kSem, 2), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].signal(3, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[2].semaphore(kSem).value, 2u);
    ASSERT_TRUE(star[1].ports[0]->plug());
    ASSERT_TRUE(star.up());
    EXPECT_TRUE(star.reach(0, 2).valid);
    EXPECT_NE(star.reach(0, 2).losses, before);
    ASSERT_EQ(star[0].signal(2, kSem, 3), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    star.routes(1);
    ASSERT_EQ(star[0].signal(2, kSem, 4), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 4u);
}

// Around a spine that is gone.
TEST(Switch, AnotherSpineTakesOver) {
    Star star;
    star.make_tree(2, 1, 2);
    ASSERT_TRUE(star.up());
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    star.run();
    const std::uint32_t before = star.reach(0, 2).losses;
    const unsigned by = star.switches[0]->fabric().port_of(2);
    // Spines are the last two, and leaves have them behind their one card.
    star.switches[2 + by - 1].reset();
    star.switches.erase(star.switches.begin() + 2 + by - 1);
    for (int i = 0; i < 100; ++i) {
        star.switches[0]->port(by)->service();
        star.switches[1]->port(by)->service();
        ::usleep(500);
    }
    star.run();
    ASSERT_TRUE(star.reach(0, 2).valid);
    EXPECT_NE(star.reach(0, 2).losses, before);
    star.routes(1);
    ASSERT_EQ(star[0].signal(2, kSem, 2), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 2u);
}

TEST(Switch, ACardCannotSpeakForAnother) {
    Star star;
    star.make(3);
    ASSERT_TRUE(star.up());
    star[2].ports[0]->set_node(1);  // it says that it is card 0
    star.run();
    EXPECT_EQ(star.switches[0]->errors().count(ErrorKind::kGuestError), 1u);
    star[2].route(2, 0);
    ASSERT_EQ(star[2].signal(2, kSem, 9), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 0u);
    EXPECT_EQ(star.switches[0]->counters().get(ORR_CTR_LINK_DENIED), 1u);
    // Who had the number keeps it.
    ASSERT_EQ(star[0].signal(2, kSem, 3), ORR_FAULT_NONE);
    ASSERT_EQ(star[1].signal(1, kSem, 4), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star[1].semaphore(kSem).value, 3u);
    EXPECT_EQ(star[0].semaphore(kSem).value, 4u);
    EXPECT_FALSE(star.reach(0, 3).valid);
}

// Ahead of its time, as soon as it is asked for, through all switches on the way.
TEST(Switch, ADrainBringsAllThatWasSent) {
    Star star;
    star.make_tree(2, 1, 2);
    ASSERT_TRUE(star.up());
    ASSERT_EQ(star[0].signal(2, kSem, 1), ORR_FAULT_NONE);
    const auto turn = [&] {
        for (auto& card : star.cards)
            card->ports[0]->poll();
        for (auto& one : star.switches) {
            one->take_arrivals();
            while (one->events().run_next(one->events().now())) {
            }
        }
    };
    for (NetCard* card : {star.cards[0].get(), star.cards[1].get()}) {
        card->ports[0]->drain();
        for (int i = 0; i < 100 && card->drained == 0; ++i)
            turn();
        ASSERT_EQ(card->drained, 1u);
    }
    EXPECT_EQ(star[1].events.now(), 0u);
    ASSERT_TRUE(star[1].ports[0]->settle(kSem));
    EXPECT_EQ(star[1].semaphore(kSem).value, 1u);
    EXPECT_EQ(star[1].semaphore(kSem).time_ps, 4 * kLatency + 3 * kHop + on_wire(64));
}

// Drivers meet by notes before there are routes and epochs, and after losses.
TEST(Switch, NotesGoToANodeAndAreOfNoEpoch) {
    Star star;
    star.make_tree(2, 2, 1);
    ASSERT_TRUE(star.up());
    for (auto& card : star.cards)
        for (auto& other : star.cards)
            card->peers.set_route(other->node, 0);
    EXPECT_EQ(star[0].note(0, 0, 1), ORR_FAULT_NO_ROUTE);  // a switch has no driver
    ASSERT_EQ(star[0].note(2, 0, 2), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].note(4, 0, 3), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].note(9, 0, 4), ORR_FAULT_NONE);  // nobody there: dropped on the way
    star.run();
    EXPECT_EQ(star[1].notes, (std::vector<NetCard::Noted>{{0, 1, true, std::byte{2}}}));
    EXPECT_EQ(star[3].notes, (std::vector<NetCard::Noted>{{0, 1, true, std::byte{3}}}));
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED), 1u);
    // It neither ends an epoch nor begins one, and goes where nothing of an epoch goes any more.
    star.routes(7);
    for (auto& from : star.cards)
        for (auto& to : star.cards)
            if (from != to) from->ports[0]->set_grant(to->node, 0, from->vram.size(), to->node);
    ASSERT_EQ(star[0].write(4, 0, 64, 1).bytes, 64u);
    ASSERT_EQ(star[0].note(4, 0, 5), ORR_FAULT_NONE);
    ASSERT_EQ(star[0].write(4, 0, 64, 2).bytes, 64u);
    star.run();
    EXPECT_EQ(star[3].byte(0), 2);
    const std::uint32_t losses = star.reach(0, 4).losses;
    star[3].ports[0]->unplug();
    for (int i = 0; i < 100 && star.switches[1]->port(1)->up(); ++i) {
        star.switches[1]->port(1)->service();
        ::usleep(1000);
    }
    star.run();
    ASSERT_EQ(star[0].note(4, 0, 6), ORR_FAULT_NONE);
    star.run();
    EXPECT_EQ(star.sum(ORR_CTR_LINK_DROPPED), 2u);
    EXPECT_FALSE(star.reach(0, 4).valid && star.reach(0, 4).losses == losses);
    EXPECT_EQ(star[3].notes.size(), 2u);
    // Not without the leave to have others pass on.
    star[0].ports[0]->set_forward(false);
    EXPECT_EQ(star[0].note(2, 0, 7), ORR_FAULT_NO_ROUTE);
}

TEST(Switch, TwoOfOneLevelAreNotJoined) {
    Star star;
    std::vector<LinkConfig> one, other;
    const std::string between = star.listen(one);
    star.listen(one);
    star.connect(other, between);
    star.connect(other, star.path());
    star.add_switch(one);
    star.add_switch(other);
    for (int i = 0; i < 50; ++i) {
        for (auto& each : star.switches)
            each->port(0)->service();
        ::usleep(2000);
    }
    EXPECT_FALSE(star.switches[0]->port(0)->up() && star.switches[1]->port(0)->up());
    EXPECT_THAT(star.switches[0]->port(0)->down_reason() + star.switches[1]->port(0)->down_reason(),
                testing::HasSubstr("both switches are of level 0"));
}

// As a program does it.
TEST(SwitchControl, PullsCablesAndCountsFaults) {
    Star star;
    SwitchConfig config;
    config.uid = 0x100;
    const std::string paths[] = {star.listen(config.links), star.listen(config.links)};
    config.control = star.path();
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    config.control.string().copy(address.sun_path, sizeof address.sun_path - 1);
    auto made = Switch::create(std::move(config));
    ASSERT_TRUE(made) << made.error();
    Switch& works = **made;
    std::thread thread([&works] { works.run(); });
    for (const std::string& path : paths)
        star.add_card().add(0, false, path);
    star.routes();
    EXPECT_TRUE(star.up());
    const UniqueFd client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval limit{.tv_sec = 30, .tv_usec = 0};
    EXPECT_EQ(::setsockopt(client.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit), 0);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    const auto ask = [&](const std::string& command) {
        EXPECT_EQ(::send(client.get(), command.data(), command.size(), MSG_NOSIGNAL),
                  static_cast<ssize_t>(command.size()));
        std::array<char, 512> bytes;
        const ssize_t got = ::recv(client.get(), bytes.data(), bytes.size(), 0);
        return std::string(bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    };
    // The cards have the test's thread: so long until it is so.
    const auto comes = [&](const auto& what) {
        for (int i = 0; i < 60'000; ++i) {
            for (auto& card : star.cards)
                card->ports[0]->service();
            star.run();
            if (what()) return true;
            ::usleep(1'000);
        }
        return false;
    };
    EXPECT_TRUE(comes([&] { return star.reach(0, 2).valid; }));
    EXPECT_EQ(ask("unplug 1\n"), "ok\n");
    EXPECT_TRUE(comes([&] { return !star[1].ports[0]->up() && !star.reach(0, 2).valid; }));
    EXPECT_TRUE(star[0].ports[0]->up());
    EXPECT_EQ(ask("plug 1\n"), "ok\n");
    EXPECT_TRUE(comes([&] { return star[1].ports[0]->up() && star.reach(0, 2).valid; }));
    EXPECT_EQ(ask("unplug 2\n"), "error: there is no link at port 2\n");
    EXPECT_EQ(ask("add dispatch first=1 die\n"),
              "error: 'dispatch' never comes here; the points that there are: link, wire, training\n");
    EXPECT_EQ(ask("add link port=1 first=2 drop\n"), "ok\n");
    EXPECT_EQ(ask("hits\n"), "0 passed=0 struck=0 link port=0x1 first=2 drop\nok\n");
    star.routes(1);
    EXPECT_EQ(star[0].signal(2, kSem, 7), ORR_FAULT_NONE);
    EXPECT_TRUE(comes([&] { return star[1].semaphore(kSem).value == 7; }));
    EXPECT_EQ(ask("hits\n"), "0 passed=1 struck=0 link port=0x1 first=2 drop\nok\n");
    // Of what trains anew the next time.
    EXPECT_EQ(ask("add training port=1 lanes=1\n"), "ok\n");
    EXPECT_EQ(ask("unplug 1\n"), "ok\n");
    EXPECT_TRUE(comes([&] { return !star[1].ports[0]->up(); }));
    EXPECT_EQ(ask("plug 1\n"), "ok\n");
    EXPECT_TRUE(comes([&] { return star[1].ports[0]->up(); }));
    EXPECT_THAT(ask("hits\n"), testing::HasSubstr("struck=1 training port=0x1 lanes=1\n"));
    works.request_stop();
    thread.join();
}

TEST(Switch, HasNoFaultsButOfLinks) {
    Star star;
    SwitchConfig config;
    config.uid = 0x100;
    star.listen(config.links);
    star.listen(config.links);
    config.faults = plan("link first=1 drop; wire port=0 corrupt; mailbox first=2 hang");
    const auto made = Switch::create(std::move(config));
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error(),
              "--faults: 'mailbox' never comes here; the points that there are: link, wire, training");
}

TEST(SwitchModel, SaysWhatIsWrong) {
    EXPECT_TRUE(SwitchModel::find("switch-1"));
    EXPECT_EQ(SwitchModel::find("switch-1")->ports, 32u);
    EXPECT_THAT(SwitchModel::find("nosuch").error(), testing::HasSubstr("no switch of this name"));
    EXPECT_THAT(SwitchModel::parse("[switch]\nports = 4", "f").error(),
                testing::HasSubstr("f:2: switch.ports must be [value"));
    EXPECT_THAT(SwitchModel::parse("[switch]\nports = [64, \"assumed\", \"x\"]", "f").error(),
                testing::HasSubstr("from 2 to 32"));
}

}  // namespace
}  // namespace orrery::emu::test
