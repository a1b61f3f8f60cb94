// Several profiles as one: their parts, one behind the other.
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <tuple>

#include "tools/prof/profile.h"
#include "tools/prof/record.h"
#include "tools/text/files.h"
#include "tools/text/progress.h"

namespace orrery::prof {
namespace {

// Which process of which boot a part is of. Who executes another program begins a new one.
using Whose = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::string>;

// Of a profile that was read and found good.
std::vector<Whose> parts_of(std::string_view profile) {
    std::vector<Whose> all;
    for (std::size_t at = sizeof(FileHead); at < profile.size();) {
        PartHead part{};
        std::memcpy(&part, profile.data() + at, sizeof part);
        all.emplace_back(part.machine, part.pid, part.begin_ns,
                         std::string(part.command, ::strnlen(part.command, sizeof part.command)));
        at += sizeof part + part.bytes;
    }
    return all;
}

}  // namespace

text::Result<void> merge(const std::vector<std::string>& files, const std::string& output) {
    FileHead head{{}, kFormatMajor, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    std::string all(reinterpret_cast<const char*>(&head), sizeof head);
    std::map<Whose, std::string> known;
    text::Progress progress(fmt::format("merging {} profiles", files.size()));
    for (std::size_t i = 0; i < files.size(); ++i) {
        const std::string& file = files[i];
        const auto bytes = text::read_file(file);
        if (!bytes) return std::unexpected(bytes.error());
        const std::string_view whole(reinterpret_cast<const char*>(bytes->data()), bytes->size());
        // What is damaged is told here, with the file's name, and not of the sum.
        const auto of_all = [&](double of_file) {
            progress.at((static_cast<double>(i) + of_file) / static_cast<double>(files.size()));
        };
        if (const auto good = parse_profile(whole, of_all); !good)
            return text::fail("{}: {}", file, good.error().text);
        for (const Whose& part : parts_of(whole)) {
            const auto& [machine, pid, begin_ns, command] = part;
            if (machine == 0) continue;  // not known: others may be alike
            const auto [first, is_new] = known.try_emplace(part, file);
            if (is_new) continue;
            return text::fail("{} has process {} ({}) that {}: it would count twice", file, pid, command,
                              first->second == file ? "it has already" : first->second + " has as well");
        }
        all += whole.substr(sizeof head);
    }
    return text::write_file(output, all);
}

}  // namespace orrery::prof
