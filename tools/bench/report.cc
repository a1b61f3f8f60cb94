// orrery-bench-report: puts what was measured into build/bench.json and a table, beside the goals.
//   orrery-bench-report GUEST.json CORE.json ENGINES.json RUN_SECONDS FIRST_RESULT_SECONDS OUTPUT.json
//   [MORE.json ...]
// CORE and ENGINES are outputs of bench_core and bench_engines (Google Benchmark's JSON); MORE are lists of
// entries as OUTPUT has them, of bench_trace and bench_step.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace {

using Json = nlohmann::ordered_json;

struct Entry {
    std::string name;
    double value;
    std::string unit;
    std::string yardstick;  // with its value, empty: none
    std::optional<double> ratio;
    std::string goal;  // empty: shown only
    bool holds = true;
    std::optional<double> p10, p90;
};

Json read_json(const char* path) {
    std::ifstream in(path);
    return Json::parse(in);
}

double median(std::vector<double> values) {
    if (values.empty()) throw std::runtime_error("a benchmark is missing: is the build complete?");
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

// Median over the repetitions of the benchmark whose name is or begins with `name`.
double benchmark_value(const Json& report, const std::string& name, const char* key) {
    std::vector<double> values;
    for (const Json& run : report.at("benchmarks")) {
        const std::string run_name = run.at("run_name");
        if (run.value("run_type", "") == "iteration" && run_name.starts_with(name) && run.contains(key)) {
            values.push_back(run.at(key));
        }
    }
    return median(values);
}

void add_guest(std::vector<Entry>& entries, const Json& guest) {
    const auto value = [&](const char* key) { return guest.at(key).at("median").get<double>(); };
    const auto spread = [&](Entry entry, const char* key, double scale) {
        entry.p10 = guest.at(key).at("p10").get<double>() * scale;
        entry.p90 = guest.at(key).at("p90").get<double>() * scale;
        return entry;
    };
    const double job = value("job_latency_ns"), read = value("nvme_read_ns");
    entries.push_back(spread({"empty job, seen by the process",
                              job / 1e3,
                              "us",
                              fmt::format("NVMe 4 KiB QD1 read {:.1f} us", read / 1e3),
                              job / read,
                              "<= 3 us, <= 0.1 of it",
                              job <= 3000 && job <= read / 10,
                              {},
                              {}},
                             "job_latency_ns", 1e-3));
    const double batched = value("batched_job_ns"), deep = value("nvme_deep_read_ns");
    entries.push_back({"jobs in batches of 32",
                       1e9 / batched,
                       "1/s",
                       fmt::format("NVMe QD32 {:.0f}/s", 1e9 / deep),
                       deep / batched,
                       ">= 10 of it",
                       deep / batched >= 10,
                       {},
                       {}});
    const double sgemm = value("sgemm_ns");
    entries.push_back(spread({"SGEMM 128^3 with a plain kernel, launch to result",
                              sgemm / 1e6,
                              "ms",
                              "",
                              std::nullopt,
                              "<= 40 ms",
                              sgemm <= 40e6,
                              {},
                              {}},
                             "sgemm_ns", 1e-6));
    const double memcpy_rate = value("memcpy_gbps");
    const std::pair<const char*, const char*> copies[] = {
        {"copy to card, 64 MiB, pinned, API", "h2d_pinned_gbps"},
        {"copy from card, 64 MiB, pinned, API", "d2h_pinned_gbps"},
        {"copy to card, 64 MiB, pageable, API", "h2d_pageable_gbps"},
        {"copy from card, 64 MiB, pageable, API", "d2h_pageable_gbps"}};
    for (const auto& [name, key] : copies) {
        entries.push_back(spread({name,
                                  value(key),
                                  "GB/s",
                                  fmt::format("guest memcpy {:.2f} GB/s", memcpy_rate),
                                  value(key) / memcpy_rate,
                                  "",
                                  true,
                                  {},
                                  {}},
                                 key, 1));
    }
}

void add_host(std::vector<Entry>& entries, const Json& core, const Json& engines, double run_s,
              double first_s) {
    const std::pair<const char*, const char*> copies[] = {
        {"copy engine, host to card, 64 MiB", "copy/bytes:67108864/to_host:0/huge:0"},
        {"copy engine, card to host, 64 MiB", "copy/bytes:67108864/to_host:1/huge:0"}};
    for (const auto& [name, key] : copies) {
        const double ratio = benchmark_value(engines, key, "memcpy_ratio");
        const double rate = benchmark_value(engines, key, "bytes_per_second") / 1e9;
        entries.push_back({name, rate, "GB/s", "memcpy", ratio, ">= 0.9 of it", ratio >= 0.9, {}, {}});
    }
    const double hart = benchmark_value(core, "hart/10000000", "items_per_second") / 1e6;
    const double unicorn = benchmark_value(core, "unicorn/10000000", "items_per_second") / 1e6;
    entries.push_back({"interpreter, scheduler-like program",
                       hart,
                       "MIPS",
                       fmt::format("Unicorn {:.0f} MIPS", unicorn),
                       hart / unicorn,
                       ">= 500 MIPS, >= 2.5 of it",
                       hart >= 500 && hart / unicorn >= 2.5,
                       {},
                       {}});
    entries.push_back({"make run, all built", run_s, "s", "", {}, "<= 20 s", run_s <= 20, {}, {}});
    entries.push_back({"boot to first result", first_s, "s", "", {}, "<= 10 s", first_s <= 10, {}, {}});
}

void add_more(std::vector<Entry>& entries, const Json& more) {
    for (const Json& from : more) {
        const Json goal = from.value("goal", Json());
        Entry entry{from.at("name"),
                    from.at("value"),
                    from.at("unit"),
                    "",
                    {},
                    goal.is_null() ? "" : goal.get<std::string>(),
                    from.value("holds", true),
                    {},
                    {}};
        if (from.contains("p10")) entry.p10 = from.at("p10").get<double>();
        if (from.contains("p90")) entry.p90 = from.at("p90").get<double>();
        if (from.contains("median"))
            entry.yardstick = fmt::format("median {:.2f} {}", from.at("median").get<double>(), entry.unit);
        entries.push_back(std::move(entry));
    }
}

void show(const std::vector<Entry>& entries, const Json& guest) {
    fmt::print("\n{:<38} {:>14} {:<5} {:<34} {:>7}  {:<26} {}\n", "what", "median", "", "yardstick", "ratio",
               "goal", "holds");
    for (const Entry& e : entries) {
        fmt::print("{:<38} {:>14.2f} {:<5} {:<34} {:>7}  {:<26} {}\n", e.name, e.value, e.unit, e.yardstick,
                   e.ratio ? fmt::format("{:.3g}", *e.ratio) : "", e.goal.empty() ? "(shown)" : e.goal,
                   e.goal.empty() ? ""
                   : e.holds      ? "yes"
                                  : "NO");
    }
    fmt::print("SKU: {}; no random input, so no seed.", guest.at("sku").get<std::string>());
    if (guest.at("clock_factor").is_number()) {
        fmt::print(" The guest's clock ran at {:.2f} of real time; times are corrected.",
                   1 / guest.at("clock_factor").get<double>());
    }
    fmt::print("\n");
}

Json to_json(const std::vector<Entry>& entries, const Json& guest) {
    Json all = Json::array();
    for (const Entry& e : entries) {
        Json entry = {{"name", e.name},
                      {"value", e.value},
                      {"unit", e.unit},
                      {"yardstick", e.yardstick.empty() ? Json(nullptr) : Json(e.yardstick)},
                      {"ratio", e.ratio ? Json(*e.ratio) : Json(nullptr)},
                      {"goal", e.goal.empty() ? Json(nullptr) : Json(e.goal)},
                      {"holds", e.goal.empty() ? Json(nullptr) : Json(e.holds)},
                      {"sku", guest.at("sku")},
                      {"seed", guest.at("seed")}};
        if (e.p10) entry["p10"] = *e.p10;
        if (e.p90) entry["p90"] = *e.p90;
        all.push_back(std::move(entry));
    }
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 7) {
        fmt::print(stderr,
                   "usage: orrery-bench-report GUEST CORE ENGINES RUN_SECONDS FIRST_RESULT_SECONDS OUTPUT "
                   "[MORE ...]\n");
        return 2;
    }
    try {
        const Json guest = read_json(argv[1]);
        std::vector<Entry> entries;
        add_guest(entries, guest);
        add_host(entries, read_json(argv[2]), read_json(argv[3]), std::stod(argv[4]), std::stod(argv[5]));
        for (int i = 7; i < argc; ++i)
            add_more(entries, read_json(argv[i]));
        std::ofstream out(argv[6]);
        out << to_json(entries, guest).dump(2) << '\n';
        if (!out.flush()) {
            fmt::print(stderr, "orrery-bench-report: {} cannot be written\n", argv[6]);
            return 1;
        }
        show(entries, guest);
        return std::all_of(entries.begin(), entries.end(), [](const Entry& e) { return e.holds; }) ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "orrery-bench-report: {}\n", error.what());
        return 1;
    }
}
