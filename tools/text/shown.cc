#include "tools/text/shown.h"

namespace orrery::text {
namespace {

constexpr char kEscape = '\x1b';

// The bytes of a colour at the beginning of `text`, "\x1b[1;31m"; 0: there is none.
std::size_t colour_at(std::string_view text) {
    if (!text.starts_with("\x1b[")) return 0;
    const std::size_t end = text.find_first_not_of("0123456789;", 2);
    return end != std::string_view::npos && text[end] == 'm' ? end + 1 : 0;
}

}  // namespace

std::string shown(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    while (!text.empty()) {
        const auto byte = static_cast<unsigned char>(text.front());
        std::size_t taken = 1;
        if (const std::size_t colour = byte == kEscape ? colour_at(text) : 0; colour != 0) {
            out += text.substr(0, taken = colour);
        } else if (byte == 0xc2 && text.size() > 1 && static_cast<unsigned char>(text[1]) < 0xa0) {
            out += '?';  // U+0080 to U+009F in UTF-8
            taken = 2;
        } else {
            const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f;
            out += control ? '?' : text.front();
        }
        text.remove_prefix(taken);
    }
    return out;
}

}  // namespace orrery::text
