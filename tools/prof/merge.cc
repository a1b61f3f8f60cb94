// Several profiles as one: their parts, one behind the other.
#include <fmt/format.h>

#include <cstring>

#include "tools/prof/profile.h"
#include "tools/prof/record.h"
#include "tools/text/files.h"

namespace orrery::prof {

text::Result<void> merge(const std::vector<std::string>& files, const std::string& output) {
    FileHead head{{}, kFormatMajor, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    std::string all(reinterpret_cast<const char*>(&head), sizeof head);
    for (const std::string& file : files) {
        const auto bytes = text::read_file(file);
        if (!bytes) return std::unexpected(bytes.error());
        const std::string_view whole(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        // What is damaged is told here, with the file's name, and not of the sum.
        if (const auto good = parse_profile(whole); !good)
            return text::fail("{}: {}", file, good.error().text);
        all += whole.substr(sizeof head);
    }
    return text::write_file(output, all);
}

}  // namespace orrery::prof
