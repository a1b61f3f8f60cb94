#include "tools/step/program/debug_info.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

namespace orrery::step {
namespace {

// From the root of the source tree: the build maps its folders to names that begin with a dot.
std::string tidy(std::string_view file) {
    const std::size_t dot = file.rfind("/./");
    if (dot != std::string_view::npos) file.remove_prefix(dot + 3);
    if (file.starts_with("./")) file.remove_prefix(2);
    return std::string(file);
}

bool is_file(std::string_view full, std::string_view wanted) {
    if (!full.ends_with(wanted)) return false;
    return full.size() == wanted.size() || full[full.size() - wanted.size() - 1] == '/';
}

// A line without code stands for the next one that has some, but not for one far away.
constexpr unsigned kNearLines = 10;

// The debug information may come from anybody's recording. No compiler nests this deep, or makes names this
// long; what does is left out.
constexpr unsigned kDeepest = 256;
constexpr std::size_t kLongestName = 16384;

}  // namespace

std::string readable_name(const char* linkage_name) {
    if (std::string_view(linkage_name).size() > kLongestName) return "?";
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> plain(
        abi::__cxa_demangle(linkage_name, nullptr, nullptr, &status), std::free);
    if (status != 0 || !plain) return linkage_name;
    std::string text = plain.get();
    for (const std::string_view noise : {"orrery::fw::", "(anonymous namespace)::"}) {
        for (std::size_t at; (at = text.find(noise)) != std::string::npos;)
            text.erase(at, noise.size());
    }
    if (const std::size_t clone = text.find(" ["); clone != std::string::npos) text.erase(clone);
    // Without arguments, those of templates too.
    std::string name;
    unsigned depth = 0;
    for (const char c : text) {
        const bool of_operator =
            depth == 0 && (name.ends_with("operator") || (c == '<' && name.ends_with("operator<")));
        if ((c == '(' || c == '<') && !of_operator) ++depth;
        if (depth == 0) name += c;
        if ((c == ')' || c == '>') && depth > 0) --depth;
    }
    if (name.ends_with(" const")) name.erase(name.size() - 6);
    // Templates come with what they return.
    const std::size_t space = name.find(' ');
    if (space != std::string::npos && name.find("operator") > space) name.erase(0, space + 1);
    return name;
}

class DebugInfo::Reader {
  public:
    Reader(DebugInfo& out, Dwarf* dwarf) : out_(out), dwarf_(dwarf) {}

    void read() {
        Dwarf_Off offset = 0, next = 0;
        std::size_t header_bytes = 0;
        while (dwarf_nextcu(dwarf_, offset, &next, &header_bytes, nullptr, nullptr, nullptr) == 0) {
            if (dwarf_offdie(dwarf_, offset + header_bytes, &unit_) != nullptr) {
                read_lines();
                (void)descend(unit_, 0);
            }
            offset = next;
        }
        finish();
    }

  private:
    void read_lines() {
        Dwarf_Lines* lines = nullptr;
        std::size_t count = 0;
        if (dwarf_getsrclines(&unit_, &lines, &count) != 0) return;
        for (std::size_t i = 0; i < count; ++i) {
            Dwarf_Line* line = dwarf_onesrcline(lines, i);
            Dwarf_Addr address = 0;
            int number = 0;
            bool end = false, statement = false;
            const char* file = dwarf_linesrc(line, nullptr, nullptr);
            if (dwarf_lineaddr(line, &address) != 0 || dwarf_lineno(line, &number) != 0 || file == nullptr ||
                dwarf_lineendsequence(line, &end) != 0 || dwarf_linebeginstatement(line, &statement) != 0)
                continue;
            // Code that was dropped by the linker keeps its lines, at address 0.
            if (address == 0) continue;
            if (!end && number == 0) continue;  // belongs to no line: the one before goes on
            const auto [found, fresh] =
                file_numbers_.try_emplace(tidy(file), static_cast<unsigned>(out_.files_.size()));
            if (fresh) out_.files_.push_back(found->first);
            out_.lines_.push_back({address, found->second, end ? 0u : static_cast<unsigned>(number),
                                   static_cast<unsigned>(out_.lines_.size()), statement});
        }
    }

    // `depth`: how many functions are around; `level`: how many entries of any kind. False: it is too deep,
    // and the rest of the unit is left out.
    bool descend(Dwarf_Die& parent, unsigned depth, unsigned level = 0) {
        if (level == kDeepest) return false;
        Dwarf_Die child;
        if (dwarf_child(&parent, &child) != 0) return true;
        do {
            bool good = true;
            switch (dwarf_tag(&child)) {
                case DW_TAG_namespace:
                case DW_TAG_lexical_block:
                    good = descend(child, depth, level + 1);
                    break;
                case DW_TAG_subprogram:
                case DW_TAG_inlined_subroutine:
                    if (take(child, depth)) good = descend(child, depth + 1, level + 1);
                    break;
                default:
                    break;
            }
            if (!good) return false;
        } while (dwarf_siblingof(&child, &child) == 0);
        return true;
    }

    // False: it has no code here.
    bool take(Dwarf_Die& die, unsigned depth) {
        Copy copy;
        Dwarf_Addr base = 0, from = 0, to = 0;
        for (std::ptrdiff_t at = 0; (at = dwarf_ranges(&die, at, &base, &from, &to)) > 0;)
            if (from != 0 && from < to) copy.ranges.emplace_back(from, to);
        if (copy.ranges.empty()) return false;
        Dwarf_Addr entry = 0;
        Dwarf_Attribute attribute;
        if (dwarf_attr(&die, DW_AT_entry_pc, &attribute) == nullptr || dwarf_entrypc(&die, &entry) != 0)
            entry = copy.ranges.front().first;
        copy.depth = depth;
        copy.function = function(die);
        out_.functions_[copy.function].entries.push_back(entry);
        if (dwarf_tag(&die) == DW_TAG_inlined_subroutine)
            copy.call = line_of(die, DW_AT_call_file, DW_AT_call_line);
        out_.copies_.push_back(std::move(copy));
        return true;
    }

    // (dwarf_decl_file() does not know that DWARF 5 numbers files from 0.)
    static std::optional<Line> line_of(Dwarf_Die& die, unsigned file_attribute, unsigned line_attribute) {
        Dwarf_Attribute attribute;
        Dwarf_Word file = 0, line = 0;
        Dwarf_Files* files = nullptr;
        std::size_t count = 0;
        Dwarf_Die unit;
        if (dwarf_formudata(dwarf_attr(&die, file_attribute, &attribute), &file) != 0 ||
            dwarf_formudata(dwarf_attr(&die, line_attribute, &attribute), &line) != 0 ||
            dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr ||
            dwarf_getsrcfiles(&unit, &files, &count) != 0)
            return std::nullopt;
        const char* name = dwarf_filesrc(files, file, nullptr, nullptr);
        if (name == nullptr) return std::nullopt;
        return Line{tidy(name), static_cast<unsigned>(line)};
    }

    // Overloads are functions of their own; the copies of a function are one.
    std::size_t function(Dwarf_Die& die) {
        Dwarf_Attribute attribute;
        const char* name = nullptr;
        if (dwarf_attr_integrate(&die, DW_AT_linkage_name, &attribute) != nullptr)
            name = dwarf_formstring(&attribute);
        if (name == nullptr) name = dwarf_diename(&die);
        if (name == nullptr) name = "?";
        const auto [found, fresh] = function_numbers_.try_emplace(name, out_.functions_.size());
        if (fresh) {
            Function made{readable_name(name), std::nullopt, {}};
            Dwarf_Die source = die;
            Dwarf_Die origin;
            if (dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr &&
                dwarf_formref_die(&attribute, &origin) != nullptr)
                source = origin;
            made.declared = line_of(source, DW_AT_decl_file, DW_AT_decl_line);
            out_.functions_.push_back(std::move(made));
        }
        return found->second;
    }

    void finish() {
        // Where a sequence ends and another begins, the beginning counts.
        std::ranges::sort(out_.lines_, [](const Row& a, const Row& b) {
            return std::tuple(a.address, a.line != 0, a.order) < std::tuple(b.address, b.line != 0, b.order);
        });
        std::vector<std::size_t> order(out_.functions_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::sort(order, {}, [&](std::size_t i) { return std::tuple(out_.functions_[i].name, i); });
        std::vector<std::size_t> rank(order.size());
        std::vector<Function> sorted;
        for (const std::size_t i : order) {
            rank[i] = sorted.size();
            auto& entries = sorted.emplace_back(std::move(out_.functions_[i])).entries;
            std::ranges::sort(entries);
            entries.erase(std::ranges::unique(entries).begin(), entries.end());
        }
        out_.functions_ = std::move(sorted);
        for (Copy& copy : out_.copies_)
            copy.function = rank[copy.function];
    }

    DebugInfo& out_;
    Dwarf* dwarf_;
    Dwarf_Die unit_{};
    std::map<std::string, unsigned> file_numbers_;
    std::map<std::string, std::size_t> function_numbers_;  // by linkage name
};

DebugInfo::DebugInfo(Dwarf* dwarf) {
    Reader(*this, dwarf).read();
}

std::optional<Line> DebugInfo::line_at(std::uint64_t address) const {
    auto at = std::ranges::upper_bound(lines_, address, {}, &Row::address);
    if (at == lines_.begin()) return std::nullopt;
    --at;
    if (at->line == 0) return std::nullopt;
    return Line{files_[at->file], at->line};
}

std::vector<const DebugInfo::Copy*> DebugInfo::copies_at(std::uint64_t address) const {
    std::vector<const Copy*> found;
    for (const Copy& copy : copies_) {
        if (std::ranges::any_of(copy.ranges,
                                [&](const auto& r) { return address >= r.first && address < r.second; }))
            found.push_back(&copy);
    }
    std::ranges::sort(found, {}, &Copy::depth);
    return found;
}

std::vector<Frame> DebugInfo::frames(std::uint64_t address) const {
    const auto found = copies_at(address);
    std::vector<Frame> frames;
    std::optional<Line> line = line_at(address);
    for (std::size_t i = found.size(); i-- > 0;) {
        frames.push_back({functions_[found[i]->function].name, line});
        line = found[i]->call;
    }
    return frames;
}

std::vector<std::pair<std::uint64_t, std::uint64_t>> DebugInfo::inlined_at(std::uint64_t address) const {
    const auto found = copies_at(address);
    if (found.size() < 2) return {};
    return found.back()->ranges;
}

std::vector<std::uint64_t> DebugInfo::addresses_of_line(std::string_view file, unsigned line) const {
    unsigned best = ~0u;
    for (const Row& row : lines_)
        if (row.line >= line && row.line < best && is_file(files_[row.file], file)) best = row.line;
    if (best == ~0u || best - line > kNearLines) return {};
    std::set<std::ptrdiff_t> known;  // copies
    std::vector<std::uint64_t> addresses;
    for (const bool statements : {true, false}) {
        for (const Row& row : lines_) {
            if (row.line != best || row.statement != statements || !is_file(files_[row.file], file)) continue;
            const auto around = copies_at(row.address);
            if (known.insert(around.empty() ? -1 : around.back() - copies_.data()).second)
                addresses.push_back(row.address);
        }
        if (!addresses.empty()) break;
    }
    std::ranges::sort(addresses);
    return addresses;
}

}  // namespace orrery::step
