// What orrery-prof's commands make of a profile, which is anybody's file: it is refused, or all of them have
// an answer, whose length is in proportion.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/prof/compare.h"
#include "tools/prof/explain.h"
#include "tools/prof/model.h"
#include "tools/prof/profile.h"
#include "tools/prof/show.h"
#include "tools/prof/tables.h"

namespace {

using namespace orrery;
using namespace orrery::prof;

// The page itself, without data, has less than a million bytes.
constexpr std::size_t kAtLeast = std::size_t{4} << 20, kOfEachByte = 4'096;

struct Rows : TableSink {
    text::Result<void> begin(const Table& /*table*/) override { return {}; }
    text::Result<void> row(std::span<const Value> values) override {
        count += values.size();
        return {};
    }
    text::Result<void> end() override { return {}; }
    std::size_t count = 0;
};

// Records as a file has them, but for heads that fit: bytes of anybody's would hardly get there.
std::string framed(std::string_view bytes) {
    FileHead head{{}, kFormatMajor, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    PartHead part{};
    part.magic = kPartMagic;
    part.pid = 7;
    part.bytes = bytes.size() / 8 * 8;
    std::string all(reinterpret_cast<const char*>(&head), sizeof head);
    all.append(reinterpret_cast<const char*>(&part), sizeof part);
    return all.append(bytes.substr(0, part.bytes));
}

void look_at(std::string_view bytes) {
    auto profile = parse_profile(bytes);
    if (!profile) return;
    const Model model(*std::move(profile));
    const auto take = [&](const std::string& made) {
        if (made.size() > kAtLeast + kOfEachByte * bytes.size()) std::abort();
    };
    take(stat_text(model));
    take(report_text(model, 10));
    take(report_json(model, 10));
    take(instructions_text(model));
    take(explain_text(model));
    take(explain_json(model));
    take(compare_text({&model, 1}, {&model, 1}, 10));
    take(compare_json({&model, 1}, {&model, 1}));
    take(chrome_json(model));
    take(perfetto_trace(model));
    take(html_page(model, "any"));
    Rows rows;
    if (!write_tables(model, rows) || rows.count > kOfEachByte * bytes.size()) std::abort();
}

// What is found good of records is what a reader takes.
void look_at_part(std::string_view records) {
    PartHead part{};
    part.magic = kPartMagic;
    PartCheck check(part, 0);
    part.bytes = check.look(records, false);
    FileHead head{{}, kFormatMajor, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    std::string all(reinterpret_cast<const char*>(&head), sizeof head);
    all.append(reinterpret_cast<const char*>(&part), sizeof part);
    if (!parse_profile(all.append(records.substr(0, part.bytes)))) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 64 << 10) return 0;
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    look_at(bytes);
    look_at(framed(bytes));
    look_at_part(bytes);
    return 0;
}
