#include "tools/apigen/contract.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

namespace orrery::apigen {
namespace {

// A struct whose members have all types that a contract names, so that clang prints them in canonical form.
constexpr const char* kProbe = "orrery_apigen_probe";

std::string probe(const Headers& headers, const Macros& macros) {
    std::string members;
    for (const Function& function : headers.functions)
        members += fmt::format("__typeof__(&{0}) {0};\n", function.name);
    for (const Enum& one : headers.enums) {
        if (one.name.empty()) continue;
        members += fmt::format("char enum_{0}[sizeof(enum {0})];\n", one.name);
    }
    for (const Typedef& one : headers.typedefs) {
        if (one.tag.empty()) members += fmt::format("{0} {0};\n", one.name);
    }
    for (const auto& [name, text] : macros)
        members += fmt::format("__typeof__({0}) constant_{0};\n", name);
    return fmt::format("struct {} {{\n{}}};", kProbe, members);
}

struct Member {
    std::string offset, type, name;
};

struct Record {
    std::string kind, size;
    std::vector<Member> members;
};

// All with a tag that clang has laid out: "  offset | struct NAME", "  offset |   type name" for each member,
// with the members of members further to the right, and "| [sizeof=12, align=4]".
std::map<std::string, Record> read_layouts(const std::string& dump) {
    const std::regex head(R"( *0 \| (struct|union) (\w+))"), member(R"( *([\d:-]+) \|   (\S.*) (\w+))"),
        end(R"( *\| \[sizeof=(\d+), align=(\d+).*)");
    std::map<std::string, Record> records;
    Record* record = nullptr;
    std::istringstream lines(dump);
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
        if (text.starts_with("*** ")) {
            record = nullptr;  // the next one, which may be without a tag
        } else if (std::regex_match(text, found, head)) {
            record = &records[found[2]];
            record->kind = found[1];
        } else if (record == nullptr) {
            continue;
        } else if (std::regex_match(text, found, member)) {
            record->members.push_back({found[1], found[2], found[3]});
        } else if (std::regex_match(text, found, end)) {
            record->size = fmt::format("{} bytes, alignment {}", found[1].str(), found[2].str());
        }
    }
    return records;
}

// Of an array of bytes: "char[4]".
std::string bytes_of(const std::string& type) {
    const auto from = type.find('[') + 1;
    return type.substr(from, type.find(']') - from) + " bytes";
}

// Whether it is an integer type.
bool can_be_evaluated(const std::string& type) {
    static const std::regex integer(R"(_Bool|(signed |unsigned )?(char|short|int|long|long long))");
    return std::regex_match(type, integer);
}

// Numbers by value, so that they may be written in another way; all else as it is written.
std::vector<Item> constants(const std::string& folder, const Macros& macros,
                            const std::map<std::string, std::string>& types) {
    std::vector<std::string> numbers;
    for (const auto& [name, text] : macros) {
        if (can_be_evaluated(types.at("constant_" + name))) numbers.push_back(name);
    }
    const auto values = evaluate(folder, numbers);
    std::vector<Item> items;
    for (const auto& [name, text] : macros) {
        const auto value = values.find(name);
        items.push_back({"constant", name,
                         fmt::format("{} {}", types.at("constant_" + name),
                                     value == values.end() ? text : value->second)});
    }
    return items;
}

// "4 bytes, unsigned", as compilers choose it.
std::string enum_type(const Enum& one, const std::string& bytes) {
    const bool negative =
        std::ranges::any_of(one.enumerators, [](const Enumerator& each) { return each.value < 0; });
    return bytes + (negative ? ", signed" : ", unsigned");
}

}  // namespace

std::string line(const Item& item) {
    return fmt::format("{} {} = {}", item.kind, item.name, item.value);
}

std::vector<Item> read_contract(const std::string& folder, const Headers& headers, Macros macros) {
    std::erase_if(macros, [](const auto& macro) { return !is_constant(macro.first, macro.second); });
    const auto records = read_layouts(clang(folder,
                                            "-fsyntax-only -Xclang -fdump-record-layouts-complete "
                                            "-Xclang -fdump-record-layouts-canonical",
                                            probe(headers, macros)));
    std::map<std::string, std::string> types;  // of the probe's members
    for (const Member& member : records.at(kProbe).members)
        types[member.name] = member.type;
    std::vector<Item> contract;
    for (const Function& function : headers.functions) {
        std::string type = types.at(function.name);
        contract.push_back({"function", function.name, type.erase(type.find("(*)"), 3)});
    }
    for (const std::string& name : headers.records) {
        const auto found = records.find(name);
        if (found == records.end()) throw Problem("clang does not tell the layout of " + name);
        contract.push_back({found->second.kind, name, found->second.size});
        for (const Member& member : found->second.members) {
            contract.push_back({"member", fmt::format("{}.{}", name, member.name),
                                fmt::format("{} at {}", member.type, member.offset)});
        }
    }
    for (const Enum& one : headers.enums) {
        if (!one.name.empty())
            contract.push_back({"enum", one.name, enum_type(one, bytes_of(types.at("enum_" + one.name)))});
        for (const Enumerator& enumerator : one.enumerators)
            contract.push_back({"enumerator", enumerator.name, std::to_string(enumerator.value)});
    }
    for (const Typedef& one : headers.typedefs)
        contract.push_back({"typedef", one.name, one.tag.empty() ? types.at(one.name) : one.tag});
    const auto values = constants(folder, macros, types);
    contract.insert(contract.end(), values.begin(), values.end());
    return contract;
}

}  // namespace orrery::apigen
