// The catalogues of counters and metrics. docs/counters.md is made from the catalogue: this test compares,
// and writes it anew when ORR_WRITE_PAGES is set.
#include <gtest/gtest.h>
#include <orrery/hw/counters.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "umd/runtime/counter_catalogue.h"
#include "umd/runtime/metric_catalogue.h"

namespace orrery::umd::test {
namespace {

struct Engine {
    const char* name;
    const char* what;
};
#define ENGINE(name, what) {name, what},
constexpr Engine kEngines[] = {ORR_COUNTER_ENGINES(ENGINE)};
#undef ENGINE

std::string row(std::size_t number) {
    const CatalogueEntry& entry = catalogue_entry(number);
    return "| " + std::to_string(number) + " | `" + entry.name + "` | " + entry.unit + " | " + entry.meaning +
           " |\n";
}

std::string page() {
    std::string text =
        "# Counters\n\n"
        "Made from the catalogue, `emulator/include/orrery/hw/counters.h`, by the test `umd_counters_test`;\n"
        "`ORR_WRITE_PAGES=1 build/release/bin/umd_counters_test` writes it anew. The same list gives the\n"
        "card's registers `ORR_R_COUNTER(n)` ([hardware.md](hardware.md)), files in sysfs and events of "
        "perf\n"
        "([driver.md](driver.md)), and what `orrDeviceGetCounterInfo` tells ([runtime.md](runtime.md)).\n\n"
        "All have 64 bits, count from the card's power-on and are never cleared. `ps` are picoseconds of\n"
        "model time. Numbers never change their meaning. Each is held by a test against a count that does\n"
        "not come from what counts it: `tests/unit/probes/counter_truths.h` says by which.\n";
    for (const Engine& engine : kEngines) {
        text += std::string("\n## `") + engine.name + "`: " + engine.what + "\n\n";
        text += "| Number | Counter | Unit | Meaning |\n|---|---|---|---|\n";
        for (std::size_t i = 0; i < catalogued(ORR_COUNTER_COUNT); ++i)
            if (catalogue_entry(i).engine == std::string(engine.name)) text += row(i);
    }
    text +=
        "\n## Metrics\n\n"
        "What follows from how much counters have gone up between two snapshots (`orrDeviceComputeMetrics`,\n"
        "`orrery-smi --counters`); `VECTOR_HZ` is the vector cores' frequency. There is no value where a "
        "card\n"
        "lacks a counter, or where nothing happened of which it is a share.\n";
    text += "\n| Metric | Unit | Formula | Meaning | High | Low |\n|---|---|---|---|---|---|\n";
    for (const MetricEntry& each : metric_catalogue()) {
        text += std::string("| `") + each.name + "` | " + each.unit + " | `" + each.formula + "` | " +
                each.meaning + " | " + each.high + " | " + each.low + " |\n";
    }
    text +=
        "\n## Known limits\n\n"
        "- Counters are of a whole card: of all its users, and sums over engines of a kind. What a kernel "
        "or\n"
        "  a copy did is told with it\n"
        "  ([profiling-api.md](profiling-api.md#counters-of-each-kernel-and-copy)), but for `vram_wait_ps`\n"
        "  and `pcie_wait_ps`; sums for a stream and for a process are in `orrery-prof report` and\n"
        "  `export`.\n"
        "- Instructions and operations of a quantum (2 us) are counted at its beginning, when its effects\n"
        "  happen; stalls at its end.\n"
        "- What is told of a kernel or copy has classes of vector instructions only: scalar ones are known "
        "of\n"
        "  the card. Of these, those of floating point that compute are among the operations. Waits of "
        "vector\n"
        "  instructions for one another are a part of what is left of `vector_busy_ps` without its stalls.\n"
        "- Cores that save, load or hand over a work-group are idle.\n"
        "- What the firmware does is its own word: its few cycles between two activities are of the "
        "earlier,\n"
        "  and the end of a pass over its events is of what it did last.\n"
        "- `ring_wait_ps` is of packets in ring slots, of which the card has 64: of more queues, those "
        "whose\n"
        "  turn is near. The packet that the firmware has read and holds (a wait, for one) is not among "
        "them.\n"
        "  From the end of `doorbell_wait_ps` to its beginning the firmware needs some ten cycles.\n"
        "- A port waits for room while its card's model time passes (`link_credit_ps`). Of cards that do "
        "not\n"
        "  keep step that depends on when the other card's host gives it.\n";
    return text;
}

TEST(Counters, PageIsWhatTheCatalogueSays) {
    const std::string file = ORRERY_CHECKOUT "/docs/counters.md";
    const std::string wanted = page();
    if (std::getenv("ORR_WRITE_PAGES") != nullptr) std::ofstream(file) << wanted;
    std::ifstream in(file);
    const std::string written{std::istreambuf_iterator<char>(in), {}};
    EXPECT_TRUE(written == wanted)
        << "docs/counters.md is not what the catalogue says: run this test once with ORR_WRITE_PAGES=1";
}

TEST(Counters, EachHasAnEngineANameOfItsOwnAndASentence) {
    std::set<std::string> engines, names;
    for (const Engine& engine : kEngines)
        engines.insert(engine.name);
    for (std::size_t i = 0; i < catalogued(ORR_COUNTER_COUNT); ++i) {
        const CatalogueEntry& entry = catalogue_entry(i);
        EXPECT_TRUE(engines.contains(entry.engine)) << entry.name << ": " << entry.engine;
        EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
        EXPECT_EQ(std::string(entry.meaning).back(), '.') << entry.name;
        EXPECT_EQ(find_in_catalogue(entry.name), i);
        // Whose name says a unit has it.
        const std::string name = entry.name;
        EXPECT_EQ(name.ends_with("_ps"), entry.unit == std::string("ps")) << name;
        EXPECT_EQ(name.ends_with("_bytes"), entry.unit == std::string("bytes")) << name;
    }
}

// Numbers are an ABI: those of released cards and drivers.
TEST(Counters, NumbersOfOldOnesStay) {
    const std::map<std::size_t, std::string> old = {
        {0, "core_instructions"}, {13, "copy_busy_ps"}, {17, "vector_instructions"}, {18, "vector_busy_ps"},
        {28, "core_stall_ps"},    {33, "vram_bytes"},   {39, "barrier_denied"}};
    for (const auto& [number, name] : old)
        EXPECT_EQ(catalogue_entry(number).name, name);
}

double metric(const char* name, const std::map<std::size_t, double>& known, double hz = 1e9) {
    std::vector<double> deltas(ORR_COUNTER_COUNT, std::nan(""));
    for (const auto& [number, value] : known)
        deltas[number] = value;
    return compute_metric(*find_metric(name), {.by_number = deltas, .vector_hz = hz});
}

TEST(Metrics, AreWhatTheirFormulasSay) {
    EXPECT_DOUBLE_EQ(
        metric("vector_utilisation", {{ORR_CTR_VECTOR_BUSY_PS, 30}, {ORR_CTR_VECTOR_IDLE_PS, 90}}), 25);
    // 500 instructions in 1 us of a core at 1 GHz.
    EXPECT_DOUBLE_EQ(
        metric("vector_ipc", {{ORR_CTR_VECTOR_INSTRUCTIONS, 500}, {ORR_CTR_VECTOR_BUSY_PS, 1e6}}), 0.5);
    // 4 KB in 1 us.
    EXPECT_DOUBLE_EQ(metric("vram_bandwidth", {{ORR_CTR_VRAM_BYTES, 4000}, {ORR_CTR_TIME_PS, 1e6}}), 4);
}

TEST(Metrics, HaveNoValueWithoutTheirCountersOrOfNothing) {
    EXPECT_TRUE(std::isnan(metric("vector_utilisation", {{ORR_CTR_VECTOR_BUSY_PS, 30}})));
    EXPECT_TRUE(std::isnan(metric("core_stalls", {{ORR_CTR_CORE_STALL_PS, 0}, {ORR_CTR_CORE_BUSY_PS, 0}})));
    EXPECT_TRUE(std::isnan(metric("core_stalls", {{ORR_CTR_CORE_STALL_PS, 1}, {ORR_CTR_CORE_BUSY_PS, 0}})));
}

TEST(Metrics, OfACardThatDidEverythingHaveValues) {
    const std::vector<double> deltas(ORR_COUNTER_COUNT, 1000);
    for (std::size_t i = 0; i < metric_catalogue().size(); ++i) {
        const MetricEntry& each = metric_catalogue()[i];
        EXPECT_FALSE(std::isnan(compute_metric(i, {.by_number = deltas, .vector_hz = 1e9}))) << each.name;
        EXPECT_EQ(find_metric(each.name), i);
        for (const char* text : {each.meaning, each.high, each.low})
            EXPECT_TRUE(std::string(text).ends_with('.') || std::string(text).ends_with('?')) << text;
    }
}

}  // namespace
}  // namespace orrery::umd::test
