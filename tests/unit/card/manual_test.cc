// docs/hardware.md against the contracts and against a card: every name, offset, value and reset value.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include <orrery/hw/trace_sink.h>

#include "emulator/soc/register_names.h"
#include "tests/unit/card/card_rig.h"

namespace orrery::emu {
namespace {

std::string text_of(const std::filesystem::path& file) {
    std::ifstream in(file);
    EXPECT_TRUE(in) << file;
    return {std::istreambuf_iterator<char>(in), {}};
}

std::filesystem::path source(const std::string& path) {
    return std::filesystem::path(SOURCE_FOLDER) / path;
}

// The manual, and the page of recordings, which has tables of its own.
std::string manual_text() {
    return text_of(source("docs/hardware.md")) + text_of(source("docs/trace.md"));
}

std::string trim(const std::string& text) {
    const auto first = text.find_first_not_of(" \t");
    if (first == std::string::npos) return {};
    return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

std::string without(std::string text, char unwanted) {
    std::erase(text, unwanted);
    return text;
}

// What is compared of a value: no suffixes, no spaces, no brackets around all of it, no escapes.
std::string plain(const std::string& value) {
    std::string text = std::regex_replace(value, std::regex(R"(\b(0x[0-9a-fA-F]+|\d+)(ull|u)\b)"), "$1");
    for (const char c : {' ', '\\', '`'})
        text = without(text, c);
    int depth = 0;
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
        depth += text[end] == '(' ? 1 : text[end] == ')' ? -1 : 0;
        if (depth == 0) break;
    }
    if (text.size() > 2 && text[0] == '(' && end == text.size() - 1) return text.substr(1, text.size() - 2);
    return text;
}

struct Define {
    std::string name;
    std::string value;
    std::string file;
};

std::vector<std::filesystem::path> headers() {
    std::vector<std::filesystem::path> all;
    for (const char* folder : {"emulator/include/orrery/hw", "firmware/include/orrery/fw"}) {
        for (const auto& entry : std::filesystem::directory_iterator(source(folder)))
            all.push_back(entry.path());
    }
    return all;
}

std::vector<Define> defines() {
    const std::regex line(R"(#define[ \t]+((?:ORR|SOC)_\w+)(\([\w, ]+\))?[ \t]+)");
    std::vector<Define> all;
    for (const auto& file : headers()) {
        if (file.filename() == "base.h") continue;
        std::string text = std::regex_replace(text_of(file), std::regex(R"(\\\n\s*)"), " ");
        std::istringstream lines(text);
        for (std::string each; std::getline(lines, each);) {
            // The counters have a page of their own, those of jobs a table.
            if (each.starts_with("#define ORR_COUNTER_") || each.starts_with("#define ORR_JOB_COUNTER_"))
                continue;
            std::smatch match;
            if (!std::regex_search(each, match, line)) continue;
            const std::string name = match[1];
            if (name.ends_with("_LIST")) continue;  // of what is a structure's members
            // A list of members is one long line, on which an expression for the rest of it would take a
            // frame of stack a character.
            const std::string rest = match.suffix();
            const std::string value = rest.substr(0, rest.find("/*"));
            all.push_back({name, plain(trim(value)), file.filename()});
        }
    }
    return all;
}

// Rows of the manual's tables by the name in their first column; the rest are the other columns.
std::map<std::string, std::vector<std::string>> rows() {
    std::map<std::string, std::vector<std::string>> all;
    std::istringstream lines(manual_text());
    const std::regex name(R"(^\| `(\w+)(\([\w, ]+\))?` \|)");
    for (std::string line; std::getline(lines, line);) {
        std::smatch match;
        if (!std::regex_search(line, match, name)) continue;
        std::vector<std::string> columns;
        std::string column;
        for (std::size_t i = static_cast<std::size_t>(match.length()); i < line.size(); ++i) {
            if (line[i] == '|' && line[i - 1] != '\\') {
                columns.push_back(trim(column));
                column.clear();
            } else {
                column += line[i];
            }
        }
        all[match[1]] = columns;
    }
    return all;
}

TEST(Manual, HasEveryNameWithItsValue) {
    const auto manual = rows();
    const auto names = defines();
    ASSERT_GT(names.size(), 250u);
    for (const Define& each : names) {
        const auto row = manual.find(each.name);
        if (row == manual.end()) {
            ADD_FAILURE() << each.file << ": " << each.name << " is not in docs/hardware.md";
            continue;
        }
        ASSERT_FALSE(row->second.empty()) << each.name;
        EXPECT_EQ(plain(row->second[0]), each.value) << each.name;
    }
}

TEST(Manual, NamesNothingThatDoesNotExist) {
    std::map<std::string, std::string> known;
    for (const Define& each : defines())
        known[each.name] = each.value;
    for (const auto& [name, columns] : rows()) {
        if (name.starts_with("ORR_") || name.starts_with("SOC_")) {
            EXPECT_TRUE(known.contains(name)) << name << " stands in docs/hardware.md and in no header";
        }
    }
    // Also in running text.
    const std::string text = text_of(source("docs/hardware.md"));
    const std::regex mention(R"(\b(ORR|SOC)_[A-Z0-9_]+\b)");
    for (auto at = std::sregex_iterator(text.begin(), text.end(), mention); at != std::sregex_iterator();
         ++at) {
        const std::string name = at->str();
        bool found = known.contains(name);
        // A family, written with its last underscore (ORR_QUEUE_*).
        if (!found && name.back() == '_') {
            for (const auto& [each, value] : known)
                found = found || each.starts_with(name);
        }
        EXPECT_TRUE(found) << name;
    }
}

TEST(Manual, HasWhatIsCountedOfAJob) {
    const std::string text = text_of(source("docs/hardware.md"));
    const auto row = [&](unsigned number, const std::string& name, const std::string& meaning) {
        const std::string wanted = "| " + std::to_string(number) + " | `" + name + "` | " + meaning + " |";
        EXPECT_NE(text.find(wanted), std::string::npos) << wanted;
    };
#define ORR_ROW(number, NAME, meaning) row(number, #NAME, meaning);
    ORR_JOB_COUNTER_LIST(ORR_ROW)
#undef ORR_ROW
}

// Messages name registers by tables of their own.
TEST(Manual, EveryRegisterHasItsNameInMessages) {
    unsigned checked = 0;
    for (const Define& each : defines()) {
        const bool host = each.name.starts_with("ORR_R_");
        if (!host && !each.name.starts_with("SOC_")) continue;
        std::uint64_t offset = std::strtoull(each.value.c_str(), nullptr, 0);
        if (!each.value.starts_with("0x") || each.value.find('(') != std::string::npos) continue;
        std::string name;
        if (host) {
            const bool link = each.name.starts_with("ORR_R_LINK_") && each.name != "ORR_R_LINK_PORTS";
            name = name_of_host_register(link ? ORR_R_LINK(3) + offset : offset);
        } else {
            if (each.name.starts_with("SOC_ENGINE_")) offset += SOC_ENGINE(5);
            if (each.name.starts_with("SOC_KIND_")) offset += SOC_KIND(2);
            if (each.name.starts_with("SOC_SLOT_")) offset += SOC_SLOT(5);
            name = name_of_soc_register(offset);
        }
        EXPECT_TRUE(name == each.name || name.ends_with(" + " + each.name)) << each.name << ": " << name;
        ++checked;
    }
    EXPECT_GT(checked, 100u);
    EXPECT_EQ(name_of_host_register(ORR_R_STATE + 2), "ORR_R_STATE + 0x2");
    EXPECT_EQ(name_of_host_register(ORR_R_COUNTER(7)), "ORR_R_COUNTER(7)");
}

TEST(Manual, HasEveryStructureWithItsSize) {
    const std::string manual = manual_text();
    const std::regex size(R"(ORR_ASSERT_SIZE\(struct (\w+), (\w+)\))");
    unsigned count = 0;
    for (const auto& file : headers()) {
        const std::string text = text_of(file);
        for (auto at = std::sregex_iterator(text.begin(), text.end(), size); at != std::sregex_iterator();
             ++at) {
            ++count;
            std::string bytes = (*at)[2];
            if (bytes == "ORR_DB_PAGE_SIZE") bytes = "4096";
            const std::regex wanted("`struct " + (*at)[1].str() + R"(`(,\s+| \| ))" + bytes + R"(\s+bytes)");
            EXPECT_TRUE(std::regex_search(manual, wanted))
                << "struct " << (*at)[1] << " with its " << bytes << " bytes is not in docs/hardware.md";
        }
    }
    EXPECT_GT(count, 10u);
}

std::optional<std::uint64_t> number(const std::string& text) {
    char* end = nullptr;
    const std::uint64_t value = std::strtoull(text.c_str(), &end, 0);
    if (text.empty() || *end != '\0') return std::nullopt;
    return value;
}

TEST(Manual, HostResetValuesAreThoseOfACard) {
    CardRig rig;
    unsigned checked = 0;
    for (const auto& [name, columns] : rows()) {
        // offset, bits, access, reset, meaning
        if (!name.starts_with("ORR_R_") || columns.size() != 5) continue;
        const auto offset = number(plain(columns[0]));
        const auto reset = number(columns[3]);
        ASSERT_TRUE(offset) << name;
        if (!reset) continue;
        const std::uint64_t at =
            *offset + (name.starts_with("ORR_R_LINK_") && name != "ORR_R_LINK_PORTS" ? ORR_R_LINK(0) : 0);
        const std::uint64_t value = columns[1] == "64" ? rig.read64(at) : rig.read32(at);
        EXPECT_EQ(value, *reset) << name;
        ++checked;
    }
    EXPECT_GT(checked, 20u);
    EXPECT_EQ(rig.counter(ORR_CTR_GUEST_ERRORS), 0u) << "each of them can be read";
}

TEST(Manual, SocResetValuesAreThoseOfACard) {
    CardRig rig;
    // The core's registers as firmware finds them: by a card that has booted nothing yet.
    Card& card = rig.card();
    unsigned checked = 0;
    for (const auto& [name, columns] : rows()) {
        // offset, access, reset, meaning
        if (!name.starts_with("SOC_") || columns.size() != 4) continue;
        const auto offset = number(plain(columns[0]));
        const auto reset = number(columns[2]);
        ASSERT_TRUE(offset) << name;
        if (!reset) continue;
        std::uint64_t base = 0;
        if (name.starts_with("SOC_ENGINE_")) {
            // Registers of ports that share units: of the first behind the copy engines.
            const bool units = columns[1].ends_with("units");
            base = units ? SOC_ENGINE(card.sku().copy_engines) : SOC_ENGINE(0);
        }
        if (name.starts_with("SOC_KIND_")) base = SOC_KIND(ORR_ENGINE_COPY);
        if (name.starts_with("SOC_SLOT_")) base = SOC_SLOT(0);
        std::uint64_t value = 0;
        ASSERT_TRUE(card.core().load(ORR_SOC_BASE + base + *offset, 8, value)) << name;
        EXPECT_EQ(value, *reset) << name;
        ++checked;
    }
    EXPECT_GT(checked, 20u);
    EXPECT_EQ(rig.counter(ORR_CTR_GUEST_ERRORS), 0u) << "each of them can be read";
}

TEST(Manual, EndsInKnownLimits) {
    const std::string manual = text_of(source("docs/hardware.md"));
    const auto last = manual.rfind("\n## ");
    ASSERT_NE(last, std::string::npos);
    EXPECT_NE(manual.find("Known limits", last), std::string::npos);
}

}  // namespace
}  // namespace orrery::emu
