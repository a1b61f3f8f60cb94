#include "tools/vm/programs.h"

#include <elf.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <sstream>

#include "tools/vm/process.h"
#include "tools/vm/value_at.h"

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

// Always in the guest, so that a console has them.
constexpr std::array kGuestTools = {"orrery-smi", "orrery-prof", "orrery-diag"};

bool is_program(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

}  // namespace

std::string elf_interpreter(std::string_view bytes) {
    const auto header = value_at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64)
        return {};
    for (std::uint64_t i = 0; i < header->e_phnum; ++i) {
        const auto segment = value_at<Elf64_Phdr>(bytes, header->e_phoff + i * sizeof(Elf64_Phdr));
        if (!segment) return {};
        if (segment->p_type != PT_INTERP) continue;
        if (segment->p_offset >= bytes.size() || segment->p_filesz > bytes.size() - segment->p_offset)
            return {};
        const std::string name(bytes.substr(segment->p_offset, segment->p_filesz));
        return name.substr(0, name.find('\0'));
    }
    return {};
}

bool runnable_here(std::string_view bytes) {
    const auto header = value_at<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64 ||
        (header->e_type != ET_DYN && header->e_type != ET_EXEC))
        return false;
    const std::string loader = elf_interpreter(bytes);
    return loader == kHostLoader || (loader.empty() && header->e_type == ET_DYN);
}

Result<Closure> library_closure(const fs::path& program, const std::string& interpreter,
                                const fs::path& libraries) {
    std::vector<std::string> argv{interpreter};
    if (!libraries.empty()) argv.insert(argv.end(), {"--library-path", libraries.string()});
    argv.insert(argv.end(), {"--list", program.string()});
    auto listing = capture(argv);
    if (!listing)
        return fail(
            fmt::format("cannot find the libraries of {}: {}", program.string(), listing.error().text));
    Closure closure{{interpreter}, {}};
    std::istringstream lines(*listing);
    for (std::string line; std::getline(lines, line);) {
        // "\tlibm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x...)", or "\t/lib64/ld-linux-x86-64.so.2
        // (0x...)"
        const auto arrow = line.find("=> ");
        const std::string rest = arrow == std::string::npos ? line : line.substr(arrow + 3);
        if (rest.find("not found") != std::string::npos) {
            const auto name = line.find_first_not_of(" \t");
            closure.missing.push_back(line.substr(name, line.find(' ', name) - name));
            continue;
        }
        const auto start = rest.find('/');
        const auto end = rest.rfind(" (0x");
        if (start == std::string::npos || end == std::string::npos || end < start) continue;
        std::string path = rest.substr(start, end - start);
        if (std::find(closure.paths.begin(), closure.paths.end(), path) == closure.paths.end())
            closure.paths.push_back(std::move(path));
    }
    return closure;
}

std::vector<std::string> words_of(const std::vector<std::string>& command) {
    std::vector<std::string> words;
    for (const auto& argument : command) {
        std::string word;
        for (const char c : argument + " ") {
            if (std::strchr(" \t\n;&|()`\"'$<>", c) == nullptr) {
                word += c;
                continue;
            }
            if (!word.empty()) words.push_back(std::move(word));
            word.clear();
        }
    }
    return words;
}

std::set<std::string> choose_programs(const fs::path& directory, const std::vector<std::string>& command) {
    std::set<std::string> names;
    const auto consider = [&](const std::string& name) {
        if (!name.empty() && name.find('/') == std::string::npos && is_program(directory / name))
            names.insert(name);
    };
    for (const char* tool : kGuestTools)
        consider(tool);
    for (const auto& word : words_of(command))
        consider(word);
    return names;
}

}  // namespace orrery::vm
