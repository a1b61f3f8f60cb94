#include "umd/runtime/isa.h"

#include <algorithm>
#include <charconv>

#include "umd/runtime/bytes.h"

namespace orrery::umd {
namespace {

struct Implied {
    std::string_view extension;
    std::string_view by;
};
// Compilers list all of these beside what implies them; cards list what implies.
constexpr Implied kImplied[] = {
    {"zmmul", "m"},
    {"zaamo", "a"},
    {"zalrsc", "a"},
    {"zicsr", "f"},
    {"f", "d"},
    {"zca", "c"},
    {"zcd", "c"},
    {"zve64d", "v"},
    {"d", "zve64d"},
    {"zve64f", "zve64d"},
    {"zve64x", "zve64f"},
    {"zve32f", "zve64f"},
    {"zve32x", "zve32f"},
    {"zve32x", "zve64x"},
    {"zvfhmin", "zvfh"},
    {"zve32f", "zvfhmin"},
    {"zvfbfmin", "zvfbfwma"},
};

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_letter(char c) {
    return c >= 'a' && c <= 'z';
}

// "2p1" behind an extension's name, if it is there.
std::size_t version_at(std::string_view text) {
    std::size_t at = 0;
    while (at < text.size() && is_digit(text[at]))
        ++at;
    if (at == 0 || at == text.size() || text[at] != 'p') return 0;
    const std::size_t minor = ++at;
    while (at < text.size() && is_digit(text[at]))
        ++at;
    return at == minor ? 0 : at;
}

// The N of "zvlNb"; 0: it is none.
std::uint32_t vlen_of(std::string_view extension) {
    if (!extension.starts_with("zvl") || !extension.ends_with("b")) return 0;
    const std::string_view number = extension.substr(3, extension.size() - 4);
    std::uint32_t bits = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), bits);
    return error == std::errc{} && end == number.data() + number.size() && bits <= 65536 ? bits : 0;
}

// Of an extension with more letters, "zvl512b1p0": where its version begins.
std::size_t end_of_name(std::string_view word) {
    for (std::size_t at = 1; at < word.size(); ++at) {
        if (is_digit(word[at]) && !is_digit(word[at - 1]) && version_at(word.substr(at)) == word.size() - at)
            return at;
    }
    return word.size();
}

}  // namespace

void Isa::add(std::string extension) {
    if (!extensions_.insert(extension).second) return;
    if (const std::uint32_t bits = vlen_of(extension)) vlen_ = std::max(vlen_, bits);
    if (extension == "v") vlen_ = std::max(vlen_, 128u);
    for (const Implied& each : kImplied) {
        if (each.by == extension) add(std::string(each.extension));
    }
}

Result<Isa> Isa::parse(std::string_view text) {
    constexpr std::size_t kMost = 4096;
    const auto bad = [&] {
        return fail(orrErrorInvalidImage, "'{}' is no ISA of a 64-bit RISC-V core",
                    printable(text.substr(0, 80)));
    };
    if (text.size() > kMost || !text.starts_with("rv64") || text.size() == 4) return bad();
    Isa isa;
    isa.text_ = "rv64";
    std::string_view rest = text.substr(4);
    // Letters, each perhaps with a version, then words behind underscores; a compiler puts one before each
    // letter.
    bool word = false;
    while (!rest.empty()) {
        if (rest.front() == '_') {
            word = true;
            rest.remove_prefix(1);
            continue;
        }
        if (!is_letter(rest.front())) return bad();
        const std::string_view whole = rest.substr(0, rest.find('_'));
        const bool long_name = whole.size() > 1 && is_letter(whole[1]) &&
                               (whole.front() == 'z' || whole.front() == 's' || whole.front() == 'x');
        if (long_name) {
            if (!std::ranges::all_of(whole, [](char c) { return is_letter(c) || is_digit(c); })) return bad();
            const std::string_view name = whole.substr(0, end_of_name(whole));
            isa.text_ += fmt::format("_{}", name);
            isa.add(std::string(name));
            rest.remove_prefix(whole.size());
        } else {
            isa.text_ += rest.front();
            if (rest.front() == 'g') {
                for (const char* each : {"i", "m", "a", "d", "zifencei"})
                    isa.add(each);
            } else {
                isa.add(std::string(1, rest.front()));
            }
            rest.remove_prefix(1);
            rest.remove_prefix(version_at(rest));
        }
        word = false;
    }
    if (word || isa.extensions_.empty()) return bad();
    return isa;
}

const Isa& Isa::largest() {
    static const Isa isa =
        *parse("rv64imafdcv_zicntr_zicsr_zifencei_zfbfmin_zfhmin_zvfbfmin_zvfbfwma_zvfh_zvl4096b");
    return isa;
}

const Isa& Isa::first() {
    static const Isa isa = *parse("rv64imafdc_zicntr_zicsr_zifencei");
    return isa;
}

std::string Isa::lacking(const Isa& has) const {
    std::string all;
    const auto tell = [&](const std::string& what) { all += (all.empty() ? "" : ", ") + what; };
    const bool no_vectors = !has.extensions_.contains("zve32x") && extensions_.contains("zve32x");
    // Of vectors nobody wants to read the parts.
    if (no_vectors) {
        tell(fmt::format("{} with VLEN >= {}", extensions_.contains("v") ? "v" : "vectors",
                         std::max(vlen_, 32u)));
    } else if (vlen_ > has.vlen_) {
        tell(fmt::format("VLEN >= {}", vlen_));
    }
    for (const std::string& extension : extensions_) {
        if (has.extensions_.contains(extension) || vlen_of(extension) != 0) continue;
        if (no_vectors && (extension == "v" || extension.starts_with("zve"))) continue;
        tell(extension);
    }
    return all;
}

}  // namespace orrery::umd
