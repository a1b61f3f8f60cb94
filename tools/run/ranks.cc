#include "tools/run/ranks.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <utility>

namespace orrery::run {

Share share_of(unsigned ranks, unsigned vms, unsigned vm) {
    const unsigned each = ranks / vms, more = ranks % vms;
    return {vm * each + std::min(vm, more), each + (vm < more ? 1 : 0)};
}

text::Result<std::vector<std::string>> profile_options(std::string_view text) {
    std::vector<std::string> words;
    std::string word;
    bool begun = false;
    char quote = 0;
    const auto end_word = [&] {
        if (begun) words.push_back(std::exchange(word, {}));
        begun = false;
    };
    for (const char c : text) {
        if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '\'' || c == '"') {
            quote = c;
            begun = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            end_word();
        } else {
            word += c;
            begun = true;
        }
    }
    if (quote != 0) return text::fail("a {} that does not end", quote);
    end_word();
    for (const std::string& one : words) {
        if (one == "-o")
            return text::fail("-o is each rank's own; --profile says where the profile of all goes");
        if (one == "--") return text::fail("-- ends options: the command stands behind orrery-run's own");
    }
    return words;
}

std::string profile_of(unsigned rank) {
    return fmt::format("rank{}.prof", rank);
}

std::string make_token(unsigned vms) {
    std::array<unsigned char, 32> random{};
    if (::getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return {};
    std::string text = vms > 1 ? "orrg1-dir-" : "orrg1-unix-";
    for (std::size_t i = 0; i < random.size(); ++i)
        text += fmt::format("{}{:02x}", i == random.size() / 2 ? "-" : "", random[i]);
    return vms > 1 ? text + "-/share" : text;
}

}  // namespace orrery::run
