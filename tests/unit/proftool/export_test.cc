// Profiles as tables: SQLite and CSV, as docs/profile-format.md describes them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/unit/proftool/made_profile.h"
#include "tools/prof/record.h"
#include "tools/prof/tables.h"

namespace orrery::prof::test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string contents(const fs::path& file) {
    std::ostringstream all;
    all << std::ifstream(file, std::ios::binary).rdbuf();
    return all.str();
}

class Export : public ::testing::Test {
  protected:
    Export() : folder_(fs::temp_directory_path() / fmt::format("orrery-export-{}", ::getpid())) {
        fs::create_directories(folder_);
    }
    ~Export() override { fs::remove_all(folder_); }

    static Model a_model() {
        MadePart first, part(200, "second, with \"quotes\"");
        first.call(first.text("orrInit"), 1'100, 1'200);
        part.head.begin_ns = 2'000;
        part.orrery_1(0);
        const auto launch = part.text("orrLaunchKernel"), kernel = part.text("saxpy"),
                   main = part.text("main"), other = part.text("\xff\xc3\xa9\xed\xa0\x80"),
                   gate = part.text("gate");
        part.call(launch, 2'000, 2'500);
        part.range(Type::kRangeBegin, kernel, 2'100);
        part.range(Type::kMark, kernel, 2'200, gate);
        part.memory(0, 2'300, 64, 64);
        // In two parts, as it was preempted.
        part.add(part.work_of(Operation::kKernel, kernel, main, 10, 22, 4));
        part.add(part.work_of(Operation::kKernel, kernel, main, 22, 30, 4));
        part.copy(kernel, other, 15, 40, 1'000, -1, 0);
        WorkRecord wait = part.work_of(Operation::kWait, kernel, other, 20, 35, 9);
        wait.from = static_cast<std::uint32_t>(From::kStream);
        wait.from_stream = main;
        wait.from_index = 5;
        wait.from_name = gate;
        part.add(wait);
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = main;
        counters.index = 4;
        counters.begin_ps = 10;
        counters.flops_f32 = 77;
        part.add(counters);
        part.card(1, gate, gate, 8, ~std::uint64_t{0});
        auto profile = parse_profile(made_profile(first.bytes() + part.bytes()));
        EXPECT_TRUE(profile) << profile.error().text;
        return Model(*std::move(profile));
    }
    // Rows with bars between the columns; a null is empty.
    std::vector<std::string> ask(const std::string& question) {
        sqlite3* database = nullptr;
        EXPECT_EQ(sqlite3_open_v2((folder_ / "p.db").c_str(), &database, SQLITE_OPEN_READONLY, nullptr),
                  SQLITE_OK);
        std::vector<std::string> rows;
        char* error = nullptr;
        sqlite3_exec(
            database, question.c_str(),
            [](void* to, int count, char** values, char**) {
                std::string row;
                for (int i = 0; i < count; ++i)
                    row += std::string(i == 0 ? "" : "|") + (values[i] == nullptr ? "" : values[i]);
                static_cast<std::vector<std::string>*>(to)->push_back(row);
                return 0;
            },
            &rows, &error);
        EXPECT_EQ(error, nullptr) << error;
        sqlite3_free(error);
        sqlite3_close(database);
        return rows;
    }

    const fs::path folder_;
};

using Rows = std::vector<std::string>;

TEST_F(Export, MakesADatabase) {
    std::ofstream(folder_ / "p.db") << "what was there";
    const auto good = export_sqlite(a_model(), folder_ / "p.db");
    ASSERT_TRUE(good) << good.error().text;
    EXPECT_FALSE(fs::exists(folder_ / "p.db.part"));
    EXPECT_EQ(ask("PRAGMA integrity_check"), Rows{"ok"});
    EXPECT_EQ(ask("PRAGMA user_version"), Rows{std::to_string(kSchemaVersion)});
    EXPECT_EQ(ask("SELECT pid, command FROM process"), (Rows{"100|program", "200|second, with \"quotes\""}));
    EXPECT_EQ(ask("SELECT call.name FROM work JOIN call USING (call) WHERE work.name = 'saxpy' LIMIT 1"),
              Rows{"orrLaunchKernel"});
    EXPECT_EQ(ask("SELECT w.wait_from, w.wait_name, c.begin_ps FROM work w JOIN work c ON w.cause = c.work"),
              Rows{"stream|gate|22"});
    EXPECT_EQ(ask("SELECT direction, bytes, source, destination, groups FROM work WHERE operation = 'copy'"),
              Rows{"host to device|1000|-1|0|"});
    EXPECT_EQ(ask("SELECT gb_per_s FROM copy"), Rows{"40000.0"});
    EXPECT_EQ(ask("SELECT name, runs, total_ps FROM kernel"), Rows{"saxpy|1|20"});
    EXPECT_EQ(ask("SELECT flops_f32 FROM work_counters JOIN work USING (work) WHERE packet = 4"), Rows{"77"});
    EXPECT_EQ(ask("SELECT value FROM sku WHERE key = 'copy.vram_gb_per_s'"), Rows{"800"});
    EXPECT_EQ(ask("SELECT uid FROM card WHERE device = 1"), Rows{"18446744073709551615"}) << "as text";
    EXPECT_EQ(ask("SELECT name FROM stream WHERE stream != (SELECT stream FROM work WHERE packet = 4)"),
              Rows{"?\xc3\xa9???"});
}

// Of an older card, or an older profile: not known is not 0.
TEST_F(Export, WhatWasNotCountedIsNull) {
    MadePart part;
    part.orrery_1(0);
    const std::uint32_t main = part.text("main"), saxpy = part.text("saxpy");
    for (const std::uint64_t index : {1u, 2u}) {
        WorkCountersRecord counters{};
        counters.head = {static_cast<std::uint16_t>(Type::kWorkCounters), sizeof counters, 0};
        counters.stream = main;
        counters.index = index;
        counters.begin_ps = index;
        counters.tlb_walked = 5;
        counters.copy_setup_ps = 7;
        if (index == 1) part.add(counters);
        if (index == 2) part.add_first(counters, offsetof(WorkCountersRecord, copy_setup_ps));
        part.add(part.work_of(Operation::kKernel, saxpy, main, index, index + 1, index));
    }
    const Model model = made_model(part.bytes());
    ASSERT_TRUE(export_sqlite(model, folder_ / "p.db"));
    const std::string counters =
        "SELECT tlb_walked, copy_setup_ps, copy_peer_ps, link_ports, typeof(copy_setup_ps) FROM "
        "work_counters "
        "JOIN work USING (work) WHERE packet = ";
    EXPECT_EQ(ask(counters + "1"), Rows{"5|7|0|0|integer"});
    EXPECT_EQ(ask(counters + "2"), Rows{"5||||null"});
    EXPECT_EQ(ask("SELECT counted, tlb_walked, typeof(copy_setup_ps) FROM stream_work"), Rows{"2|10|null"});
    ASSERT_TRUE(export_csv(model, folder_ / "csv"));
    EXPECT_THAT(contents(folder_ / "csv/work_counters.csv"), HasSubstr(",5,,,,,,,,,,,\r\n"));
}

TEST_F(Export, MakesFilesOfTheSame) {
    ASSERT_TRUE(export_csv(a_model(), folder_ / "new" / "csv"));
    EXPECT_EQ(contents(folder_ / "new/csv/process.csv"),
              "process,pid,parent,command,begin_ns,lost,ended,pinned_peak\r\n"
              "0,100,0,program,1000,0,1,0\r\n"
              "1,200,0,\"second, with \"\"quotes\"\"\",2000,0,1,0\r\n");
    EXPECT_EQ(contents(folder_ / "new/csv/memory.csv"),
              "process,device,ns,thread,correlation,address,bytes,in_use\r\n1,0,2300,100,7,4096,64,64\r\n");
    MadePart cut;
    cut.add(CutRecord{{static_cast<std::uint16_t>(Type::kCut), sizeof(CutRecord), 0}, 5'000, 96});
    ASSERT_TRUE(export_csv(made_model(cut.bytes()), folder_ / "cut"));
    EXPECT_EQ(contents(folder_ / "cut/lost.csv"), "process,device,what,at_least\r\n0,,bytes,96\r\n");
}

TEST_F(Export, SaysWhatCannotBeWritten) {
    const auto database = export_sqlite(a_model(), "/nowhere/p.db");
    ASSERT_FALSE(database);
    EXPECT_THAT(database.error().text, HasSubstr("/nowhere/p.db cannot be written"));
    fs::create_directories(folder_ / "is a folder" / "with something");
    EXPECT_FALSE(export_sqlite(a_model(), folder_ / "is a folder"));
    EXPECT_FALSE(fs::exists(folder_ / "is a folder.part"));
    EXPECT_FALSE(export_csv(a_model(), "/dev/null/csv"));
}

// The page has each table with its columns, in their order, and no others.
TEST_F(Export, IsAsItsPageSays) {
    class Names final : public TableSink {
      public:
        text::Result<void> begin(const Table& table) override {
            std::string& columns = all[std::string(table.name)];
            for (const Column& column : table.columns)
                columns += fmt::format("{}`{}`", columns.empty() ? "" : " ", column.name);
            return {};
        }
        text::Result<void> row(std::span<const Value>) override { return {}; }
        text::Result<void> end() override { return {}; }
        std::map<std::string, std::string> all;
    } names;
    ASSERT_TRUE(write_tables(a_model(), names));
    std::istringstream page(contents(fs::path(SOURCES) / "docs/profile-format.md"));
    std::map<std::string, std::string> said;
    bool here = false;
    for (std::string line; std::getline(page, line);) {
        here = here || line == "## Tables";
        if (!here || !line.starts_with("| `")) continue;
        const auto name = line.substr(3, line.find('`', 3) - 3);
        const auto columns = line.rfind(" | ");
        said[name] = line.substr(columns + 3, line.size() - columns - 5);
    }
    EXPECT_EQ(said, names.all);
}

class Merge : public Export {
  protected:
    std::string file(const char* name, const std::string& parts) {
        const std::string path = (folder_ / name).string();
        std::ofstream(path, std::ios::binary) << made_profile(parts);
        return path;
    }
    static std::string part(std::uint64_t machine, std::uint64_t pid = 100, std::uint64_t begin_ns = 1'000) {
        MadePart made(pid, "rank");
        made.head.machine = machine;
        made.head.begin_ns = begin_ns;
        made.call(made.text("orrInit"), 2'000, 3'000);
        return made.bytes();
    }
    std::string all() const { return (folder_ / "all.prof").string(); }
};

TEST_F(Merge, HasThePartsOfAllFiles) {
    // The same process of another boot, another of its boot, the program that it executed; and of boots that
    // are not known two that look alike.
    const std::string one = file("one", part(5)),
                      other = file("other", part(6) + part(5, 101) + part(5, 100, 5'000)),
                      old = file("old", part(0) + part(0));
    ASSERT_TRUE(merge({one, other, old}, all()));
    const auto merged = read_profile(all());
    ASSERT_TRUE(merged);
    EXPECT_EQ(merged->processes.size(), 6u);
}

TEST_F(Merge, TakesNoPartTwice) {
    const std::string one = file("one", part(5)), other = file("other", part(6));
    ASSERT_TRUE(merge({one, other}, all()));
    const auto again = merge({one, other, all()}, (folder_ / "more").string());
    ASSERT_FALSE(again);
    EXPECT_THAT(again.error().text, HasSubstr(all() + " has process 100 (rank) that " + one));
    EXPECT_FALSE(fs::exists(folder_ / "more"));
    EXPECT_FALSE(merge({one, one}, all()));
}

TEST_F(Merge, NamesTheFileThatIsDamaged) {
    const std::string one = file("one", part(5)), bad = file("bad", part(6).substr(0, 300));
    const auto merged = merge({one, bad}, all());
    ASSERT_FALSE(merged);
    EXPECT_THAT(merged.error().text, testing::StartsWith(bad + ": it is cut at byte "));
}

}  // namespace
}  // namespace orrery::prof::test
