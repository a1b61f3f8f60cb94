// The page of `orrery-prof html` in a headless Chromium: what it shows after clicks, drags, keys and
// searches.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "tests/system/prof/in_browser.h"
#include "tests/unit/proftool/made_profile.h"

namespace orrery::prof::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kLeft = "\uE012";
constexpr const char* kUp = "\uE013";
constexpr const char* kRight = "\uE014";
constexpr const char* kEnter = "\uE007";

void add_call(MadePart& part, std::uint32_t name, std::uint64_t begin, std::uint64_t end,
              std::uint64_t correlation, std::int32_t error = 0) {
    part.add(CallRecord{{static_cast<std::uint16_t>(Type::kCall), sizeof(CallRecord), name},
                        begin,
                        end,
                        correlation,
                        0,
                        100,
                        error});
}
void add_work(MadePart& part, Operation operation, std::uint32_t name, std::uint32_t stream,
              std::uint64_t begin_us, std::uint64_t end_us, std::uint64_t correlation,
              std::uint32_t device = 0) {
    WorkRecord work =
        part.work_of(operation, name, stream, begin_us * 1'000'000, end_us * 1'000'000, correlation);
    work.device = device;
    work.correlation = correlation;
    part.add(work);
}

// A step of a copy, three kernels and what submitted them; a second card waits and then copies.
MadePart a_step() {
    MadePart part(100, "step --size 3");
    const auto launch = part.text("orrLaunchKernel"), copy_call = part.text("orrMemcpyAsync"),
               step = part.text("step");
    const auto copy = part.text("copy"), gemm = part.text("gemm"), softmax = part.text("softmax"),
               wait = part.text("wait");
    const auto compute = part.text("stream 'compute' on device 0"),
               copies = part.text("stream 2 on device 1");
    part.orrery_1(0);
    part.range(Type::kRangeBegin, step, 10'000);
    add_call(part, copy_call, 11'000, 15'000, 1);
    add_call(part, launch, 20'000, 24'000, 2);
    add_call(part, launch, 30'000, 31'000, 3);
    add_call(part, launch, 40'000, 48'000, 4, 2);
    part.range(Type::kMark, step, 50'000);
    part.range(Type::kRangeEnd, 0, 60'000);
    part.memory(0, 12'000, 4'096, 4'096);
    part.memory(0, 55'000, -4'096, 0);
    WorkRecord first = part.work_of(Operation::kCopy, copy, compute, 100'000'000, 140'000'000, 1);
    first.bytes = 1'000'000;
    first.source = static_cast<std::int32_t>(Place::kHost);
    first.destination = 0;
    first.correlation = 1;
    part.add(first);
    add_work(part, Operation::kKernel, gemm, compute, 150, 200, 2);
    add_work(part, Operation::kKernel, softmax, compute, 205, 225, 3);
    add_work(part, Operation::kKernel, gemm, compute, 230, 300, 4);
    WorkRecord waiting = part.work_of(Operation::kWait, wait, copies, 110'000'000, 201'000'000, 1);
    waiting.device = 1;
    waiting.from = static_cast<std::uint32_t>(From::kStream);
    waiting.from_stream = compute;
    waiting.from_index = 3;  // behind the first gemm
    part.add(waiting);
    add_work(part, Operation::kCopy, copy, copies, 201, 211, 0, 1);
    return part;
}

// The same, recorded with counters, samples of a counter, and samples of vector cores.
MadePart a_counted_step() {
    MadePart part = a_step();
    const auto kernel = part.text("gemm again"), name = part.text("copy_bytes"), unit = part.text("bytes"),
               line = part.text("src/gemm.cc:2"), function = part.text("inner");
    WorkCountersRecord counters{};
    counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
    counters.cores = 8;
    counters.stream = 9;
    counters.index = 1;
    counters.begin_ps = 400'000'000;
    counters.busy_ps = 800'000'000;
    counters.vram_read = 40'000'000;
    counters.flops_f32 = 20'000'000;
    counters.bandwidth_ps = 600'000'000;
    part.add(counters);
    WorkRecord work = part.work_of(Operation::kKernel, kernel, 9, 400'000'000, 500'000'000, 1);
    work.stream_name = 0;
    part.add(work);

    struct {
        SampleSetRecord set;
        SampledCounter counter;
    } set{{{static_cast<std::uint16_t>(Type::kSampleSet), sizeof set, 0}, 0, 1, 50'000'000},
          {8, name, unit, 0}};
    part.add(set);
    for (std::uint64_t i = 0; i < 9; ++i) {
        struct {
            SampleRecord sample;
            std::uint64_t value;
        } sample{{{static_cast<std::uint16_t>(Type::kSample), sizeof sample, 0},
                  0,
                  1,
                  100'000'000 + i * 50'000'000},
                 i < 3 ? 0 : i * 1'000'000};
        part.add(sample);
    }
    for (std::uint32_t i = 0; i < 4; ++i) {
        PcSampleRecord sample{};
        sample.head = {static_cast<std::uint16_t>(Type::kPcSample), sizeof sample, kernel};
        sample.core = i;
        sample.time_ps = 410'000'000;
        sample.stream = 9;
        sample.index = 1;
        sample.offset = 0x40;
        sample.function = function;
        sample.source = i < 3 ? line : 0;
        sample.stall = i < 2 ? 2 : 0;
        part.add(sample);
    }
    return part;
}

// A page of a profile that was made by hand.
class Page : public InBrowser {
  protected:
    static void show(const std::string& parts, const std::string& name = "made",
                     const std::string& options = "") {
        const fs::path file = folder_ / name, page = folder_ / "page.html";
        std::ofstream(file, std::ios::binary) << made_profile(parts);
        const std::string command =
            fmt::format("'{}' html '{}' {} -o '{}'", ORRERY_PROF, file.string(), options, page.string());
        const int status = std::system(command.c_str());
        ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << command;
        open(page);
    }
    // Of a pane, the moment under a point of the window.
    static double time_at(const Json& state, const char* pane, double x) {
        const double left = browser_->run("return canvas.getBoundingClientRect().left"),
                     names = state["names"], width = state["width"], begin = state[pane]["begin"],
                     span = state[pane]["span"];
        return begin + (x - left - names) / (width - names) * span;
    }
};

TEST_F(Page, HasTracksForThreadsEnginesAndStreams) {
    show(a_step().bytes(), "a step.prof");
    const Json now = state();
    EXPECT_EQ(now["slices"], 12);
    EXPECT_EQ(now["works"], 6);
    Strings labels;
    for (const Json& row : now["rows"])
        labels.push_back(row["type"].get<std::string>() + " " + row["label"].get<std::string>());
    EXPECT_THAT(labels, ElementsAre("head Process 100", "row thread 100", "row ", "chart memory, card 0",
                                    "head Card 0", "chart vector cores", "chart copy engines", "row compute",
                                    "head Card 1", "chart copy engines", "row stream 2"));
    EXPECT_EQ(text("h1"), "a step.prof");
    // The first frame comes when the browser paints.
    EXPECT_TRUE(browser_
                    ->run_async("const done = arguments[0];"
                                "const look = () => orreryPage.state().frames > 0 ? done(true) : "
                                "setTimeout(look, 20);"
                                "setTimeout(() => done(false), 60000); look();")
                    .get<bool>());
    // All of it is in sight at first.
    EXPECT_LT(now["model"]["begin"], 0);
    EXPECT_GT(now["model"]["begin"].get<double>() + now["model"]["span"].get<double>(), 200'000'000);
}

// What the calls' steps were, and what went over links: once more, in rows of their own, and in no sum twice.
TEST_F(Page, HasTracksForStepsAndLinks) {
    MadePart part = a_step();
    const auto copy = part.text("copy"), ring = part.text("stream 'ring' on device 0"),
               node = part.text("node 1"), host = part.text("host node");
    part.add(LinkRecord{
        {static_cast<std::uint16_t>(Type::kLink), sizeof(LinkRecord), 0}, 0, 0, 78, 1, 0, 3, 8, 400, 500});
    WorkRecord over = part.work_of(Operation::kCopy, copy, ring, 310'000'000, 330'000'000, 2);
    over.bytes = 65'536;
    over.source = 0;
    over.destination = 1;
    over.correlation = 1;
    part.add(over);
    StepRecord step = step_of(StepOf::kGraph, StepKind::kKernel, node, 0, 150'000'000, 200'000'000);
    step.correlation = 2;
    part.add(step);
    part.add(step_of(StepOf::kGraph, StepKind::kHost, host, -1, 62'000, 63'000));
    show(part.bytes());
    const Json now = state();
    EXPECT_EQ(now["works"], 7);
    EXPECT_EQ(now["slices"], 16);
    Strings labels;
    for (const Json& row : now["rows"])
        labels.push_back(row["type"].get<std::string>() + " " + row["label"].get<std::string>());
    EXPECT_THAT(labels,
                ElementsAre("head Process 100", "row thread 100", "row ", "row graph 1, lane 0",
                            "chart memory, card 0", "head Card 0", "chart vector cores", "chart copy engines",
                            "row compute", "row ring", "row graph 1, lane 0", "row link to card 1",
                            "head Card 1", "chart copy engines", "row stream 2"));
    click(slice("64.0 KiB by card 0"));
    for (const char* const fact : {"copy over a link", "20.000 µs", "link to card 1", "orrMemcpyAsync"})
        EXPECT_THAT(text("#details"), HasSubstr(fact));
    press("#details .links:last-of-type button");
    EXPECT_EQ(state()["selected"]["slice"], slice("copy", 1)) << "the copy itself";
    click(slice("node 1"));
    for (const char* const fact : {"step within a call", "50.000 µs", "graph 1, lane 0", "orrLaunchKernel"})
        EXPECT_THAT(text("#details"), HasSubstr(fact));
    click(slice("host node"));
    EXPECT_THAT(text("#details"), HasSubstr("1.000 µs"));
    // A call leads to its work, and not to what shows it once more.
    click(slice("orrMemcpyAsync"));
    EXPECT_EQ(count("#details .links button"), 2);
    EXPECT_THAT(text("#details"), Not(HasSubstr("64.0 KiB by card")));
}

TEST_F(Page, SaysWhatIsSelectedAndLeadsFromCallToWorkAndBack) {
    show(a_step().bytes());
    click(slice("gemm", 1));
    EXPECT_EQ(selected(), "gemm");
    const std::string details = text("#details");
    for (const char* const fact : {"kernel", "70.000 µs", "130.000 µs", "230\u202f000\u202f000 ps", "compute",
                                   "packet\n4", "orrLaunchKernel"})
        EXPECT_THAT(details, HasSubstr(fact));
    press("#details .links button");
    EXPECT_EQ(selected(), "orrLaunchKernel");
    EXPECT_THAT(text("#details"), HasSubstr("error 2"));
    EXPECT_EQ(state()["selected"]["begin"], 39'000);
    browser_->key("c");
    EXPECT_EQ(state()["selected"]["slice"], slice("gemm", 1));
    // A wait leads to what it waited for.
    click(slice("wait"));
    press("#details .links button");
    EXPECT_EQ(state()["selected"]["slice"], slice("gemm", 0));
    // The last work of a stream leads to the call that waited for it, and back.
    MadePart waited = a_step();
    const auto sync = waited.text("orrStreamSynchronize"), late = waited.text("late"),
               stream = waited.text("stream 3 on device 0");
    add_call(waited, sync, 50'000, 250'000, 5);
    WorkRecord last = waited.work_of(Operation::kKernel, late, stream, 310'000'000, 320'000'000, 9);
    last.correlation = 4;
    last.found_ns = 240'000;
    waited.add(last);
    show(waited.bytes());
    click(slice("late"));
    EXPECT_THAT(text("#details"), HasSubstr("Call that waited for it"));
    press("#details .links:last-of-type button");
    EXPECT_EQ(selected(), "orrStreamSynchronize");
    EXPECT_THAT(text("#details"), HasSubstr("Work that it waited for, the last of a stream"));
    press("#details .links button");
    EXPECT_EQ(selected(), "late");
    press("#all-arrows");
    EXPECT_TRUE(state()["arrows"]);
    show(a_step().bytes());
    // A copy says how fast it was, and which way.
    click(slice("copy", 0));
    EXPECT_THAT(text("#details"), HasSubstr("host to device"));
    EXPECT_THAT(text("#details"), HasSubstr("25.00 GB/s"));
}

TEST_F(Page, IsWalkedThroughByKeys) {
    show(a_step().bytes());
    click(slice("softmax"));
    browser_->key(kRight);
    EXPECT_EQ(state()["selected"]["slice"], slice("gemm", 1));
    browser_->key(kRight);  // there is no more
    EXPECT_EQ(state()["selected"]["slice"], slice("gemm", 1));
    for (int i = 0; i < 3; ++i)
        browser_->key(kLeft);
    EXPECT_EQ(selected(), "copy");
    const double before = state()["model"]["span"];
    browser_->key(kEnter);
    EXPECT_LT(state()["model"]["span"], before / 2);
    browser_->key(kEscape);
    EXPECT_EQ(selected(), "");
    click(slice("orrMemcpyAsync"));
    browser_->key(kUp);
    EXPECT_EQ(selected(), "step");
}

TEST_F(Page, ZoomsAroundThePointerAndMoves) {
    show(a_step().bytes());
    const Json at = place(slice("softmax"));
    const double x = std::floor(at["x"].get<double>()), y = at["y"];
    const Json first = state();
    browser_->scroll(x, y, -500);
    const Json nearer = state();
    EXPECT_LT(nearer["model"]["span"], first["model"]["span"].get<double>() / 2);
    EXPECT_NEAR(time_at(nearer, "model", x), time_at(first, "model", x),
                first["model"]["span"].get<double>() / 1e6);
    EXPECT_EQ(nearer["host"], first["host"]);  // each has its own scale

    browser_->drag(x, y, x - 200, y);
    const Json moved = state();
    EXPECT_EQ(moved["model"]["span"], nearer["model"]["span"]);
    EXPECT_NEAR(time_at(moved, "model", x - 200), time_at(nearer, "model", x),
                nearer["model"]["span"].get<double>() / 100);
    EXPECT_TRUE(moved["selected"].is_null());  // a drag is no click

    browser_->key("d");
    EXPECT_GT(state()["model"]["begin"], moved["model"]["begin"]);
    browser_->key("a");
    EXPECT_NEAR(state()["model"]["begin"], moved["model"]["begin"], 1);
    browser_->key("w");
    EXPECT_LT(state()["model"]["span"], moved["model"]["span"]);
    // However far: there is an end, both ways.
    for (int i = 0; i < 60; ++i)
        browser_->scroll(x, y, -400);
    EXPECT_EQ(state()["model"]["span"], 20);
    for (int i = 0; i < 60; ++i)
        browser_->scroll(x, y, 400);
    EXPECT_LE(state()["model"]["span"], 300'000'000);
    browser_->key("0");
    EXPECT_EQ(state()["model"], first["model"]);
    // Twice: it fills the pane. On a slow host the second click may come too late to be one with the first.
    for (int i = 0; i < 20 && state()["model"]["span"].get<double>() > 100e6; ++i)
        click(slice("softmax"), true);
    EXPECT_NEAR(state()["model"]["span"], 44e6, 1e6);
}

TEST_F(Page, SumsUpARangeOfTime) {
    show(a_step().bytes());
    // From the middle of the first gemm to the middle of softmax.
    const Json from = place(slice("gemm", 0)), to = place(slice("softmax"));
    browser_->drag(from["x"], from["y"], to["x"], to["y"], true);
    const Json range = state()["range"];
    ASSERT_EQ(range["pane"], "model");
    EXPECT_EQ(range["count"], 4);  // and on the other card a wait and a copy
    const double pixel = state()["model"]["span"].get<double>() / 1000;
    for (const Json& sum : range["names"]) {
        if (sum["name"] == "gemm") EXPECT_NEAR(sum["time"], 25e6, 2 * pixel);
        if (sum["name"] == "softmax") EXPECT_NEAR(sum["time"], 10e6, 2 * pixel);
        if (sum["name"] == "copy") EXPECT_NEAR(sum["time"], 10e6, 1);
    }
    EXPECT_THAT(text("#details"), HasSubstr("of model time"));
    EXPECT_THAT(text("#details"), HasSubstr("vector cores"));
    // The other pane's by a drag on its scale.
    const Json host = place(slice("orrMemcpyAsync")), pane = state()["host"];
    const double scale = browser_->run("return canvas.getBoundingClientRect().top").get<double>() +
                         pane["top"].get<double>() + 8;
    browser_->drag(host["x"].get<double>() - 3, scale, host["x"].get<double>() + 3, scale);
    EXPECT_EQ(state()["range"]["pane"], "host");
    EXPECT_EQ(state()["range"]["count"], 2);  // the call, and the range around it
    browser_->key(kEscape);
    EXPECT_TRUE(state()["range"].is_null());
}

TEST_F(Page, FindsNames) {
    show(a_step().bytes());
    press("#canvas");
    browser_->key("/");
    browser_->type("GEM");
    EXPECT_EQ(state()["matches"], 2);
    EXPECT_EQ(text("#matches"), "2 found");
    Strings found;
    for (int i = 0; i < 3; ++i) {
        browser_->key(kEnter);
        found.push_back(fmt::format("{} {}", selected(), state()["selected"]["begin"].get<double>() / 1e6));
    }
    EXPECT_THAT(found, ElementsAre("gemm 50", "gemm 130", "gemm 50"));
    browser_->key(kEscape);
    EXPECT_EQ(state()["matches"], 0);
    browser_->key("/");
    browser_->type("nothing has this name");
    EXPECT_EQ(text("#matches"), "0 found");
    browser_->key(kEnter);
    EXPECT_EQ(selected(), "");
}

// However many share a pixel.
TEST_F(Page, ShowsWhereANameIsAmongMany) {
    MadePart part(100, "dense");
    const auto call = part.text("call"), other = part.text("needle");
    for (std::uint64_t i = 0; i < 100'000; ++i)
        add_call(part, i == 30'037 ? other : call, 1'000'000 + i * 10, 1'000'008 + i * 10, i + 1);
    show(part.bytes());
    press("#canvas");
    browser_->key("/");
    browser_->type("needle");
    EXPECT_EQ(text("#matches"), "1 found");
    // Of the row, the pixels that are not as faint as most.
    const Json at = place(slice("needle"));
    // What was found is drawn with the next frame.
    browser_->run_async("requestAnimationFrame(() => requestAnimationFrame(() => arguments[0](true)));");
    const Json bright = browser_->run(
        "const box = canvas.getBoundingClientRect(), ratio = window.devicePixelRatio;"
        "const y = Math.round((arguments[1] - box.top) * ratio), x = Math.round((arguments[0] - box.left) * "
        "ratio);"
        "const data = canvas.getContext('2d').getImageData(0, y, canvas.width, 1).data;"
        "const of = (i) => data[4 * i] + data[4 * i + 1] + data[4 * i + 2];"
        "const faint = of(x + 50), found = [];"
        "for (let i = x - 40; i <= x + 40; i++) if (Math.abs(of(i) - faint) > 8) found.push(i - x);"
        "return found",
        {at["x"], at["y"]});
    ASSERT_FALSE(bright.empty());
    for (const Json& pixel : bright)
        EXPECT_LE(std::abs(pixel.get<int>()), 2);
}

TEST_F(Page, CountsARunInPartsOnce) {
    MadePart part(100, "parts");
    const auto kernel = part.text("gemm"), stream = part.text("stream 2 on device 0");
    for (std::uint64_t i = 0; i < 5; ++i) {
        WorkRecord work =
            part.work_of(Operation::kKernel, kernel, stream, i * 20'000'000, i * 20'000'000 + 5'000'000, 7);
        work.outcome = static_cast<std::uint16_t>(i < 4 ? Outcome::kPreempted : Outcome::kDone);
        part.add(work);
    }
    part.add(SamplesLostRecord{{static_cast<std::uint16_t>(Type::kSamplesLost), sizeof(SamplesLostRecord), 0},
                               0,
                               static_cast<std::uint32_t>(Type::kSample),
                               12});
    part.add(CutRecord{{static_cast<std::uint16_t>(Type::kCut), sizeof(CutRecord), 0}, 12'345, 99});
    show(part.bytes());
    press("#tab-tables");
    EXPECT_THAT(texts("#tables tbody tr:first-child td"),
                ElementsAre("gemm", "1", "25.000 µs", "100.0 %", "25.000 µs", "25.000 µs", "25.000 µs"));
    press("#tab-summary");
    EXPECT_THAT(text("#summary"), HasSubstr("12 samples of card 0 were lost."));
    EXPECT_THAT(text("#summary"), HasSubstr("Its part was spoilt from byte 12"));
}

TEST_F(Page, SortsTablesAndLeadsToTheTimeline) {
    show(a_step().bytes());
    press("#tab-tables");
    const auto names = [] { return texts("#tables tbody td:first-child"); };
    EXPECT_THAT(names(), ElementsAre("gemm", "softmax"));  // by their total
    press("#tables th:first-child button");
    EXPECT_EQ(browser_->run("return document.querySelector('#tables th').getAttribute('aria-sort')"),
              "ascending");
    press("#tables th:nth-child(2) button");
    EXPECT_THAT(names(), ElementsAre("gemm", "softmax"));
    press("#tables th:nth-child(2) button");
    EXPECT_THAT(names(), ElementsAre("softmax", "gemm"));
    EXPECT_THAT(texts("#tables tbody tr:nth-child(2) td"),
                ElementsAre("gemm", "2", "120.000 µs", "85.7 %", "60.000 µs", "50.000 µs", "70.000 µs"));
    press("#tables tbody tr:nth-child(2) button");
    EXPECT_EQ(state()["tab"], "timeline");
    EXPECT_EQ(state()["selected"]["slice"], slice("gemm", 1));
    press("#tab-tables");
    press("#tables .kinds button:nth-child(4)");
    EXPECT_THAT(names(), ElementsAre("orrMemcpyAsync", "orrLaunchKernel"));  // still by their count
    EXPECT_EQ(text("#tables tbody tr:nth-child(2) td:last-child"), "1");     // of them failed
    press("#tables .kinds button:nth-child(2)");
    EXPECT_THAT(names(), ::testing::UnorderedElementsAre("copy, host to device", "copy"));
    browser_->key("/");
    browser_->type("host");
    EXPECT_THAT(names(), ElementsAre("copy, host to device"));
}

TEST_F(Page, SummarizesCards) {
    show(a_step().bytes());
    press("#tab-summary");
    // Of 200 us from the first work to the end of the last.
    EXPECT_THAT(texts("#summary .card:first-child .meter span:last-child"),
                ElementsAre("70.0 %", "20.0 %", "8.8 %", "0.0 %"));
    EXPECT_THAT(text("#summary .card:first-child"), HasSubstr("Card 0, Orrery 1"));
    EXPECT_THAT(text("#summary"), HasSubstr("10.000 µs"));  // from the copy to the first gemm
    // The longest time without work is that of the card that waited.
    press("#summary table button");
    EXPECT_EQ(state()["selected"]["slice"], slice("copy", 1));
    press("#tab-roofline");
    EXPECT_THAT(text("#roofline"), HasSubstr("record --counters"));
    press("#tab-findings");
    EXPECT_GT(count("#findings article"), 0);
    EXPECT_THAT(text("#findings"), HasSubstr("Card 0"));
    EXPECT_EQ(count("#tab-source:not([hidden])"), 0);
}

TEST_F(Page, ShowsWhatWasCountedAndSampled) {
    std::ofstream(folder_ / "gemm.cc") << "// </script>\nacc += a * b;\nstore(acc);\n";
    show(a_counted_step().bytes(), "made",
         fmt::format("--source '{}/nowhere' --source '{}'", folder_.string(), folder_.string()));
    Strings charts;
    for (const Json& row : state()["rows"])
        if (row["type"] == "chart") charts.push_back(row["label"]);
    EXPECT_THAT(charts,
                ElementsAre("memory, card 0", "vector cores", "copy engines", "copy_bytes", "copy engines"));
    click(slice("gemm again"));
    EXPECT_THAT(text("#details"), HasSubstr("Counters"));
    EXPECT_THAT(text("#details"), HasSubstr("flops_f32\n20\u202f000\u202f000"));
    press("#tab-roofline");
    EXPECT_EQ(count("#roofline svg circle"), 1);
    // 20 MFLOP and 40 MB in 100 us: 400 GB/s, of which VRAM could have given twice as many.
    const Strings cells = texts("#roofline tbody td");
    EXPECT_THAT(Strings(cells.begin(), cells.begin() + 10),
                ElementsAre("gemm again", "1", "100.000 µs", "0.500", "200.0", "400.0", "400.0", "50.0 %",
                            "VRAM", "75.0 %"));
    press("#tab-source");
    EXPECT_THAT(texts("#source tbody:first-of-type tr td:first-child")[0], "src/gemm.cc:2");
    EXPECT_THAT(text("#source"), HasSubstr("memory 66.7 %, computing 33.3 %"));
    EXPECT_THAT(text("#source"), HasSubstr("offset 0x40"));
    EXPECT_THAT(texts("#source h2"), ElementsAre("gemm.cc"));
    const Strings source = texts("#source .wide:last-child tr:nth-child(2) td");
    EXPECT_THAT(source, ElementsAre("2", "75.0 %", "acc += a * b;"));
}

TEST_F(Page, FoldsACard) {
    show(a_step().bytes());
    const auto rows = state()["rows"].size();
    const Json head = state()["rows"][4];
    ASSERT_EQ(head["label"], "Card 0");
    const double y = browser_->run("return canvas.getBoundingClientRect().top").get<double>() +
                     state()["model"]["top"].get<double>() + 22 + head["y"].get<double>() + 10;
    browser_->click(40, y);
    EXPECT_THAT(state()["folded"].get<Strings>(), ElementsAre("card 0 0"));
    EXPECT_EQ(state()["rows"].size(), rows - 3);
    // What is sought is shown.
    browser_->key("/");
    browser_->type("softmax");
    browser_->key(kEnter);
    EXPECT_EQ(selected(), "softmax");
    EXPECT_EQ(state()["rows"].size(), rows);
}

TEST_F(Page, OfAProfileWithoutAnythingSaysSo) {
    MadePart part;
    show(part.bytes());
    EXPECT_EQ(state()["slices"], 0);
    EXPECT_THAT(text("#details"), HasSubstr("Nothing was recorded"));
    browser_->key("w");
    browser_->key(kRight);
    show("");
    EXPECT_EQ(state()["rows"].size(), 0u);
}

// The names of a profile are anybody's.
TEST_F(Page, ShowsHostileNamesAsTheyAreWritten) {
    const std::string script =
        "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>";
    const std::string turned = "a\u202egnp.exe\u2066\u200f";
    const std::string json = "\\\"}],\"x\":\u2028'<!--<script>";
    const std::string bytes = "\xff\xfe\xc3(\x01\x1b[31m";
    const std::string long_one = std::string(60'000, 'x');
    MadePart part(7, "</title></style>");
    std::uint64_t ps = 1'000'000;
    for (const std::string& name : {script, turned, json, bytes, long_one, std::string()}) {
        const auto text = name.empty() ? 0 : part.text(name);
        add_call(part, text, ps / 100, ps / 100 + 5'000, ps);
        part.range(Type::kMark, text, ps / 100, text);
        add_work(part, Operation::kKernel, text, text, ps / 1'000'000, ps / 1'000'000 + 1, ps);
        ps += 2'000'000;
    }
    const std::string file = "<b onclick=alert(1)>";
    show(part.bytes(), file);
    EXPECT_EQ(state()["slices"], 18);
    EXPECT_EQ(text("h1"), file);
    click(slice(script, 2));
    EXPECT_EQ(text("#details h2"), script);
    EXPECT_EQ(text("#details dd bdi"), script);  // its stream has the same
    EXPECT_FALSE(browser_->run("return orreryPage.slices(arguments[0])", {"a⟨U+202E⟩gnp.exe⟨U+2066⟩⟨U+200F⟩"})
                     .empty());
    EXPECT_FALSE(browser_->run("return orreryPage.slices(arguments[0])", {"��(␁␛[31m"}).empty() &&
                 browser_->run("return orreryPage.slices(arguments[0])", {"���(␁␛[31m"}).empty());
    click(slice(long_one, 0));
    EXPECT_EQ(text("#details h2"), long_one);
    EXPECT_LE(browser_->run("return document.documentElement.scrollWidth"), 1200);
    press("#tab-tables");
    press("#tables .kinds button:nth-child(4)");
    EXPECT_EQ(count("#tables tbody tr"), 6);
    press("#tab-summary");
    EXPECT_EQ(count("img"), 0);
    EXPECT_EQ(count("script"), 1);
    EXPECT_TRUE(browser_->run("return window.hacked === undefined"));
}

// A script that got into it all the same is not run, and nothing is fetched.
// Of cards, semaphores, counters, functions and lines.
TEST_F(Page, ShowsWhatElseIsHostileAsItIsWritten) {
    const std::string script = "</script><img src=x onerror='window.hacked = 1'><b>x</b>";
    MadePart part = a_counted_step();
    const auto name = part.text(script), line = part.text(script + ".cc:1"), kernel = part.text("gemm again");
    part.card(1, name, name);
    WorkRecord waiting = part.work_of(Operation::kWait, name, 9, 600'000'000, 900'000'000, 2);
    waiting.from = static_cast<std::uint32_t>(From::kOutside);
    waiting.from_name = waiting.stream_name = name;
    part.add(waiting);
    part.add(part.work_of(Operation::kKernel, kernel, 9, 900'000'000, 910'000'000, 3));
    struct {
        SampleSetRecord set;
        SampledCounter counter;
    } set{{{static_cast<std::uint16_t>(Type::kSampleSet), sizeof set, 0}, 1, 1, 50'000'000},
          {8, name, name, 0}};
    part.add(set);
    struct {
        SampleRecord sample;
        std::uint64_t value;
    } sample{{{static_cast<std::uint16_t>(Type::kSample), sizeof sample, 0}, 1, 1, 100'000'000}, 5};
    part.add(sample);
    sample.sample.time_ps *= 2;
    part.add(sample);
    PcSampleRecord pc{};
    pc.head = {static_cast<std::uint16_t>(Type::kPcSample), sizeof pc, kernel};
    pc.stream = 9;
    pc.index = 1;
    pc.function = name;
    pc.source = line;
    part.add(pc);
    show(part.bytes());
    for (const char* tab : {"#tab-tables", "#tab-summary", "#tab-roofline", "#tab-source", "#tab-findings"}) {
        press(tab);
        EXPECT_EQ(count("img"), 0) << tab;
        EXPECT_EQ(count("b"), 0) << tab;
        EXPECT_EQ(count("script"), 1) << tab;
    }
    press("#tab-summary");
    EXPECT_THAT(text("#summary"), HasSubstr("Card 1, " + script));
    press("#tab-source");
    EXPECT_THAT(text("main"), HasSubstr(script));
    EXPECT_TRUE(browser_->run("return window.hacked === undefined"));
}

TEST_F(Page, RunsNoScriptButItsOwn) {
    show(a_step().bytes());
    browser_->run(
        "const added = document.createElement('script'); added.textContent = 'window.hacked = 1';"
        "document.body.append(added);");
    EXPECT_TRUE(browser_->run("return window.hacked === undefined"));
    EXPECT_THAT(browser_->console().dump(), HasSubstr("Content Security Policy"));
    // And fetches nothing.
    browser_->run_async(
        "const image = document.createElement('img'); image.onerror = () => arguments[0](true);"
        "image.src = 'http://127.0.0.1:9/x.png'; document.body.append(image);");
    EXPECT_THAT(browser_->console().dump(), HasSubstr("img-src"));
}

TEST_F(Page, FitsANarrowWindow) {
    browser_->resize(400, 700);
    show(a_step().bytes());
    for (const char* const tab : {"summary", "findings", "tables", "roofline", "timeline"}) {
        press(fmt::format("#tab-{}", tab));
        EXPECT_EQ(state()["tab"], tab);
        EXPECT_LE(browser_->run("return document.documentElement.scrollWidth"), 400) << tab;
    }
    EXPECT_GT(browser_->run("return canvas.clientHeight"), 250);
    click(slice("gemm", 1));
    EXPECT_EQ(selected(), "gemm");
    EXPECT_GT(browser_->run("return canvas.clientHeight"), 250);
}

// All of its text has the contrast that WCAG AA wants, on both grounds.
TEST_F(Page, CanBeReadInLightAndInDark) {
    for (const bool dark : {false, true}) {
        browser_->prefer_dark(dark);
        show(a_step().bytes());
        const Json worst = browser_->run(R"(
            const style = getComputedStyle(document.documentElement);
            const light = (name) => {
                const digits = style.getPropertyValue(name).trim().slice(1);
                const parts = [0, 2, 4].map((at) => parseInt(digits.slice(at, at + 2), 16) / 255)
                    .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
            };
            const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
            return Math.min(...['--text', '--quiet', '--accent', '--bad'].flatMap(
                (one) => ['--ground', '--raised'].map((other) => contrast(one, other))));)");
        EXPECT_GE(worst, 4.5) << dark;
        const Json ground = browser_->run("return getComputedStyle(document.body).backgroundColor");
        EXPECT_EQ(ground, dark ? "rgb(18, 23, 30)" : "rgb(255, 255, 255)");
    }
}

}  // namespace
}  // namespace orrery::prof::test
