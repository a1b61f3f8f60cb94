#include "tools/vm/run/gdb.h"

#include <elf.h>
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

namespace orrery::vm {

namespace fs = std::filesystem;

namespace {

// All of the kernel's half that code and data of the kernel and its modules can lie in.
constexpr std::uint64_t kKernelStart = 0xffffffff80000000;
constexpr std::uint64_t kKernelSize = 0x7fffff00;
constexpr std::uint64_t kFewSymbols = 1000;

// A kernel with all of its modules has some 16 MiB of kallsyms, in lines of 600 bytes at most.
constexpr std::size_t kMostKallsyms = std::size_t{64} << 20;
constexpr std::size_t kLongestSymbol = 1024;
constexpr std::size_t kLongestSection = 64;
constexpr std::size_t kMostSections = 64;

constexpr char kOfNames[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
constexpr char kOfNumbers[] = "0123456789abcdef";

enum Section : std::uint16_t { kNone, kText, kSymbols, kNames, kSectionNames, kSections };

template <typename T>
void append(std::string& bytes, const T& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// One line of kallsyms: address, type, name, and the module's name in brackets.
bool parse(const std::string& line, std::uint64_t& address, char& type, std::string& name) {
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), address, 16);
    if (error != std::errc{} || line.data() + line.size() - end < 4 || end[0] != ' ' || end[2] != ' ')
        return false;
    type = end[1];
    const char* begin = end + 3;
    name.assign(begin, static_cast<std::size_t>(line.data() + line.size() - begin));
    name.resize(std::min(name.size(), name.find_first_of(" \t")));
    return !name.empty() && name.find_first_not_of(kOfNames) == std::string::npos;
}

// Debian's headers bring a vmlinux that has a table with next to nothing in it.
bool has_symbols(const fs::path& elf) {
    std::ifstream file(elf, std::ios::binary);
    Elf64_Ehdr header;
    if (!file.read(reinterpret_cast<char*>(&header), sizeof header) ||
        std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return false;
    for (unsigned i = 0; i < header.e_shnum; ++i) {
        Elf64_Shdr section;
        file.seekg(static_cast<std::streamoff>(header.e_shoff + i * sizeof section));
        if (!file.read(reinterpret_cast<char*>(&section), sizeof section)) return false;
        if (section.sh_type == SHT_SYMTAB && section.sh_size > kFewSymbols * sizeof(Elf64_Sym)) return true;
    }
    return false;
}

}  // namespace

std::string symbol_file(const std::string& kallsyms) {
    std::string symbols(sizeof(Elf64_Sym), '\0');
    std::string names(1, '\0');
    std::istringstream lines(kallsyms);
    std::uint64_t address = 0;
    char type = 0;
    std::string name;
    for (std::string line; std::getline(lines, line);) {
        if (!parse(line, address, type, name) || address < kKernelStart ||
            address - kKernelStart >= kKernelSize)
            continue;
        Elf64_Sym symbol{};
        symbol.st_name = static_cast<Elf64_Word>(names.size());
        const bool code = std::strchr("tTwW", type) != nullptr;
        symbol.st_info = static_cast<unsigned char>(STB_GLOBAL << 4 | (code ? STT_FUNC : STT_OBJECT));
        symbol.st_shndx = kText;
        symbol.st_value = address;
        append(symbols, symbol);
        names += name + '\0';
    }

    static constexpr char kNamesOfSections[] = "\0.text\0.symtab\0.strtab\0.shstrtab";
    const std::string section_names(kNamesOfSections, sizeof kNamesOfSections);
    const auto name_of = [&section_names](const char* section) {
        return static_cast<Elf64_Word>(section_names.find(section));
    };
    const std::uint64_t symbols_at = sizeof(Elf64_Ehdr);
    const std::uint64_t names_at = symbols_at + symbols.size();
    const std::uint64_t section_names_at = names_at + names.size();
    const std::uint64_t sections_at = (section_names_at + section_names.size() + 7) & ~std::uint64_t{7};

    std::vector<Elf64_Shdr> sections(kSections);
    sections[kText] = {.sh_name = name_of(".text"),
                       .sh_type = SHT_NOBITS,
                       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                       .sh_addr = kKernelStart,
                       .sh_offset = symbols_at,
                       .sh_size = kKernelSize,
                       .sh_link = 0,
                       .sh_info = 0,
                       .sh_addralign = 1,
                       .sh_entsize = 0};
    sections[kSymbols] = {.sh_name = name_of(".symtab"),
                          .sh_type = SHT_SYMTAB,
                          .sh_flags = 0,
                          .sh_addr = 0,
                          .sh_offset = symbols_at,
                          .sh_size = symbols.size(),
                          .sh_link = kNames,
                          .sh_info = 1,
                          .sh_addralign = 8,
                          .sh_entsize = sizeof(Elf64_Sym)};
    sections[kNames] = {.sh_name = name_of(".strtab"),
                        .sh_type = SHT_STRTAB,
                        .sh_flags = 0,
                        .sh_addr = 0,
                        .sh_offset = names_at,
                        .sh_size = names.size(),
                        .sh_link = 0,
                        .sh_info = 0,
                        .sh_addralign = 1,
                        .sh_entsize = 0};
    sections[kSectionNames] = {.sh_name = name_of(".shstrtab"),
                               .sh_type = SHT_STRTAB,
                               .sh_flags = 0,
                               .sh_addr = 0,
                               .sh_offset = section_names_at,
                               .sh_size = section_names.size(),
                               .sh_link = 0,
                               .sh_info = 0,
                               .sh_addralign = 1,
                               .sh_entsize = 0};
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    header.e_ident[EI_VERSION] = EV_CURRENT;
    header.e_type = ET_EXEC;
    header.e_machine = EM_X86_64;
    header.e_version = EV_CURRENT;
    header.e_shoff = sections_at;
    header.e_ehsize = sizeof header;
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = kSections;
    header.e_shstrndx = kSectionNames;

    std::string file;
    append(file, header);
    file += symbols;
    file += names;
    file += section_names;
    file.resize(sections_at, '\0');
    for (const auto& section : sections)
        append(file, section);
    return file;
}

Result<void> GuestSymbols::kernel(const std::string& line) {
    if (line.size() > kLongestSymbol) return {};
    if (kallsyms_.size() + line.size() >= kMostKallsyms)
        return fail(fmt::format("--gdb: the guest says more than {} MiB of symbols: run without --gdb",
                                kMostKallsyms >> 20));
    kallsyms_ += line;
    kallsyms_ += '\n';
    return {};
}

Result<void> GuestSymbols::section(const std::string& name_and_address) {
    const auto space = name_and_address.find(' ');
    const std::string name = name_and_address.substr(0, space);
    const std::string address = space == std::string::npos ? "" : name_and_address.substr(space + 1);
    if (name.size() < 2 || name.size() > kLongestSection || name.front() != '.' ||
        name.find_first_not_of(kOfNames) != std::string::npos || address.size() < 3 || address.size() > 18 ||
        !address.starts_with("0x") || address.find_first_not_of(kOfNumbers, 2) != std::string::npos ||
        ++section_count_ > kMostSections)
        return fail(
            "--gdb: what the guest says of the sections of orrery.ko is not names and addresses: run without "
            "--gdb");
    sections_ += fmt::format(" -s {} {}", name, address);
    return {};
}

std::string GuestSymbols::take_symbol_file() {
    const std::string lines = std::exchange(kallsyms_, {});
    return lines.empty() ? "" : symbol_file(lines);
}

fs::path find_vmlinux(const Kernel& kernel) {
    const fs::path beside = kernel.image.parent_path();
    std::error_code error;
    // arch/x86/boot/bzImage lies three folders below vmlinux.
    for (const auto& path :
         {beside / "vmlinux", beside / ("vmlinux-" + kernel.release), beside / "../../../vmlinux",
          kernel.modules / "build/vmlinux", fs::path("/usr/lib/debug/boot") / ("vmlinux-" + kernel.release)})
        if (fs::is_regular_file(path, error) && has_symbols(path)) return fs::canonical(path, error);
    return {};
}

std::string gdb_script(const fs::path& symbols, const fs::path& socket, const fs::path& module,
                       const std::string& sections) {
    std::string text = "set confirm off\n";
    if (!symbols.empty()) text += fmt::format("symbol-file \"{}\"\n", symbols.string());
    // An answer waits as long as the guest waits for a card that has no CPU; what came late would be taken
    // for the answer to the next question.
    text += fmt::format("set remotetimeout 60\ntarget remote {}\n", socket.string());
    // Where the module was built, and where its source is.
    text += fmt::format("set substitute-path /checkout/kmod \"{}\"\n", (source_dir() / "kmod").string());
    if (!sections.empty()) text += fmt::format("add-symbol-file \"{}\"{}\n", module.string(), sections);
    return text;
}

}  // namespace orrery::vm
