// Room in links of cards that keep step: it comes at a time of the model's, whatever their hosts do, and
// those who wait for it along a chain get even shares.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "emulator/model/resource.h"
#include "tests/unit/link/net.h"
#include "tests/unit/sync/members.h"

namespace orrery::emu::test {
namespace {

constexpr unsigned kCards = 8;
constexpr std::uint64_t kArea = 512 << 10;  // of each sender, in the memory of card 0
constexpr std::uint64_t kSemaphores = kCards * kArea;

// All that a card does and sees, with its times.
using Recording = std::vector<std::uint64_t>;

// Sends messages of one size to card 0 until a time, as engines do a piece at once, and then a signal.
struct Stream {
    Stream(NetCard& its_card, std::uint64_t bytes, ModelTime its_end)
        : card(its_card), data(bytes), end(its_end) {
        card.events.schedule(event, 1);
    }
    void on(ModelTime now) {
        if (since != kNever) waited += now - since;
        since = kNever;
        if (now >= end) {
            if (counted == kNever) counted = card.ports[0]->without_room_ps();
            if (card.signal(1, kSemaphores + 16 * card.node, 1) == ORR_FAULT_PEER_BUSY)
                card.events.schedule(event, now + kLatency);
            return;
        }
        ModelTime through = now;
        for (std::uint64_t piece = 0; piece == 0 || piece + data.size() <= Resource(kRate).piece();
             piece += data.size()) {
            const LinkSend sent = card.write(1, (card.node - 1) * kArea, data);
            recording.insert(recording.end(), {now, sent.bytes, sent.sent_ps});
            if (sent.bytes == 0) {
                since = now;
                return card.peers.towards(1)->wait_for_room(1, event);
            }
            through = sent.sent_ps;
        }
        card.events.schedule(event, through);
    }
    NetCard& card;
    std::vector<std::byte> data;
    ModelTime end;
    Event event = Event::of<&Stream::on>(this);
    Recording recording;
    ModelTime since = kNever;  // it waits for room
    ModelTime waited = 0;
    ModelTime counted = kNever;  // by the port towards card 0, until the end
};

// Each card on a thread, in step with the others. Seeds differ in when the host lets which of them run.
class Chain {
  public:
    Chain(std::uint64_t bytes, ModelTime end) : net_(kCards, false) {
        for (unsigned n = 0; n < kCards; ++n) {
            steps_.push_back(sync::test::join(folder_, n + 1, kLatency));
            net_[n].on_sent = [step = steps_[n].get()](std::uint64_t peer, ModelTime arrival) {
                step->sent(peer, arrival);
            };
        }
        if (!net_.up()) throw std::runtime_error("links");
        net_.forward();
        net_[0].on_arrival = [this, end](std::uint64_t offset, std::uint64_t size) {
            const ModelTime now = net_[0].events.now();
            arrived.insert(arrived.end(), {now, offset, size});
            if (now >= end / 2 && now < end && offset < kSemaphores) share[offset / kArea] += size;
        };
        for (unsigned n = 1; n < kCards; ++n)
            streams.push_back(std::make_unique<Stream>(net_[n], bytes, end));
        for (unsigned n = 0; n < kCards; ++n)
            steps_[n]->promise(0, n == 0 ? kNever : 1, 0, false, n != 0);
    }
    void run(unsigned seed) {
        std::vector<std::jthread> threads;
        for (unsigned n = 0; n < kCards; ++n)
            threads.emplace_back([this, n, seed] { run_card(n, seed * kCards + n); });
    }
    std::uint64_t stragglers() { return net_.sum(ORR_CTR_LINK_STRAGGLERS); }

    std::vector<std::unique_ptr<Stream>> streams;
    Recording arrived;
    std::array<std::uint64_t, kCards> share{};  // bytes of the second half of the time

  private:
    bool round(unsigned n) {
        sync::Lockstep& step = *steps_[n];
        EventQueue& events = net_[n].events;
        step.beat();
        const std::uint64_t news = step.news();
        bool busy = false;
        for (auto& port : net_[n].ports)
            if (port) busy |= port->poll();
        const ModelTime now = events.now(), next = std::max(now, events.next_time());
        if (next < step.promised() || next >= step.granted()) {
            if (step.has_promised(next, true)) return busy;
            if (!step.promise(now, next, news, true, next != kNever)) return true;
            if (next >= step.granted()) return busy;
        }
        for (unsigned goes = 0; goes < 64 && events.run_next(step.granted() - 1); ++goes)
            busy = true;
        if (n == 0 && net_[0].pokes.size() == kCards - 1) done_ = true;
        return busy;
    }
    void run_card(unsigned n, std::uint64_t seed) {
        unsigned quiet = 0;
        for (std::uint64_t rounds = 0; !done_; ++rounds) {
            if (sync::test::mixed(seed, rounds) % 512 == 0)
                std::this_thread::sleep_for(std::chrono::microseconds(200));
            if (round(n)) {
                quiet = 0;
                continue;
            }
            if (++quiet < 20) continue;
            quiet = 0;
            bool idle = true;
            for (auto& port : net_[n].ports)
                if (port) idle &= port->prepare_sleep();
            if (idle && steps_[n]->prepare_sleep()) {
                // What was sent wakes a card by its link; here it looks now and then.
                pollfd fd{steps_[n]->fd(), POLLIN, 0};
                ::poll(&fd, 1, 1);
                steps_[n]->after_sleep();
            }
            for (auto& port : net_[n].ports)
                if (port) port->after_sleep();
        }
    }

    sync::test::TempFolder folder_;
    Net net_;
    std::vector<std::unique_ptr<sync::Lockstep>> steps_;
    std::atomic<bool> done_ = false;
};

class RoomInStep : public testing::TestWithParam<std::uint64_t> {};

TEST_P(RoomInStep, SevenToOneAlongAChainAreEvenAndTheSameInEveryRun) {
    constexpr ModelTime kEnd = 4'000'000 * kPsPerNs;  // the channels are full after a quarter of it
    std::vector<Recording> first;
    for (unsigned run = 0; run < 2; ++run) {
        Chain chain(GetParam(), kEnd);
        chain.run(run);
        EXPECT_EQ(chain.stragglers(), 0u);
        std::vector<Recording> all{chain.arrived};
        for (const auto& stream : chain.streams)
            all.push_back(stream->recording);
        for (const auto& stream : chain.streams)
            all.front().push_back(stream->counted);
        // By the port of the last card goes its own stream alone.
        EXPECT_EQ(chain.streams.back()->counted, chain.streams.back()->waited);
        EXPECT_GT(chain.streams.back()->waited, kEnd / 4);
        if (run == 0) first = all;
        for (unsigned n = 0; n < kCards; ++n)
            EXPECT_TRUE(all[n] == first[n]) << "card " << n << ": " << all[n].size() / 3 << " and "
                                            << first[n].size() / 3 << " things in its recordings";
        std::uint64_t sum = 0;
        for (const std::uint64_t bytes : chain.share)
            sum += bytes;
        EXPECT_GE(static_cast<double>(sum), 0.99 * static_cast<double>(kEnd / 2) * 1e-12 * kRate);
        for (unsigned n = 1; n < kCards; ++n)
            EXPECT_NEAR(100 * static_cast<double>(chain.share[n]) / static_cast<double>(sum), 100. / 7, 1)
                << "card " << n;
    }
}

INSTANTIATE_TEST_SUITE_P(Of, RoomInStep, testing::Values(16 << 10, 40 << 10, 64 << 10, 256 << 10));

}  // namespace
}  // namespace orrery::emu::test
