// What crosses links of recorded cards: each burst when it was on the wire and when it came, exactly, with 2
// and 4 cards of a scenario, on a chain and behind a switch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <thread>

#include <orrery/fw/trace.h>

#include "emulator/switch/switch.h"
#include "perfetto.pb.h"
#include "tests/unit/card/card_rig.h"
#include "tools/scenario/runner.h"
#include "tools/step/commands/cards.h"
#include "tools/step/report/links.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

using ::testing::HasSubstr;

// Of orrery-1: 400 Gbit/s, 500 ns a link, 150 ns in a card that passes on. A switch takes 300 ns.
constexpr Time kPsPerByte = 20, kLatency = 500'000, kThroughCard = 150'000, kThroughSwitch = 300'000;

class Files {
  public:
    explicit Files(std::size_t count) {
        for (std::size_t n = 0; n < count; ++n)
            names.push_back(::testing::TempDir() + fmt::format("orrery-links-{}-{}.otrace", ::getpid(), n));
    }
    ~Files() {
        for (const std::string& name : names)
            std::filesystem::remove(name);
    }
    std::vector<std::string> names;
};

Cards open(const std::vector<std::string>& files) {
    Cards cards;
    for (const std::string& file : files) {
        auto session = open_session(file, {});
        EXPECT_TRUE(session) << session.error().text;
        cards.all.push_back(*Debugger::make(std::move(*session), {}));
    }
    return cards;
}

// The rows of links of `together`, by their ends.
std::map<std::string, std::vector<Json>> crossings(Cards& cards) {
    for (auto& one : cards.all)
        one->cards = &cards;
    std::map<std::string, std::vector<Json>> rows;
    const auto together = cards.now().execute("together");
    EXPECT_TRUE(together) << together.error().text;
    Time last = 0;
    for (const Json& row : together->data["events"]) {
        EXPECT_GE(row["system_time_ps"], last);
        last = row["system_time_ps"];
        if (row["type"] == "link")
            rows[fmt::format("{} to {}", row["from"]["name"].get<std::string>(),
                             row["to"]["name"].get<std::string>())]
                .push_back(row);
    }
    return rows;
}

Time at(const Json& row, const char* key) {
    return row[key].get<Time>();
}

// Each card copies 300 KiB to the next one when the one before it has said that it may, and says so.
constexpr std::uint64_t kCopied = 300 << 10;
std::string relay(unsigned cards, unsigned rounds = 1) {
    std::string text = "name = \"relay\"\nuntil = \"9ms\"\n";
    for (unsigned n = 0; n < cards; ++n)  // each is linked with each
        text += fmt::format("[[card]]\n{}", cards > 4 ? "sku = \"orrery-0\"\n" : "");
    for (unsigned n = 0; n < cards; ++n)
        text += fmt::format(
            "[[context]]\nname = \"c{0}\"\ncard = {0}\n[[semaphore]]\nname = \"s{0}\"\ncard = {0}\n"
            "[[queue]]\nname = \"q{0}\"\ncontext = \"c{0}\"\n",
            n);
    for (unsigned n = 0; n < cards; ++n) {
        std::string jobs;
        for (unsigned round = 1; round <= rounds; ++round) {
            // Values are numbers of handovers, from 1 on. The first card hears of each round at its end.
            const unsigned last = (n == 0 ? round : round - 1) * cards + n;
            const std::string wait =
                fmt::format("{{op = \"wait\", semaphore = \"s{}\", value = {}}}", n, last);
            jobs += fmt::format(
                "{0}{1}{{op = \"copy\", bytes = \"300K\", to = \"card{2}\", ordered = true}}, "
                "{{op = \"signal\", semaphore = \"s{2}\", value = {4}}}{3}",
                round == 1 ? "" : ", ", n == 0 ? "" : wait + ", ", (n + 1) % cards, n == 0 ? ", " + wait : "",
                (round - 1) * cards + n + 1);
        }
        text += fmt::format("[[submit]]\nqueue = \"q{}\"\nat = \"1010us\"\njobs = [{}]\n", n, jobs);
    }
    return text;
}

void record_relay(const Files& files, unsigned rounds = 1) {
    const auto cards = static_cast<unsigned>(files.names.size());
    const auto scenario = scenario::Scenario::parse(relay(cards, rounds), "relay", {});
    ASSERT_TRUE(scenario) << scenario.error();
    scenario::Options options;
    options.record = files.names;
    const auto result = scenario::run(*scenario, options);
    ASSERT_TRUE(result) << result.error();
    ASSERT_TRUE(result->done);
}

class Relay : public ::testing::TestWithParam<unsigned> {};

TEST_P(Relay, EachLinkHasItsTrack) {
    const unsigned count = GetParam();
    const Files files(count);
    ASSERT_NO_FATAL_FAILURE(record_relay(files));
    Cards cards = open(files.names);
    const auto rows = crossings(cards);
    ASSERT_EQ(rows.size(), count) << "the other links and directions of the mesh are idle";
    Time last = 0;
    for (unsigned n = 0; n < count; ++n) {
        const unsigned next = (n + 1) % count;
        const std::string link = fmt::format("card {} port {} to card {} port {}", n,
                                             next < n ? next : next - 1, next, n < next ? n : n - 1);
        ASSERT_TRUE(rows.contains(link)) << link;
        const std::vector<Json>& one = rows.at(link);
        ASSERT_EQ(one.size(), 2u);
        EXPECT_EQ(one[0]["operation"], "write");
        EXPECT_EQ(one[0]["bytes"], kCopied);
        EXPECT_EQ(one[0]["first"], 0u);
        EXPECT_EQ(at(one[0], "left_ps") - at(one[0], "begin_ps"), kCopied * kPsPerByte);
        EXPECT_EQ(one[1]["operation"], "signal");
        EXPECT_EQ(one[1]["messages"], 1u);
        EXPECT_EQ(one[1]["first"], one[0]["messages"]);
        EXPECT_GE(at(one[1], "begin_ps"), at(one[0], "left_ps"));
        for (const Json& row : one) {
            EXPECT_EQ(at(row, "came_ps") - at(row, "begin_ps"), kLatency);
            EXPECT_EQ(at(row, "end_ps") - at(row, "left_ps"), kLatency);
            EXPECT_EQ(row["sent"], true);
            EXPECT_EQ(row["taken"], true) << "both ends have recorded the same";
        }
        EXPECT_GT(at(one[0], "begin_ps"), last) << "one after the other";
        last = at(one[1], "end_ps");
        // The control core hears of the signal after it has come.
        const auto& records = cards.all[next]->history().records();
        const auto poke = std::ranges::find(records, ORR_TRACE_POKE, &Record::type);
        ASSERT_NE(poke, records.end());
        EXPECT_GE(system_time(cards.all[next]->session(), poke->time), last);
    }
}

TEST_P(Relay, IsOneTraceWithArrowsFromEachEndToTheOther) {
    const unsigned count = GetParam();
    const Files files(count);
    ASSERT_NO_FATAL_FAILURE(record_relay(files));
    Cards cards = open(files.names);
    for (auto& one : cards.all)
        one->cards = &cards;
    const std::string file = files.names[0] + ".perfetto";
    ASSERT_TRUE(cards.now().execute("export perfetto " + file));
    const auto bytes = text::read_file(file);
    std::filesystem::remove(file);
    ASSERT_TRUE(bytes);
    perfetto::Trace trace;
    ASSERT_TRUE(trace.ParseFromArray(bytes->data(), static_cast<int>(bytes->size())));
    std::map<std::uint64_t, std::string> tracks;
    struct End {
        std::uint64_t track = 0, time = 0;
    };
    std::map<std::uint64_t, End> begin, end;
    std::map<std::uint64_t, std::uint64_t> busy;  // by track, until when
    for (const auto& packet : trace.packet()) {
        if (packet.has_track_descriptor() && packet.track_descriptor().name().starts_with("link port"))
            tracks[packet.track_descriptor().uuid()] = packet.track_descriptor().name();
        const auto& event = packet.track_event();
        if (!tracks.contains(event.track_uuid())) continue;
        EXPECT_GE(packet.timestamp(), busy[event.track_uuid()]) << "slices of a track do not overlap";
        busy[event.track_uuid()] = packet.timestamp();
        for (const auto flow : event.flow_ids())
            begin[flow] = {event.track_uuid(), packet.timestamp()};
        for (const auto flow : event.terminating_flow_ids())
            end[flow] = {event.track_uuid(), packet.timestamp()};
    }
    EXPECT_EQ(tracks.size(), 2 * count);
    ASSERT_EQ(begin.size(), 2 * count);
    for (const auto& [flow, from] : begin) {
        const unsigned card = static_cast<unsigned>(from.track >> 32), next = (card + 1) % count;
        EXPECT_EQ(end[flow].track >> 32, next);
        EXPECT_THAT(tracks[from.track], HasSubstr(fmt::format("to card {}", next)));
        EXPECT_THAT(tracks[end[flow].track], HasSubstr(fmt::format("from card {}", card)));
        EXPECT_NEAR(static_cast<double>(end[flow].time - from.time), 500, 1) << "nanoseconds, rounded down";
    }
}

INSTANTIATE_TEST_SUITE_P(Cards, Relay, ::testing::Values(2u, 4u));

class Handovers : public ::testing::TestWithParam<unsigned> {};

// From the end of the last round back to the first card's doorbell, over each card in each round.
TEST_P(Handovers, PathGoesBackOverAll) {
    constexpr unsigned kRounds = 5;
    const unsigned count = GetParam();
    const Files files(count);
    ASSERT_NO_FATAL_FAILURE(record_relay(files, kRounds));
    Cards cards = open(files.names);
    for (auto& one : cards.all)
        one->cards = &cards;
    for (const unsigned last : {0u, count - 1}) {
        cards.current = last;
        ASSERT_TRUE(cards.now().execute("goto end"));
        const auto path = cards.now().execute("path 0");
        ASSERT_TRUE(path) << path.error().text;
        EXPECT_EQ(path->data["begin"], "the host rang the doorbell of queue 0 \"q0\" of card 0");
        const Json& pieces = path->data["path"];
        // Each has worked, since it had waited, for a signal that the one before it sent.
        const unsigned handovers = kRounds * count - (last == 0 ? 0 : 1);
        ASSERT_EQ(pieces.size(), 3 * handovers + 1);
        unsigned card = last;
        Time links = 0, until = at(pieces[0], "to_ps");
        for (unsigned n = 0; n < handovers; ++n) {
            const Json &works = pieces[3 * n], &waits = pieces[3 * n + 1], &link = pieces[3 * n + 2];
            EXPECT_EQ(works["kind"], "works");
            EXPECT_EQ(waits["kind"], "waits");
            EXPECT_EQ(link["kind"], "link");
            EXPECT_EQ(works["card"], card);
            EXPECT_EQ(waits["card"], card);
            // Nothing is left out: what ends here is what the next one begins with.
            EXPECT_EQ(at(works, "to_ps"), until);
            EXPECT_EQ(at(works, "from_ps"), at(waits, "to_ps"));
            EXPECT_LE(at(link, "to_ps"), at(waits, "to_ps"));
            EXPECT_LT(at(waits, "from_ps"), at(link, "to_ps")) << "it waited for that";
            until = at(link, "from_ps");
            EXPECT_GE(at(link, "to_ps") - until, kLatency);
            links += at(link, "to_ps") - until;
            card = (card + count - 1) % count;
            EXPECT_EQ(link["card"], card);
            EXPECT_EQ(link["text"],
                      fmt::format("its signal of {} goes to card {}", handovers - n, (card + 1) % count));
            if (n == 0 && last == 0) continue;  // it is at the end
            EXPECT_THAT(works["text"].get<std::string>(), HasSubstr("COPY of 307200 bytes"));
            EXPECT_GE(at(works, "engines_ps"), kCopied * kPsPerByte);
        }
        EXPECT_EQ(card, 0u);
        EXPECT_EQ(pieces.back()["kind"], "works");
        EXPECT_EQ(at(pieces.back(), "to_ps"), until);
        EXPECT_EQ(at(path->data, "links_ps"), links);
    }
}

INSTANTIATE_TEST_SUITE_P(Cards, Handovers, ::testing::Values(2u, 8u));

// --- cards of the tests' own, on cables and a switch as one likes ---

using emu::CardConfig;
using emu::CardRig;
using emu::LinkConfig;

constexpr std::uint32_t kAsid = 2;
constexpr std::uint64_t kFrom = 0x10000, kTo = 0x20000, kArrives = 0x100000;
constexpr std::uint64_t kRow = 2048;

class Wired : public ::testing::Test {
  protected:
    ~Wired() override {
        for (const std::string& path : sockets_)
            std::filesystem::remove(path);
    }
    std::string socket() {
        sockets_.push_back(fmt::format("/tmp/orrery-links-{}-{}", ::getpid(), sockets_.size()));
        return sockets_.back();
    }
    // flight_segment: not 0: of a flight recorder.
    void add(std::uint64_t uid, const std::vector<std::string>& links, std::uint64_t flight_segment = 0) {
        CardConfig config = CardRig::config();
        config.uid = uid;
        config.flight_segment = flight_segment;
        (flight_segment != 0 ? config.flight_file : config.record) = files_.names[rigs_.size()];
        for (const std::string& link : links)
            config.links.push_back(*LinkConfig::parse(link));
        rigs_.push_back(std::make_unique<CardRig>(std::move(config)));
    }
    void step() {
        for (auto& rig : rigs_)
            rig->card().step();
        if (switch_) switch_->step();
    }
    // Ports look for connections at times of the host, so this waits for them.
    template <class Condition>
    bool step_until(Condition condition) {
        for (int i = 0; i < 20'000 && !condition(); ++i) {
            for (int n = 0; n < 100; ++n)
                step();
            if (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        return condition();
    }
    bool all_up(const std::vector<unsigned>& ports) {
        return step_until([&] {
            for (std::size_t n = 0; n < rigs_.size(); ++n)
                for (unsigned port = 0; port < ports[n]; ++port)
                    if (rigs_[n]->read32(ORR_R_LINK(port)) != ORR_LINK_UP) return false;
            return true;
        });
    }
    void forward(CardRig& rig, unsigned ports) {
        for (unsigned port = 0; port < ports; ++port)
            rig.write32(ORR_R_LINK(port) + ORR_R_LINK_CONTROL, ORR_LINK_FORWARD);
    }
    // The first card writes a row into the last one's memory.
    void write_from_first_to_last(std::uint32_t last_node) {
        CardRig &first = *rigs_.front(), &last = *rigs_.back();
        prepare_write(last_node);
        write_row(0x5a);
        EXPECT_EQ(first.card().vram().data()[0x40000], last.card().vram().data()[kArrives]);
    }
    void prepare_write(std::uint32_t last_node) {
        CardRig &first = *rigs_.front(), &last = *rigs_.back();
        last.grant(0, 0, kArrives, ORR_PAGE_SIZE, 1);
        for (int n = 0; n < 100; ++n)
            step();
        first.boot_script();
        first.map_page(kAsid, kFrom, 0x40000, emu::kRw);
        first.map_page(kAsid, kTo, kArrives, emu::kRw | emu::of_node(last_node));
        first.run(first.set_root(kAsid));
    }
    void write_row(std::uint8_t byte) {
        CardRig &first = *rigs_.front(), &last = *rigs_.back();
        std::memset(first.card().vram().data() + 0x40000, byte, kRow);
        orr_desc_copy copy{};
        copy.op = ORR_DESC_COPY;
        copy.asid = kAsid;
        copy.src = kFrom;
        copy.dst = kTo;
        copy.row_bytes = kRow;
        copy.rows = 1;
        first.run(CardRig::start_job(0, copy, 1));
        const std::uint8_t* const there = last.card().vram().data() + kArrives;
        ASSERT_TRUE(step_until([&] { return there[0] == byte && there[kRow - 1] == byte; }));
    }
    std::map<std::string, std::vector<Json>> recorded() {
        const std::size_t count = rigs_.size();
        rigs_.clear();
        cards_ = open({files_.names.begin(), files_.names.begin() + static_cast<std::ptrdiff_t>(count)});
        return crossings(cards_);
    }

    Files files_{3};
    std::vector<std::string> sockets_;
    std::vector<std::unique_ptr<CardRig>> rigs_;
    std::unique_ptr<emu::Switch> switch_;
    Cards cards_;
};

TEST_F(Wired, OnAChainBothLinksOfAWayShowTheWrite) {
    const std::string one = socket(), two = socket();
    add(1, {"0:listen:" + one});
    add(2, {"0:connect:" + one, "1:listen:" + two});
    add(3, {"0:connect:" + two});
    ASSERT_TRUE(all_up({1, 2, 1}));
    rigs_[0]->join(1, 0, 3);
    rigs_[1]->join(2, 0, 1);
    rigs_[1]->join(2, 1, 3);
    rigs_[2]->join(3, 0, 1);
    forward(*rigs_[0], 1);
    forward(*rigs_[1], 2);
    write_from_first_to_last(3);
    const auto rows = recorded();
    ASSERT_EQ(rows.size(), 2u);
    const std::vector<Json>& first = rows.at("card 0 port 0 to card 1 port 0");
    const std::vector<Json>& second = rows.at("card 1 port 1 to card 2 port 0");
    ASSERT_EQ(first.size(), 1u);
    ASSERT_EQ(second.size(), 1u);
    for (const Json* row : {&first[0], &second[0]}) {
        EXPECT_EQ((*row)["operation"], "write");
        EXPECT_EQ((*row)["bytes"], kRow);
        EXPECT_EQ((*row)["from_node"], 1u);
        EXPECT_EQ((*row)["to_node"], 3u);
        EXPECT_EQ((*row)["taken"], true);
        EXPECT_EQ(at(*row, "end_ps") - at(*row, "left_ps"), kLatency);
        EXPECT_EQ(at(*row, "left_ps") - at(*row, "begin_ps"), kRow * kPsPerByte);
    }
    EXPECT_EQ(at(second[0], "left_ps") - at(first[0], "end_ps"), kThroughCard);
}

// Each flush begins a segment, of which the last eight are kept: what crossed in them is there, with the
// states of links that came up long before.
TEST_F(Wired, FlightRecordersHaveWhatCrossedLast) {
    const std::string one = socket();
    add(1, {"0:listen:" + one}, 1);
    add(2, {"0:connect:" + one}, 1);
    ASSERT_TRUE(all_up({1, 1}));
    rigs_[0]->join(1, 0, 2);
    rigs_[1]->join(2, 0, 1);
    prepare_write(2);
    rigs_[1]->boot_script();
    constexpr unsigned kSegments = 20;
    for (unsigned n = 0; n < kSegments; ++n) {
        write_row(static_cast<std::uint8_t>(1 + n));
        for (auto& rig : rigs_) {
            rig->run({});
            rig->card().flush_recording();
        }
    }
    const auto rows = recorded();
    ASSERT_EQ(rows.size(), 1u) << "the other direction is idle";
    const std::vector<Json>& row = rows.at("card 0 port 0 to card 1 port 0");
    ASSERT_GE(row.size(), 2u);
    EXPECT_LT(row.size(), kSegments) << "nothing was left behind: that shows nothing";
    const Json& last = row.back();
    EXPECT_EQ(last["operation"], "write");
    EXPECT_EQ(last["bytes"], kRow);
    EXPECT_EQ(at(last, "came_ps") - at(last, "begin_ps"), kLatency);
    EXPECT_EQ(last["sent"], true);
    EXPECT_EQ(last["taken"], true) << "both ends have recorded the same";
}

// The switch has no recording: its links are as the cards at their other ends saw them.
TEST_F(Wired, BehindASwitchEachCardHasItsEnd) {
    const std::string one = socket(), two = socket();
    emu::SwitchConfig config;
    config.uid = 0xaa;
    config.die = [] {};
    for (const std::string& path : {one, two}) {
        LinkConfig link;
        link.port = static_cast<std::uint32_t>(config.links.size());
        link.listen = true;
        link.path = path;
        config.links.push_back(link);
    }
    switch_ = *emu::Switch::create(std::move(config));
    add(1, {"0:connect:" + one});
    add(2, {"0:connect:" + two});
    ASSERT_TRUE(all_up({1, 1}));
    rigs_[0]->join(1, 0, 2);
    rigs_[1]->join(2, 0, 1);
    forward(*rigs_[0], 1);
    for (int n = 0; n < 1000; ++n)
        step();
    write_from_first_to_last(2);
    const auto rows = recorded();
    const std::vector<Json>& up = rows.at("card 0 port 0 to switch 00000000000000aa port 0");
    const std::vector<Json>& down = rows.at("switch 00000000000000aa port 1 to card 1 port 0");
    ASSERT_EQ(up.size(), 1u);
    ASSERT_EQ(down.size(), 1u);
    EXPECT_EQ(up[0]["sent"], true);
    EXPECT_EQ(up[0]["taken"], false);
    EXPECT_EQ(up[0]["to"]["card"], nullptr);
    EXPECT_EQ(down[0]["sent"], false);
    EXPECT_EQ(down[0]["taken"], true);
    EXPECT_EQ(down[0]["card"], 1u);
    EXPECT_EQ(down[0]["bytes"], kRow);
    EXPECT_EQ(at(up[0], "left_ps") - at(up[0], "begin_ps"), kRow * kPsPerByte);
    EXPECT_EQ(at(up[0], "end_ps") - at(up[0], "left_ps"), kLatency);
    EXPECT_EQ(at(down[0], "end_ps") - at(down[0], "came_ps"), kRow * kPsPerByte);
    EXPECT_EQ(at(down[0], "end_ps") - at(up[0], "end_ps"), kThroughSwitch + kLatency);
}

// A port that changes in the midst of a burst ends it at that end alone.
TEST(LinkTracks, BurstsThatOneEndHasInPartsAreTaken) {
    const auto burst = [](bool sent, std::uint64_t first, std::uint64_t messages) {
        return LinkBurst{.sent = sent,
                         .operation = 1,
                         .first = first,
                         .messages = messages,
                         .bytes = messages * 100,
                         .head = 10'000 + first * 10,
                         .end = 10'000 + (first + messages) * 10,
                         .peer = sent ? 2u : 1u};
    };
    const std::vector<LinkBurst> whole = {burst(true, 0, 100), burst(true, 100, 50)};
    const std::vector<LinkBurst> parts = {burst(false, 0, 40), burst(false, 40, 60), burst(false, 100, 30)};
    const std::vector<LinkedCard> cards = {{1, &whole, "card 0"}, {2, &parts, "card 1"}};
    const auto tracks = find_links(cards, 2000);
    ASSERT_EQ(tracks.size(), 1u);
    ASSERT_EQ(tracks[0].crossings.size(), 2u);
    EXPECT_TRUE(tracks[0].crossings[0].taken);
    EXPECT_FALSE(tracks[0].crossings[1].taken) << "20 of it have not come";
    // The other way about; and one of which the sender's recording has nothing, after the link came up anew.
    std::vector<LinkBurst> sent = {burst(true, 0, 40), burst(true, 40, 60)};
    std::vector<LinkBurst> taken = {burst(false, 0, 100), burst(false, 0, 10)};
    taken[1].head += 1'000'000;
    taken[1].end += 1'000'000;
    const auto other = find_links({{1, &sent, "card 0"}, {2, &taken, "card 1"}}, 2000);
    ASSERT_EQ(other[0].crossings.size(), 3u);
    for (const Crossing& one : other[0].crossings)
        EXPECT_TRUE(one.taken);
    EXPECT_FALSE(other[0].crossings[2].sent);
    EXPECT_EQ(other[0].crossings[2].bytes, 1000u);
}

// --- what is too much ---

TEST(LinkTracks, AreThinnedOutWhereTheLeastTimeIs) {
    std::vector<LinkBurst> bursts;
    for (unsigned n = 0; n < 1000; ++n) {
        const Time head = 10'000 + n * 100 + n / 100 * 5000;  // ten groups
        bursts.push_back({.sent = true,
                          .operation = n % 2 == 0 ? 1u : 2u,
                          .first = n,
                          .messages = 1,
                          .bytes = 16,
                          .head = head,
                          .end = head + 50,
                          .peer = 2});
    }
    const std::vector<LinkBurst> none;
    const std::vector<LinkedCard> cards = {{1, &bursts, "card 0"}, {2, &none, "card 1"}};
    ASSERT_EQ(find_links(cards, 2000).front().crossings.size(), 1000u);
    const auto tracks = find_links(cards, 10);
    ASSERT_EQ(tracks.size(), 1u);
    ASSERT_EQ(tracks[0].crossings.size(), 10u);
    for (const Crossing& one : tracks[0].crossings) {
        EXPECT_EQ(one.messages, 100u);
        EXPECT_EQ(one.bytes, 1600u);
        EXPECT_EQ(operation_name(one.operation), "several");
        EXPECT_EQ(one.left - one.begin, 99 * 100 + 50u);
        EXPECT_FALSE(one.taken);
    }
    // And evenly where it is the same everywhere.
    for (const std::size_t most : {7u, 5u, 1u}) {
        const auto few = find_links(cards, most);
        EXPECT_EQ(few[0].crossings.size(), most);
        std::uint64_t messages = 0;
        for (const Crossing& one : few[0].crossings)
            messages += one.messages;
        EXPECT_EQ(messages, 1000u);
    }
}

}  // namespace
}  // namespace orrery::step
