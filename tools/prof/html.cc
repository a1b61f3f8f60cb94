// A profile as one page, which a browser shows without a network: the page that the build has made of
// tools/prof/page, with the profile's data in it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include "tools/prof/page_data.h"
#include "tools/prof/show.h"

asm(".section .rodata\n"
    "orrery_prof_page_begin:\n"
    ".incbin \"" ORRERY_PROF_PAGE
    "\"\n"
    "orrery_prof_page_end:\n"
    ".previous\n");

// NOLINTBEGIN(readability-identifier-naming): labels of the assembler
extern const char page_begin_label[] asm("orrery_prof_page_begin");
extern const char page_end_label[] asm("orrery_prof_page_end");
// NOLINTEND(readability-identifier-naming)

namespace orrery::prof {
namespace {

// The places for the data, in page.html.
constexpr std::string_view kMetaPlace = "@META@", kColumnsPlace = "@COLUMNS@";

std::string base64(std::string_view bytes) {
    static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string text;
    text.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t word = 0;
        for (std::size_t j = i; j < i + 3; ++j)
            word = word << 8 | (j < bytes.size() ? static_cast<unsigned char>(bytes[j]) : 0U);
        for (std::size_t j = 0; j < 4; ++j)
            text += i + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63];
    }
    return text;
}

// JSON that cannot end the element it is in: outside of texts it has no '<'.
std::string inline_json(const nlohmann::ordered_json& json) {
    std::string text;
    for (const char c : json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)) {
        if (c == '<') {
            text += "\\u003c";
        } else {
            text += c;
        }
    }
    return text;
}

}  // namespace

// Not whatever a profile of somebody else's asks for: the page may be sent to him.
static bool is_source(std::string_view name) {
    constexpr std::array<std::string_view, 12> kEndings{".c",   ".cc",  ".cpp", ".cxx", ".h", ".hh",
                                                        ".hpp", ".hxx", ".inc", ".ipp", ".s", ".S"};
    return !name.starts_with('.') && name.find('\0') == std::string_view::npos &&
           std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
}

std::set<std::string> sampled_sources(const Model& model) {
    std::set<std::string> names;
    for (const Activity& activity : model.processes) {
        for (const PcSampleRecord& sample : activity.process->pc_samples) {
            const std::string_view line = activity.text(sample.source);
            const std::string_view file = line.substr(0, line.rfind(':'));
            const std::string_view name = file.substr(file.rfind('/') + 1);
            if (is_source(name)) names.emplace(name);
        }
    }
    return names;
}

std::string html_page(const Model& model, const std::string& title,
                      const std::map<std::string, std::string>& sources) {
    PageData data = page_data(model);
    data.meta["title"] = title;
    data.meta["sources"] = nlohmann::ordered_json::array();
    for (const auto& [name, text] : sources)
        data.meta["sources"].push_back({{"name", name}, {"text", text}});
    const std::string_view page(page_begin_label,
                                static_cast<std::size_t>(page_end_label - page_begin_label));
    const std::size_t meta = page.find(kMetaPlace), columns = page.find(kColumnsPlace, meta);
    std::string text(page.substr(0, meta));
    text += inline_json(data.meta);
    text += page.substr(meta + kMetaPlace.size(), columns - meta - kMetaPlace.size());
    text += base64(data.columns);
    text += page.substr(columns + kColumnsPlace.size());
    return text;
}

}  // namespace orrery::prof
