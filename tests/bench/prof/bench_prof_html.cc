// How fast the page of a profile of a million slices opens, and moves: times are the browser's, between what
// it draws. Frames are asked for as a user does it, by the mouse's events, one for each.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <random>

#include "tests/system/prof/browser.h"
#include "tests/unit/proftool/made_profile.h"
#include "tools/bench/measured.h"
#include "tools/bench/thread_clock.h"
#include "tools/prof/show.h"
#include "tools/text/files.h"

namespace {

using namespace orrery;
using namespace orrery::prof;

constexpr int kSlices = 1'000'000;

// Half of it calls of four threads, half of it work of two cards with four streams each.
std::string made() {
    test::MadePart part(100, "a long run");
    std::vector<std::uint32_t> calls, kernels, streams;
    for (int i = 0; i < 24; ++i) {
        calls.push_back(part.text(fmt::format("orrCall{}", i)));
        kernels.push_back(part.text(fmt::format("kernel_{}", i)));
    }
    for (int i = 0; i < 8; ++i)
        streams.push_back(part.text(fmt::format("stream 's{}' on device {}", i, i / 4)));
    std::mt19937_64 random(1);
    std::vector<std::uint64_t> host(4, 1'000'000), card(8, 1'000'000'000);
    for (std::uint64_t i = 1; i <= kSlices / 2; ++i) {
        std::uint64_t& now = host[i % host.size()];
        const std::uint64_t begin = now + random() % 4'000;
        now = begin + 200 + random() % 6'000;
        part.add(CallRecord{
            {static_cast<std::uint16_t>(Type::kCall), sizeof(CallRecord), calls[random() % calls.size()]},
            begin,
            now,
            i,
            0,
            static_cast<std::uint32_t>(100 + i % host.size()),
            0});
        std::uint64_t& end = card[i % card.size()];
        const std::uint64_t start = end + random() % 3'000'000;
        end = start + 100'000 + random() % (i % 97 == 0 ? 90'000'000 : 6'000'000);
        const auto operation = i % 5 == 0    ? Operation::kCopy
                               : i % 11 == 0 ? Operation::kWait
                                             : Operation::kKernel;
        WorkRecord work = part.work_of(operation, kernels[random() % kernels.size()],
                                       streams[i % streams.size()], start, end, i);
        work.device = static_cast<std::uint32_t>(i % streams.size() / 4);
        work.correlation = i;
        part.add(work);
    }
    return test::made_profile(part.bytes());
}

// Milliseconds between frames while an event a frame comes: `n` events that `make` makes from a number.
constexpr const char* kFrames = R"(
    const [kind, n, done] = arguments;
    const box = canvas.getBoundingClientRect();
    const y = box.top + box.height * 0.75;
    const at = (x, more) => ({ bubbles: true, cancelable: true, clientX: x, clientY: y, pointerId: 1, ...more });
    const middle = box.left + box.width * 0.6;
    const times = [];
    let i = 0, last = 0;
    if (kind === 'pan') { canvas.setPointerCapture = () => {}; canvas.dispatchEvent(new PointerEvent('pointerdown', at(middle))); }
    const step = (now) => {
        if (i > 0) times.push(now - last);
        last = now;
        if (i++ === n) {
            if (kind === 'pan') canvas.dispatchEvent(new PointerEvent('pointerup', at(middle)));
            return done(times);
        }
        if (kind === 'zoom') canvas.dispatchEvent(new WheelEvent('wheel', at(middle, { deltaY: i <= n / 2 ? -90 : 90 })));
        else canvas.dispatchEvent(new PointerEvent('pointermove', at(middle + 180 * Math.sin(i / 9))));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);)";

}  // namespace

int main() try {
    const auto folder =
        std::filesystem::temp_directory_path() / fmt::format("orrery-bench-html-{}", ::getpid());
    std::filesystem::create_directories(folder);
    const std::filesystem::path page = folder / "page.html";
    auto profile = parse_profile(made());
    if (!profile) throw std::runtime_error(profile.error().text);
    std::string html;
    const double making =
        bench::thread_seconds_of([&] { html = html_page(Model(std::move(*profile)), "made"); });
    if (const auto written = text::write_file(page, html); !written)
        throw std::runtime_error(written.error().text);
    fmt::print(stderr, "a page of {} slices: {:.1f} MB\n", kSlices, static_cast<double>(html.size()) / 1e6);

    bench::Measured measured;
    measured.add({"making the page", {}, {making}, {}});
    test::Browser browser(folder);
    browser.resize(1400, 900);
    std::vector<double> opening;
    for (int i = 0; i < 3; ++i) {
        browser.open(page);
        opening.push_back(browser
                              .run_async("const done = arguments[0]; const look = () => window.orreryPage ?"
                                         "done(orreryPage.readyAfter) : setTimeout(look, 20); look();")
                              .get<double>() /
                          1e3);
    }
    measured.add({"opening the page", {}, std::move(opening), {}});
    const auto frames = [&](const char* name, const char* kind, int count) {
        measured.add({name, {}, browser.run_async(kFrames, {kind, count}).get<std::vector<double>>(), {}});
    };
    frames("frames, everything in sight, moved", "pan", 120);
    frames("frames, zoomed in and out", "zoom", 160);
    browser.run(
        "for (let i = 0; i < 30; i++) canvas.dispatchEvent(new WheelEvent('wheel', {clientX: 700, clientY: "
        "600, deltaY: -60, cancelable: true}))");
    frames("frames, a fiftieth in sight, moved", "pan", 120);
    std::filesystem::remove_all(folder);
    return measured.print() ? 0 : 1;
} catch (const std::exception& problem) {
    fmt::print(stderr, "bench_prof_html: {}\n", problem.what());
    return 1;
}
