#include "tools/apigen/releases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sodium.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

namespace orrery::apigen {
namespace {

namespace fs = std::filesystem;
using Key = std::pair<std::string, std::string>;

Key key(const Item& item) {
    return {item.kind, item.name};
}

std::pair<unsigned long, unsigned long> numbers(const std::string& version) {
    std::pair<unsigned long, unsigned long> found;
    const char* const end = version.data() + version.size();
    const auto [dot, first] = std::from_chars(version.data(), end, found.first);
    if (first == std::errc{} && dot != end && *dot == '.') {
        const auto [rest, second] = std::from_chars(dot + 1, end, found.second);
        if (second == std::errc{} && rest == end) return found;
    }
    throw Problem(version + " is no version of a release: MAJOR.MINOR");
}

// "released SHA256", the last line of a list that is out.
constexpr const char* kLock = "released ";

std::string read_text(const fs::path& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) throw Problem(path.string() + " cannot be read");
    return text.str();
}

std::string lock_of(const std::string& text) {
    std::array<unsigned char, crypto_hash_sha256_BYTES> hash{};
    crypto_hash_sha256(hash.data(), reinterpret_cast<const unsigned char*>(text.data()), text.size());
    return fmt::format("{}{:02x}\n", kLock, fmt::join(hash, ""));
}

// Whether there is one; it has to be right.
bool is_locked(const fs::path& path, const std::string& text) {
    const auto at = text.find(std::string("\n") + kLock);
    if (at == std::string::npos) return false;
    if (text.substr(at + 1) != lock_of(text.substr(0, at + 1))) {
        throw Problem(fmt::format(
            "{0}: {1} is out, and its list is not as it was then, on which programs rely: put it back (git "
            "checkout {0}) and list what is new for a later version",
            path.string(), path.filename().string()));
    }
    return true;
}

Release read_release(const fs::path& path) {
    static const std::regex item(R"((\w+) ([\w.]+) = (.+))");
    Release release{path.filename(), {}, false};
    (void)numbers(release.version);
    const std::string all = read_text(path);
    release.out = is_locked(path, all);
    std::istringstream lines(all);
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
        if (text.empty() || text.starts_with('#') || text.starts_with(kLock)) continue;
        if (!std::regex_match(text, found, item))
            throw Problem(fmt::format("{}: \"{}\" is not KIND NAME = VALUE", path.string(), text));
        release.items.push_back({found[1], found[2], found[3]});
    }
    return release;
}

// "12 bytes, alignment 4" of a struct.
struct Layout {
    unsigned long bytes = 0;
    std::string rest;
};

Layout layout_of(const Item& record) {
    Layout layout;
    const char* const end = record.value.data() + record.value.size();
    layout.rest.assign(std::from_chars(record.value.data(), end, layout.bytes).ptr, end);
    return layout;
}

// "unsigned int at 4"
unsigned long offset_of(const Item& member) {
    return std::stoul(member.value.substr(member.value.rfind(' ')));
}

std::string instead_of(const std::string& kind) {
    if (kind == "member" || kind == "struct" || kind == "union")
        return "put it back, and add members at the end of a struct that starts with its size, or a new "
               "struct";
    return "put it back, and add " + std::string(kind == "enum" || kind == "enumerator" ? "an " : "a ") +
           kind + " with a new name";
}

// Structs that it has as a whole, not behind a pointer. An array behind a pointer counts too: its stride is
// the struct's size.
std::set<std::string> by_value(const Item& item) {
    static const std::regex record(R"(struct (\w+)(?!\w)(?!( const)? \*))"), name(R"(struct \w+)");
    std::set<std::string> found;
    const bool lines = item.kind == "function" || item.kind == "member" || item.kind == "typedef";
    if (!lines || (item.kind == "typedef" && std::regex_match(item.value, name))) return found;
    for (std::sregex_iterator at(item.value.begin(), item.value.end(), record), end; at != end; ++at)
        found.insert((*at)[1]);
    return found;
}

// Compares release by release, oldest first, with the contract of today.
class Comparison {
  public:
    Comparison(const std::vector<Item>& contract, std::string folder)
        : contract_(contract), folder_(std::move(folder)) {
        for (const Item& item : contract)
            today_.emplace(key(item), &item);
    }

    void add(const Release& release) {
        list_ = folder_ + "/" + release.version;
        version_ = release.version;
        for (const Item& item : release.items) {
            if (!listed_.insert(key(item)).second && item.kind != "struct")
                problem("{} {} is listed twice", item.kind, item.name);
            if (item.kind == "struct") check_growth(item);
        }
        for (const Item& item : release.items) {
            if (item.kind == "struct") sizes_[item.name] = item.value;
            for (const std::string& record : by_value(item))
                by_value_.try_emplace(record, item.kind + " " + item.name);
        }
        for (const Item& item : release.items) {
            const auto found = today_.find(key(item));
            if (found == today_.end()) {
                problem("{}: no header has it now; programs use it, so put it back", line(item));
            } else if (item.kind == "struct") {
                compare_struct(item, *found->second);
            } else if (item.value != found->second->value) {
                changed(item, *found->second);
            }
        }
    }

    std::string problems() {
        for (const Item& item : contract_) {
            if (item.kind == "struct") check_growth(item);
        }
        return problems_;
    }

  private:
    template <typename... Values>
    void problem(fmt::format_string<Values...> text, Values&&... values) {
        problems_ += list_ + ": " + fmt::format(text, std::forward<Values>(values)...) + "\n";
    }

    void changed(const Item& was, const Item& is) {
        problem("{} {} was \"{}\" and is \"{}\" now; programs of {} use what was: {}", was.kind, was.name,
                was.value, is.value, version_, instead_of(was.kind));
    }

    // Of a struct that the lists so far have.
    void check_growth(const Item& now) {
        const auto user = by_value_.find(now.name);
        const auto size = sizes_.find(now.name);
        if (user == by_value_.end() || size == sizes_.end()) return;
        if (layout_of(now).bytes <= layout_of({{}, {}, size->second}).bytes) return;
        problem(
            "struct {} was \"{}\" and is \"{}\" now: it never grows, as {} has it by value, where "
            "nobody knows its size: add a new struct",
            now.name, size->second, now.value, user->second);
    }

    void compare_struct(const Item& was, const Item& is) {
        const bool sized = starts_with_size(was.name);
        const Layout old = layout_of(was), now = layout_of(is);
        const bool good = sized ? now.bytes >= old.bytes && now.rest == old.rest : is.value == was.value;
        if (!good) changed(was, is);
        for (const Item& item : contract_) {
            const bool added = item.kind == "member" && item.name.starts_with(was.name + ".") &&
                               !listed_.contains(key(item));
            if (added && !sized) {
                problem(
                    "{}: it is new in a struct that does not start with its size, so the library cannot "
                    "tell who has it: add a new struct",
                    line(item));
            } else if (added && offset_of(item) < old.bytes) {
                problem(
                    "{}: it is new within the {} bytes of {}, where programs leave anything: add it "
                    "behind them",
                    line(item), old.bytes, version_);
            }
        }
    }

    // As it was released.
    bool starts_with_size(const std::string& record) const {
        const auto size = today_.find({"member", record + ".size"});
        return listed_.contains({"member", record + ".size"}) && size != today_.end() &&
               size->second->value == "unsigned long at 0";
    }

    const std::vector<Item>& contract_;
    const std::string folder_;
    std::map<Key, const Item*> today_;
    std::set<Key> listed_;
    std::map<std::string, std::string> sizes_;     // of structs, as last listed
    std::map<std::string, std::string> by_value_;  // struct, and what has it
    std::string list_, version_, problems_;
};

}  // namespace

std::vector<Release> read_releases(const std::string& folder) {
    std::vector<Release> releases;
    for (const auto& entry : fs::directory_iterator(folder))
        releases.push_back(read_release(entry.path()));
    std::ranges::sort(releases, {}, [](const Release& release) { return numbers(release.version); });
    return releases;
}

void check_releases(const std::vector<Release>& releases, const std::vector<Item>& contract,
                    const std::string& folder) {
    Comparison comparison(contract, folder);
    for (const Release& release : releases)
        comparison.add(release);
    if (const std::string problems = comparison.problems(); !problems.empty()) throw Problem(problems);
}

void check_version(const std::string& listed, const std::string& headers) {
    if (numbers(listed) <= numbers(headers)) return;
    throw Problem(
        fmt::format("the headers are of {}, so nothing is in the list of {} yet: first raise "
                    "ORR_VERSION_MINOR in orrery/base.h and the version in CMakeLists.txt",
                    headers, listed));
}

void check_locks(const std::vector<Release>& releases, const std::string& headers,
                 const std::string& folder) {
    for (const Release& release : releases) {
        if (release.out || numbers(release.version) >= numbers(headers)) continue;
        throw Problem(fmt::format(
            "{0}/{1}: the headers are of {2}, so {1} is out: first lock its list by `orrery-apigen "
            "release {1} {0}`",
            folder, release.version, headers));
    }
}

void lock_release(const std::string& folder, const std::string& version) {
    const fs::path path = fs::path(folder) / version;
    const Release release = read_release(path);
    if (release.out) throw Problem(fmt::format("{} is out since its list was locked", version));
    std::ofstream file(path, std::ios::app);
    file << lock_of(read_text(path)) << std::flush;
    if (!file) throw Problem(path.string() + " cannot be written");
}

std::vector<Item> unlisted(const std::vector<Release>& releases, const std::vector<Item>& contract) {
    std::map<Key, std::string> listed;
    for (const Release& release : releases) {
        for (const Item& item : release.items)
            listed[key(item)] = item.value;
    }
    std::vector<Item> missing;
    std::ranges::copy_if(contract, std::back_inserter(missing), [&](const Item& item) {
        const auto found = listed.find(key(item));
        return found == listed.end() || found->second != item.value;
    });
    return missing;
}

void add_to_release(const std::string& folder, const std::string& version, const std::vector<Item>& items) {
    for (const Release& release : read_releases(folder)) {
        if (numbers(release.version) > numbers(version)) {
            throw Problem(
                fmt::format("{} was followed by {}, which brings what is new: name that one or a later",
                            version, release.version));
        }
        if (release.out && release.version == version) {
            throw Problem(fmt::format(
                "{} is out, so programs may have its library without what is new: raise ORR_VERSION_MINOR in "
                "orrery/base.h and the version in CMakeLists.txt, and list this for that version",
                version));
        }
    }
    const fs::path path = fs::path(folder) / version;
    std::string text;
    if (!fs::exists(path))
        text = fmt::format("# What {} brought. Programs use it: no line ever changes, goes or moves.\n",
                           version);
    const std::string* before = nullptr;
    for (const Item& item : items) {
        const bool part = item.kind == "member" || item.kind == "enumerator";
        if (!part && (before == nullptr || *before != item.kind)) text += "\n";
        before = &item.kind;
        text += line(item) + "\n";
    }
    std::ofstream file(path, std::ios::app);
    file << text << std::flush;
    if (!file) throw Problem(path.string() + " cannot be written");
}

std::vector<Function> in_order_of(const std::vector<Release>& releases,
                                  const std::vector<Function>& functions) {
    std::vector<Function> ordered;
    for (const Release& release : releases) {
        for (const Item& item : release.items) {
            if (item.kind == "function")
                ordered.push_back(*std::ranges::find(functions, item.name, &Function::name));
        }
    }
    return ordered;
}

}  // namespace orrery::apigen
