#include "tools/apigen/contract.h"

#include <fmt/format.h>

#include <map>
#include <regex>
#include <sstream>

namespace orrery::apigen {
namespace {

// A struct whose members have all types that a contract names, so that clang prints them in canonical form.
constexpr const char* kProbe = "orrery_apigen_probe";

std::string probe(const Headers& headers) {
    std::string members;
    for (const Function& function : headers.functions)
        members += fmt::format("__typeof__(&{0}) {0}; ", function.name);
    for (const Enum& one : headers.enums) {
        if (one.name.empty()) continue;
        members += fmt::format("char enum_{0}[sizeof(enum {0})]; ", one.name);
    }
    for (const std::string& name : headers.typedefs)
        members += fmt::format("{0} {0}; ", name);
    return fmt::format("struct {} {{ {} }};", kProbe, members);
}

struct Member {
    std::string offset, type, name;
};

struct Record {
    std::string kind, name, size;
    std::vector<Member> members;
};

// All that clang has laid out: "  offset | struct NAME", "  offset |   type name" for each member, with the
// members of members further to the right, and "| [sizeof=12, align=4]".
std::vector<Record> read_layouts(const std::string& dump) {
    const std::regex head(R"( *0 \| (struct|union) (\w+))"), member(R"( *([\d:-]+) \|   (\S.*) (\w+))"),
        unnamed(R"( *[\d:-]+ \|   \S.*\((unnamed|anonymous) .*)"),
        end(R"( *\| \[sizeof=(\d+), align=(\d+).*)");
    std::vector<Record> records;
    std::istringstream lines(dump);
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
        if (std::regex_match(text, found, head)) {
            records.push_back({found[1], found[2], {}, {}});
        } else if (records.empty()) {
            continue;
        } else if (std::regex_match(text, unnamed) && is_api_name(records.back().name)) {
            throw Problem(records.back().name +
                          " has a member without a name, or of a type without one: "
                          "give it one, as contracts know members by name");
        } else if (std::regex_match(text, found, member)) {
            records.back().members.push_back({found[1], found[2], found[3]});
        } else if (std::regex_match(text, found, end)) {
            records.back().size = fmt::format("{} bytes, alignment {}", found[1].str(), found[2].str());
        }
    }
    return records;
}

// Of an array of bytes: "char[4]".
std::string bytes_of(const std::string& type) {
    const auto from = type.find('[') + 1;
    return type.substr(from, type.find(']') - from) + " bytes";
}

// Macros without parameters, by name.
std::map<std::string, std::string> read_macros(const std::string& folder) {
    const std::regex definition(R"(#define (\w+) (.+))");
    std::map<std::string, std::string> macros;
    std::istringstream lines(clang(folder, "-E -dM"));
    std::smatch found;
    for (std::string text; std::getline(lines, text);) {
        if (std::regex_match(text, found, definition) && is_api_name(found[1])) macros[found[1]] = found[2];
    }
    return macros;
}

// Macros that stand for a value. Those of the version change with it and promise nothing.
bool is_constant(const std::string& name) {
    return name != "ORR_API" && !name.starts_with("ORR_VERSION");
}

}  // namespace

std::string line(const Item& item) {
    return fmt::format("{} {} = {}", item.kind, item.name, item.value);
}

std::vector<Item> read_contract(const std::string& folder, const Headers& headers) {
    const auto records = read_layouts(clang(folder,
                                            "-fsyntax-only -Xclang -fdump-record-layouts-complete "
                                            "-Xclang -fdump-record-layouts-canonical",
                                            probe(headers)));
    std::vector<Item> structs;
    std::map<std::string, std::string> types;  // of the probe's members
    for (const Record& record : records) {
        if (record.name == kProbe) {
            for (const Member& member : record.members)
                types[member.name] = member.type;
        } else if (is_api_name(record.name)) {
            structs.push_back({record.kind, record.name, record.size});
            for (const Member& member : record.members) {
                structs.push_back({"member", fmt::format("{}.{}", record.name, member.name),
                                   fmt::format("{} at {}", member.type, member.offset)});
            }
        }
    }
    std::vector<Item> contract;
    for (const Function& function : headers.functions) {
        std::string type = types.at(function.name);
        contract.push_back({"function", function.name, type.erase(type.find("(*)"), 3)});
    }
    contract.insert(contract.end(), structs.begin(), structs.end());
    for (const Enum& one : headers.enums) {
        if (!one.name.empty()) contract.push_back({"enum", one.name, bytes_of(types.at("enum_" + one.name))});
        for (const Enumerator& enumerator : one.enumerators)
            contract.push_back({"enumerator", enumerator.name, std::to_string(enumerator.value)});
    }
    for (const std::string& name : headers.typedefs)
        contract.push_back({"typedef", name, types.at(name)});
    for (const auto& [name, value] : read_macros(folder)) {
        if (is_constant(name)) contract.push_back({"constant", name, value});
    }
    return contract;
}

std::string read_version(const std::string& folder) {
    const auto macros = read_macros(folder);
    const auto major = macros.find("ORR_VERSION_MAJOR"), minor = macros.find("ORR_VERSION_MINOR");
    if (major == macros.end() || minor == macros.end())
        throw Problem(folder + " lacks ORR_VERSION_MAJOR or ORR_VERSION_MINOR");
    return major->second + "." + minor->second;
}

}  // namespace orrery::apigen
