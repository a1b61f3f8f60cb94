// What is made of a profile: tables, JSON.
#include "tools/prof/show.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/ranges.h"

namespace orrery::prof::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Stat, CountsAndAdds) {
    const std::string text = stat_text(made_model(two_calls()));
    EXPECT_THAT(text, HasSubstr("process 100: program\n"));
    EXPECT_THAT(text, HasSubstr("  orrMemcpy      2  2.000 us  1.000 us  1.500 us       1\n"));
    EXPECT_THAT(text, HasSubstr("  step          1    1.500 us    1.500 us    1.500 us\n"));
    EXPECT_THAT(text, HasSubstr("  io: step      1  900.000 ns  900.000 ns  900.000 ns\n"));
    EXPECT_THAT(text, HasSubstr("markers: 1"));
    EXPECT_THAT(text, Not(HasSubstr("lost")));
}

TEST(Stat, SaysWhatIsMissing) {
    MadePart part(5, "killed");
    part.head.lost = 12'345;
    part.head.ended = 0;
    const std::string text = stat_text(made_model(part.bytes()));
    EXPECT_THAT(text, HasSubstr("nothing was recorded"));
    EXPECT_THAT(text, HasSubstr("12 345 records were lost"));
    EXPECT_THAT(text, HasSubstr("did not end by exit()"));
}

// What was found no record when the parts were put together.
TEST(Stat, SaysWhereAPartIsCut) {
    MadePart part(5, "spoilt");
    part.call(part.text("a"), 1, 2);
    part.add(CutRecord{{static_cast<std::uint16_t>(Type::kCut), sizeof(CutRecord), 0}, 12'345, 99});
    const Model model = made_model(part.bytes());
    for (const std::string& text : {stat_text(model), report_text(model, 10)})
        EXPECT_THAT(text, HasSubstr("  its part was spoilt from byte 12 345 on: what it recorded behind that "
                                    "is not here\n"));
    EXPECT_EQ(json::parse(report_json(model, 10)).at("processes").at(0).at("cut_at"), 12'345);
    EXPECT_TRUE(
        json::parse(report_json(made_model(two_calls()), 10)).at("processes").at(0).at("cut_at").is_null());
}

TEST(Stat, ShowsNoControlCharacters) {
    MadePart part(5, "a\x1b[31mb");
    part.call(part.text("\x1b]0;title\x07"), 1, 2);
    EXPECT_THAT(stat_text(made_model(part.bytes())), Not(HasSubstr("\x1b")));
}

TEST(Chrome, HasACompleteEventForEachCallAndRange) {
    const json all = json::parse(chrome_json(made_model(two_calls())));
    std::map<std::string, int> kinds;
    std::set<std::uint64_t> range_tracks;
    for (const json& event : all.at("traceEvents")) {
        const std::string phase = event.at("ph"), category = event.value("cat", "");
        ++kinds[phase + category];
        if (category == "range") range_tracks.insert(event.at("tid").get<std::uint64_t>());
        if (category == "call" && event.at("tid") == 101) {
            EXPECT_EQ(event.at("ts"), 1.5);  // us from the first moment
            EXPECT_EQ(event.at("dur"), 1.5);
            EXPECT_EQ(event.at("args").at("error"), 1);
            EXPECT_EQ(event.at("args").at("correlation"), 7);
        }
    }
    EXPECT_EQ(kinds, (std::map<std::string, int>{{"M", 2}, {"Xcall", 2}, {"Xrange", 2}, {"imark", 1}}));
    EXPECT_EQ(range_tracks.size(), 2u) << "ranges of two domains need not lie within each other";
}

// A process that executes another program has a part of each, and texts of one number are others.
TEST(Chrome, HasTracksOfItsOwnForEachPartOfAProcess) {
    std::string parts;
    for (const char* domain : {"io", "net"}) {
        MadePart part;
        const auto step = part.text("step"), own = part.text(domain);
        part.range(Type::kRangeBegin, step, 2'000, own);
        part.range(Type::kRangeEnd, 0, 3'000, own);
        parts += part.bytes();
    }
    std::map<std::uint64_t, std::string> names;
    std::vector<std::string> ranges;
    for (const json& event : json::parse(chrome_json(made_model(parts))).at("traceEvents")) {
        const auto track = event.at("tid").get<std::uint64_t>();
        if (event.at("name") == "thread_name") names[track] = event.at("args").at("name");
        if (event.value("cat", "") == "range") ranges.push_back(names[track]);
    }
    EXPECT_EQ(ranges, (std::vector<std::string>{"io of thread 100", "net of thread 100"}));
}

TEST(Chrome, OfHostileNamesIsStillJson) {
    MadePart part(5, "\xff\"},{");
    part.call(part.text("\"</script>\xc3\x28\n"), 1'000, 2'000);
    const json all = json::parse(chrome_json(made_model(part.bytes())));
    EXPECT_EQ(all.at("traceEvents").size(), 2u);
}

TEST(Stat, HasTheWorkOfEachDevice) {
    const std::string text = stat_text(made_model(some_work()));
    EXPECT_THAT(text, HasSubstr("device 0, model time  count"));
    EXPECT_THAT(text, HasSubstr("saxpy                     2  2.500 us  1.250 us  2.000 us"));
    EXPECT_THAT(text, HasSubstr("device 1, model time  count"));
    EXPECT_THAT(text, HasSubstr("300 ps  300 ps   300 ps       1"));
    EXPECT_THAT(text, HasSubstr("some work of device 1 was told too late"));
    EXPECT_THAT(text, HasSubstr("1 234 kernels, copies or fills of device 0 were told too late"));
    EXPECT_THAT(text, HasSubstr("12 samples of device 0 were lost"));
}

// Samples of vector cores by line, with what they were at; those of no known line by offset.
TEST(Report, HasTheHottestLines) {
    MadePart part;
    const auto kernel = part.text("gemm"), line = part.text("gemm.cc:42"), other = part.text("gemm.cc:43");
    part.orrery_1(0);
    part.work(kernel, 9, 1'000, 90'000);
    const auto add = [&](std::uint32_t source, PcStall stall, std::uint32_t moments, std::uint64_t offset) {
        PcSampleRecord pc{};
        pc.head = {static_cast<std::uint16_t>(Type::kPcSample), sizeof pc, kernel};
        pc.stream = 9;
        pc.source = source;
        pc.offset = offset;
        pc.stall = static_cast<std::uint32_t>(stall);
        pc.more = moments - 1;
        part.add(pc);
    };
    add(line, PcStall::kLatency, 6, 0x40);
    add(line, PcStall::kComputing, 2, 0x44);
    add(other, PcStall::kBarrier, 1, 0x50);
    add(0, PcStall::kBandwidth, 1, 0x60);
    const Model model = made_model(part.bytes());
    const std::string text = report_text(model, 10);
    EXPECT_THAT(text, testing::ContainsRegex("gemm.cc:42 +gemm +8 +80.0 % +latency 75 %, computing 25 %"));
    EXPECT_THAT(text, testing::ContainsRegex("gemm.cc:43 +gemm +1 +10.0 % +barrier 100 %"));
    EXPECT_THAT(text, testing::ContainsRegex("offset 0x60 +gemm +1 +10.0 % +bandwidth 100 %"));
    const json lines = json::parse(report_json(model, 10))["processes"][0]["devices"][0]["lines"];
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0]["source"], "gemm.cc:42");
    EXPECT_EQ(lines[0]["samples"], 8);
    EXPECT_EQ(lines[0]["by"]["latency"], 6);
}

// A chain of three: what goes from one end to the other one takes no link of the middle card's as seen from
// here.
TEST(Report, HasWhatWentBeyondACardsLinks) {
    MadePart part;
    part.orrery_1(0);
    const auto copy = part.text("copy"), stream = part.text("a");
    const auto link = [&](std::uint32_t device, std::uint32_t port, std::int32_t peer, std::uint64_t uid) {
        part.add(LinkRecord{{static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0},
                            device,
                            port,
                            uid,
                            peer,
                            0,
                            3,
                            8,
                            400,
                            500});
    };
    link(0, 0, 1, 78);
    link(1, 0, 0, 77);
    link(1, 1, 2, 79);
    WorkRecord record = part.work_of(Operation::kCopy, copy, stream, 1'000'000, 3'000'000, 1'000'000);
    record.bytes = 90'000;
    record.source = 0;
    record.destination = 2;
    part.add(record);
    const Model model = made_model(part.bytes());
    EXPECT_THAT(
        report_text(model, 10),
        HasSubstr("    87.9 KiB copied to card 0x4f (45 GB/s), which switches or other cards pass on;"));
    const json device = json::parse(report_json(model, 10))["processes"][0]["devices"][0];
    ASSERT_EQ(device["beyond_copies"].size(), 1u);
    EXPECT_EQ(device["beyond_copies"][0]["peer_uid"], 79);
    EXPECT_EQ(device["beyond_copies"][0]["sent"]["bytes"], 90'000);
    EXPECT_EQ(device["beyond_copies"][0]["received"]["bytes"], 0);
    EXPECT_EQ(device["link_copies"][0]["sent"]["bytes"], 0);
    EXPECT_EQ(device["elsewhere_copies"]["sent"]["bytes"], 0);
}

// Copies of both cards over the link between them: bytes, the rate while one ran, its share of the link's;
// and by the counters what all ports carried.
TEST(Report, HasWhatLinksCarried) {
    MadePart part;
    part.orrery_1(0);
    const auto copy = part.text("copy"), stream = part.text("a"), other = part.text("b");
    const auto link = [&](std::uint32_t device, std::uint32_t port, std::int32_t peer, std::uint64_t uid,
                          std::uint32_t state = 3) {
        part.add(LinkRecord{{static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0},
                            device,
                            port,
                            uid,
                            peer,
                            0,
                            state,
                            8,
                            400,
                            500});
    };
    link(0, 0, 1, 78);
    link(0, 1, 1, 78, 4);
    link(0, 3, -1, 99);
    link(1, 2, 0, 77);
    const auto moved = [&](std::uint32_t device, std::uint64_t begin, std::uint64_t end, std::uint64_t bytes,
                           std::int32_t from, std::int32_t to) {
        WorkRecord record =
            part.work_of(Operation::kCopy, copy, device == 0 ? stream : other, begin, end, begin);
        record.device = device;
        record.bytes = bytes;
        record.source = from;
        record.destination = to;
        part.add(record);
    };
    moved(0, 1'000'000, 3'000'000, 100'000, 0, 1);  // there
    moved(1, 2'000'000, 5'000'000, 60'000, 0, 1);   // as well, by the other one
    moved(1, 5'000'000, 6'000'000, 10'000, 1, 0);   // here
    moved(0, 6'000'000, 7'000'000, 10'000, -1, 0);  // over no link
    const auto clock = [&](std::uint32_t device) {
        part.add(ClockRecord{
            {static_cast<std::uint16_t>(Type::kClock), sizeof(ClockRecord), 0}, device, 1, 1, 1, 2});
    };
    const std::string apart = report_text(made_model(part.bytes()), 10);
    // 160 kB in 2 and 3 us, of 100 GB/s.
    EXPECT_THAT(apart,
                testing::ContainsRegex("links +to +GB/s +latency +copied there +GB/s +copied here +GB/s"));
    EXPECT_THAT(
        apart, testing::ContainsRegex("ports 0, 1 +device 1 +100 +500.000 ns +156.2 KiB +32 +32.0 % +9.8 KiB "
                                      "+10 +10.0 % +degraded\n"));
    EXPECT_THAT(apart, testing::ContainsRegex("port 3 +node 0x63 +50 +500.000 ns\n"));
    EXPECT_THAT(apart,
                testing::ContainsRegex("port 2 +device 0 +50 +500.000 ns +9.8 KiB +10 +20.0 % +156.2 KiB +32 "
                                       "+64.0 %\n"));
    EXPECT_THAT(apart, HasSubstr("sent again is not known (record --samples)\n"));

    clock(0);
    clock(1);
    const auto bytes = part.text("bytes"), count = part.text("count");
    part.sample_set(0, 1'000'000,
                    {{21, part.text("link_tx_bytes"), bytes, 0},
                     {23, part.text("link_rx_bytes"), bytes, 0},
                     {20, part.text("link_tx_messages"), count, 0},
                     {71, part.text("link_retries"), count, 0},
                     {84, part.text("link_credit_ps"), part.text("ps"), 0}});
    part.sample(0, 0, {1'000, 0, 10, 1, 0});
    part.sample(0, 10'000'000, {151'000, 10'000, 90, 4, 2'000'000});
    const Model model = made_model(part.bytes());
    EXPECT_THAT(
        report_text(model, 10),
        HasSubstr(
            "    all ports in 10.000 us, whoever used them: sent 146.5 KiB (15 GB/s, 10.0 %), received "
            "9.8 KiB (1 GB/s, 0.7 %); 3 frames sent again, of 80 messages; no room at the other end for "
            "2.000 us\n"));
    const json device = json::parse(report_json(model, 10))["processes"][0]["devices"][0];
    ASSERT_EQ(device["link_copies"].size(), 2u);
    const json& sent = device["link_copies"][0]["sent"];
    EXPECT_EQ(sent["bytes"], 160'000);
    EXPECT_EQ(sent["ps"], 4'000'000) << "cards that keep step have one time";
    EXPECT_EQ(sent["share"], 0.4);
    EXPECT_EQ(device["link_copies"][0]["ports"], (json{0, 1}));
    EXPECT_EQ(device["link_counters"]["retries"], 3);
    EXPECT_TRUE(device["link_copies"][1]["sent"].is_null()) << "another machine's card";
}

// Two links between two cards: each has its own copies where all say which one they took.
TEST(Report, HasWhatEachOfSeveralPortsCarried) {
    const auto report = [](std::uint64_t last_ports) {
        MadePart part;
        part.orrery_1(0);
        const auto copy = part.text("copy"), stream = part.text("a"), other = part.text("b");
        for (std::uint32_t port = 0; port < 2; ++port) {
            for (std::uint32_t device = 0; device < 2; ++device) {
                LinkRecord link{};
                link.head = {static_cast<std::uint16_t>(Type::kLink), sizeof link, 0};
                link.device = device;
                link.port = device == 0 ? port : 3 - port;
                link.peer_port = device == 0 ? 3 - port : port;
                link.peer_device = 1 - static_cast<std::int32_t>(device);
                link.peer_uid = 78 - device;
                link.gbit_per_s = 400;
                link.state = 3;
                part.add(link);
            }
        }
        const auto moved = [&](std::uint32_t device, std::uint64_t begin, std::uint64_t bytes,
                               std::uint64_t ports) {
            const auto name = device == 0 ? stream : other;
            WorkRecord record = part.work_of(Operation::kCopy, copy, name, begin, begin + 1'000'000, begin);
            record.device = device;
            record.bytes = bytes;
            record.source = 0;
            record.destination = 1;
            part.add(record);
            WorkCountersRecord did{};
            did.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof did, 0};
            did.device = device;
            did.stream = name;
            did.index = record.index;
            did.begin_ps = begin;
            did.link_ports = ports;
            part.add(did);
        };
        moved(0, 1'000'000, 10'240, 1);
        moved(0, 2'000'000, 20'480, 2);
        moved(1, 3'000'000, 40'960, 4);  // its port 2 leads to port 1
        moved(0, 4'000'000, 5'120, last_ports);
        const Model model = made_model(part.bytes());
        return json::parse(report_json(model, 10))["processes"][0]["devices"][0]["link_copies"];
    };
    const json each = report(1);
    ASSERT_EQ(each.size(), 2u);
    EXPECT_EQ(each[0]["ports"], json{0});
    EXPECT_EQ(each[0]["sent"]["bytes"], 15'360);
    EXPECT_EQ(each[0]["sent"]["ps"], 2'000'000);
    EXPECT_EQ(each[1]["ports"], json{1});
    EXPECT_EQ(each[1]["sent"]["bytes"], 61'440);
    for (const std::uint64_t unknown : {0u, 3u}) {
        const json both = report(unknown);
        ASSERT_EQ(both.size(), 1u) << unknown;
        EXPECT_EQ(both[0]["ports"], (json{0, 1}));
        EXPECT_EQ(both[0]["sent"]["bytes"], 76'800);
    }
}

// A process for each card: what one's copies carried stands with the other's link as well. Copies to other
// machines' cards have a line of their own.
TEST(Report, HasWhatOtherProcessesCopied) {
    const auto part_of = [](std::int32_t own, std::int32_t peer, std::int32_t destination,
                            std::uint64_t machine) {
        MadePart part(machine * 10 + static_cast<std::uint64_t>(own), "rank");
        part.head.machine = machine;
        const auto title = part.text("Orrery 1"), pci = part.text("0000:01:00.0");
        const auto uid = [](std::int32_t device) { return 70 + static_cast<std::uint64_t>(device); };
        const auto device = static_cast<std::uint32_t>(own);
        part.card(device, title, pci, 8, uid(own));
        part.add(LinkRecord{{static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0},
                            device,
                            0,
                            uid(peer),
                            peer,
                            0,
                            3,
                            8,
                            400,
                            500});
        WorkRecord record =
            part.work_of(Operation::kCopy, part.text("copy"), part.text("main"), 1'000'000, 2'000'000, 1);
        record.device = device;
        record.bytes = 10'240;
        record.source = own;
        record.destination = destination;
        part.add(record);
        return part.bytes();
    };
    const Model model = made_model(part_of(0, 1, 1, 5) + part_of(1, 0, -2, 5) + part_of(0, 1, -1, 6));
    const json all = json::parse(report_json(model, 10))["processes"];
    ASSERT_EQ(all.size(), 3u);
    const auto link = [&](std::size_t process) { return all[process]["devices"][0]["link_copies"][0]; };
    EXPECT_EQ(link(0)["sent"]["bytes"], 10'240);
    EXPECT_EQ(link(0)["received"]["bytes"], 0);
    EXPECT_EQ(link(1)["received"]["bytes"], 10'240) << "the other process's copy";
    EXPECT_EQ(link(1)["sent"]["bytes"], 0);
    EXPECT_EQ(link(2)["sent"]["bytes"], 0) << "a machine with the same cards";
    EXPECT_EQ(all[1]["devices"][0]["elsewhere_copies"]["sent"]["bytes"], 10'240);
    EXPECT_THAT(report_text(model, 10),
                HasSubstr("    10.0 KiB copied to cards of other machines or several cards at "
                          "once (10.2 GB/s); over which link is not told\n"));
}

TEST(Stat, CountsARunInPartsOnce) {
    MadePart part;
    part.range(Type::kRangeBegin, part.text("step"), 2'000);
    const auto kernel = part.text("saxpy"), stream = part.text("stream 'x' on device 0");
    for (std::uint64_t i = 0; i < 7; ++i) {
        // Four parts and the last one of a run; two of one whose last part is lost.
        WorkRecord work = part.work_of(Operation::kKernel, kernel, stream, i * 20'000'000,
                                       i * 20'000'000 + 5'000'000, i < 5 ? 7 : 8);
        work.outcome = static_cast<std::uint16_t>(i == 4 ? Outcome::kDone : Outcome::kPreempted);
        work.index = i < 5 ? 7 : 8;
        part.add(work);
    }
    part.range(Type::kRangeEnd, 0, 3'000);
    const Model model = made_model(part.bytes());
    EXPECT_THAT(stat_text(model), HasSubstr("saxpy                     2  35.000 us"));
    const std::vector<NamedRange> ranges = named_ranges(model.processes[0]);
    ASSERT_EQ(ranges.size(), 1u);
    EXPECT_EQ(ranges[0].sums.work, 2u);
    EXPECT_EQ(ranges[0].sums.kernels, 2u);
    EXPECT_EQ(ranges[0].sums.kernel_ps, 35'000'000u) << "of all parts";
    EXPECT_THAT(html_page(model, "any"), HasSubstr("\"vector\":{\"count\":2,\"most\":1}"));
}

// Values, units, and metrics beside the counter that is first in their formula and went up.
TEST(Stat, HasCountersOfTheCardWithMetrics) {
    MadePart part;
    part.orrery_1(0);
    const auto ps = part.text("ps"), bytes = part.text("bytes"), work = part.text("operations"),
               odd = part.text("not\x1b known");
    part.sample_set(0, 1'000'000,
                    {{1, part.text("core_busy_ps"), ps, 0},
                     {12, part.text("copy_bytes"), bytes, 0},
                     {13, part.text("copy_busy_ps"), ps, 0},
                     {42, part.text("copy_idle_ps"), ps, 0},
                     {57, part.text("vector_flops_f16"), work, 0},
                     {58, part.text("vector_flops_f32"), work, 0},
                     {59, part.text("vector_flops_f64"), work, 0},
                     {999, odd, odd, 0}});
    part.sample(0, 5'000'000, {1'000, 7, 100'000, 50'000, 9, 100, 0, 1});
    part.sample(0, 6'000'000, {1'100, 8, 100'000, 50'000, 9, 100, 0, 1});
    part.sample(0, 10'000'000, {2'501'000, 1'000'007, 40'100'000, 120'050'000, 9, 5'000'100, 0, 3});
    const std::string text = stat_text(made_model(part.bytes()));
    EXPECT_THAT(text,
                HasSubstr("\n  device 0: the card's counters in 5.000 us of model time, by 3 samples\n"));
    // 2.5 of 5 us; 1 MB in 40 us of work; 40 of 160 us; 5 M operations in 5 us.
    EXPECT_THAT(text, testing::ContainsRegex("\n +2 500 000  ps +core_busy_ps +# +50 %  core_utilisation\n"));
    EXPECT_THAT(text,
                testing::ContainsRegex("\n +1 000 000  bytes +copy_bytes +# +25 GB/s  copy_bandwidth\n"));
    EXPECT_THAT(text,
                testing::ContainsRegex("\n +40 000 000  ps +copy_busy_ps +# +25 %  copy_utilisation\n"));
    EXPECT_THAT(text, testing::ContainsRegex(
                          "\n +5 000 000  operations +vector_flops_f32 +# +1000 GFLOP/s  vector_gflops\n"))
        << "f16 is first in the formula, and stood still";
    EXPECT_THAT(text, testing::ContainsRegex("\n +5 000 000  ps +time_ps\n")) << "what rates are of";
    EXPECT_THAT(text, HasSubstr("    and 2 that did not go up\n"));
    EXPECT_THAT(text, HasSubstr(" 2  not? known  not? known\n"));
    EXPECT_THAT(text, Not(HasSubstr("nan")));
}

// Between the samples somebody began it anew: how much it went up nobody knows.
TEST(Stat, SaysThatACounterWhichWentDownIsNotKnown) {
    MadePart part;
    part.orrery_1(0);
    const auto ps = part.text("ps"), bytes = part.text("bytes");
    part.sample_set(0, 1'000'000,
                    {{1, part.text("core_busy_ps"), ps, 0},
                     {12, part.text("copy_bytes"), bytes, 0},
                     {13, part.text("time_ps"), ps, 0},
                     {14, part.text("copy_busy_ps"), ps, 0}});
    part.sample(0, 5'000'000, {1'000, 7, 5'000, 9});
    part.sample(0, 10'000'000, {2'501'000, 6, 4'000, 9});
    const std::string text = stat_text(made_model(part.bytes()));
    EXPECT_THAT(text, testing::ContainsRegex("\n +2 500 000  ps +core_busy_ps +# +50 %  core_utilisation\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n +5 000 000  ps +time_ps\n"))
        << "which is known all the same";
    EXPECT_THAT(text, HasSubstr("    and 1 that did not go up\n    and 1 that are not known\n"));
}

TEST(Stat, HasWhatWasCountedForTheWork) {
    MadePart part;
    const auto kernel = part.text("saxpy"), stream = part.text("stream");
    part.orrery_1(0);
    for (std::uint64_t i = 0; i < 3; ++i) {
        WorkCountersRecord counted{};
        counted.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counted, 0};
        counted.stream = stream;
        counted.index = i;
        counted.begin_ps = 1'000 * i;
        if (i < 2) {
            counted.cores = 1;
            counted.busy_ps = 2'000;
            counted.instructions = 1;
            counted.latency_ps = 500;
        } else {
            counted.moved = 64;
            counted.busy_ps = 700;
            counted.copy_setup_ps = 350;
        }
        part.add(counted);
        part.add(part.work_of(i < 2 ? Operation::kKernel : Operation::kCopy, kernel, stream, 1'000 * i,
                              1'000 * i + 900, i));
    }
    const std::string text = stat_text(made_model(part.bytes()));
    EXPECT_THAT(text, HasSubstr("\n  device 0: counted for its 2 kernels, 1 copies and fills\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n +4 000  ps +vector_busy_ps\n"));
    EXPECT_THAT(text,
                testing::ContainsRegex("\n +1 000  ps +vector_latency_ps +# +25 %  vector_latency_stalls\n"));
    // 2 instructions in 4 cycles.
    EXPECT_THAT(text, testing::ContainsRegex("\n +2  instructions +vector_instructions +# +0.5 "
                                             "instructions/cycle  vector_ipc\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n +64  bytes +copy_bytes +# +91\\.4 GB/s  copy_bandwidth\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n +700  ps +copy_busy_ps\n"));
    EXPECT_THAT(text, testing::ContainsRegex("\n +350  ps +copy_setup_ps +# +50 %  copy_overhead\n"));
}

TEST(Instructions, AreListedInTheOrderOfTime) {
    MadePart part;
    const auto kernel = part.text("gemm"), line = part.text("src/gemm.cc:42");
    const auto add = [&](std::uint64_t time_ps, std::uint32_t cycles, PcStall stall) {
        PcSampleRecord one{};
        one.head = {static_cast<std::uint16_t>(Type::kInstruction), sizeof one, kernel};
        one.core = 3;
        one.time_ps = time_ps;
        one.offset = 0x40;
        one.group = 7;
        one.source = line;
        one.stall = static_cast<std::uint32_t>(stall);
        one.more = cycles - 1;
        part.add(one);
    };
    add(5'000, 1, PcStall::kComputing);
    add(2'000, 120, PcStall::kLatency);
    const std::string text = instructions_text(made_model(part.bytes()));
    const auto first = text.find("2000"), second = text.find("5000");
    ASSERT_NE(first, std::string::npos);
    EXPECT_LT(first, second);
    EXPECT_THAT(text, testing::ContainsRegex("0 +3 +2000 +120 +latency +gemm +7 +0x40 +gemm.cc:42"));
    EXPECT_THAT(instructions_text(made_model(MadePart().bytes())), HasSubstr("--trace-core"));
}

TEST(Instructions, SayWhoseTheyAreAndWhatIsMissing) {
    std::string parts, lost;
    for (const std::uint64_t machine : {1u, 2u}) {
        MadePart part, other;
        part.head.machine = other.head.machine = machine;
        PcSampleRecord one{};
        one.head = {static_cast<std::uint16_t>(Type::kInstruction), sizeof one, part.text("gemm")};
        part.add(one);
        parts += part.bytes();
        SamplesLostRecord none{};
        none.head = {static_cast<std::uint16_t>(Type::kSamplesLost), sizeof none, 0};
        none.device = 3;
        none.type = static_cast<std::uint32_t>(Type::kPcSample);
        none.count = 1'000;
        other.add(none);
        lost += other.bytes();
    }
    const std::string text = instructions_text(made_model(parts));
    EXPECT_THAT(text, HasSubstr("process 100 of machine 1: program\n"));
    EXPECT_THAT(text, HasSubstr("\nprocess 100 of machine 2: program\n"));
    EXPECT_THAT(instructions_text(made_model(lost)),
                HasSubstr("process 100 of machine 2: program\n  1 000 samples of device 3 were lost\n"));
}

// Which files go into a page says the profile, which may be anybody's.
TEST(Page, TakesSourcesOnly) {
    MadePart part;
    for (const char* line :
         {"src/gemm.cc:42", ".env:1", "/root/.ssh/id_rsa:1", ".hidden.cc:1", "..:1", "a.S:2"}) {
        PcSampleRecord pc{};
        pc.head = {static_cast<std::uint16_t>(Type::kPcSample), sizeof pc, 0};
        pc.source = part.text(line);
        part.add(pc);
    }
    EXPECT_THAT(sampled_sources(made_model(part.bytes())), testing::ElementsAre("a.S", "gemm.cc"));
}

TEST(Chrome, HasAFlowFromTheLastWorkOfAStreamToTheCallThatWaitedForIt) {
    const auto flows = [](std::uint64_t found_ns) {
        MadePart part;
        const auto sync = part.text("orrStreamSynchronize"), kernel = part.text("saxpy");
        part.call(sync, 2'000, 9'000, 100);
        part.work(kernel, sync, 5'000'000, 6'000'000, 0);
        WorkRecord last = part.work_of(Operation::kKernel, kernel, sync, 6'000'000, 8'000'000, 1);
        last.correlation = 0;
        last.found_ns = found_ns;
        part.add(last);
        std::map<std::string, json> ends;
        for (const json& event : json::parse(chrome_json(made_model(part.bytes()))).at("traceEvents"))
            if (event.value("cat", "") == "done") ends[event.at("ph")] = event;
        return ends;
    };
    // The first work was submitted at 2.1 us, the other one ends 3 us behind that; the profile begins at 1
    // us.
    const auto ends = flows(7'000);
    ASSERT_EQ(ends.size(), 2u);
    EXPECT_DOUBLE_EQ(ends.at("s").at("ts"), 4.099) << "within the work";
    EXPECT_GE(ends.at("s").at("tid"), std::uint64_t{1} << 32);
    EXPECT_EQ(ends.at("f").at("ts"), 6.0);
    EXPECT_EQ(ends.at("f").at("tid"), 100);
    EXPECT_DOUBLE_EQ(flows(4'000).at("f").at("ts"), 4.099) << "it stands as if it had ended later";
    EXPECT_EQ(flows(0).size(), 0u);
}

TEST(Chrome, HasWorkInItsOwnTimeAndAFlowFromItsCall) {
    const json all = json::parse(chrome_json(made_model(some_work())));
    std::vector<json> work, begun, ended;
    std::set<std::pair<std::uint64_t, std::uint64_t>> tracks;
    for (const json& event : all.at("traceEvents")) {
        if (event.value("cat", "") == "work") {
            work.push_back(event);
            tracks.emplace(event.at("pid").get<std::uint64_t>(), event.at("tid").get<std::uint64_t>());
        }
        if (event.at("ph") == "s") begun.push_back(event);
        if (event.at("ph") == "f") ended.push_back(event);
    }
    ASSERT_EQ(work.size(), 4u);
    EXPECT_EQ(work[0].at("name"), "copy") << "in the order in which they began, by the card's clock";
    EXPECT_EQ(work[1].at("ts"), 1.1) << "the first of a device where it was submitted";
    EXPECT_EQ(work[2].at("ts"), 2.1) << "and what follows as far from it as on the card";
    EXPECT_EQ(work[2].at("dur"), 0.5);
    EXPECT_EQ(work[3].at("dur"), 0.0004);
    EXPECT_EQ(tracks.size(), 3u) << "two lanes of the stream, as two overlap, and the other card";
    ASSERT_EQ(begun.size(), 3u);
    for (std::size_t i = 0; i < begun.size(); ++i) {
        EXPECT_EQ(begun[i].at("id"), ended[i].at("id"));
        EXPECT_EQ(begun[i].at("pid"), 100);
        EXPECT_EQ(ended[i].at("ts"), work[i + 1].at("ts"));
    }
}

}  // namespace
}  // namespace orrery::prof::test
