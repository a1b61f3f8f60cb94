#include "tools/step/program/program.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <libelf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <sstream>
#include <tuple>

#include "tools/step/program/debugger_elf.h"
#include "tools/step/program/symbol_pack.h"
#include "tools/step/words.h"
#include "tools/text/files.h"

namespace orrery::step {
namespace {

struct ElfEnd {
    void operator()(Elf* elf) const { elf_end(elf); }
};
using ElfPtr = std::unique_ptr<Elf, ElfEnd>;
struct DwarfEnd {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
};

// `bytes` must outlive the result.
ElfPtr open_elf(std::vector<std::uint8_t>& bytes) {
    elf_version(EV_CURRENT);
    return ElfPtr(elf_memory(reinterpret_cast<char*>(bytes.data()), bytes.size()));
}

// "turn" of "Scheduler::turn"
bool is_end_of(std::string_view name, std::string_view full) {
    return full.size() > name.size() + 2 && full.ends_with(name) &&
           full.substr(full.size() - name.size() - 2, 2) == "::";
}

struct Piece {
    std::uint64_t address;
    std::vector<std::uint8_t> bytes;
    bool operator==(const Piece&) const = default;
};
std::vector<Piece> pieces_of(std::span<const std::uint8_t> from_elf) {
    std::vector<std::uint8_t> elf(from_elf.begin(), from_elf.end());
    std::vector<Piece> pieces;
    const ElfPtr handle = open_elf(elf);
    std::size_t count = 0;
    if (!handle || elf_getphdrnum(handle.get(), &count) != 0) return pieces;
    for (std::size_t i = 0; i < count; ++i) {
        GElf_Phdr header;
        if (gelf_getphdr(handle.get(), static_cast<int>(i), &header) == nullptr) continue;
        if (header.p_type != PT_LOAD || header.p_filesz == 0) continue;
        if (header.p_offset > elf.size() || header.p_filesz > elf.size() - header.p_offset) return {};
        const auto from = elf.begin() + static_cast<std::ptrdiff_t>(header.p_offset);
        pieces.push_back({header.p_paddr, {from, from + static_cast<std::ptrdiff_t>(header.p_filesz)}});
    }
    return pieces;
}

// The name comes from anybody's recording: below the folder, and a file whose end is near.
bool can_be_source(const std::filesystem::path& file, const std::filesystem::path& folder = {}) {
    constexpr std::uintmax_t kLargest = 16 << 20;
    const auto below = file.lexically_normal();
    if (below.empty() || below.is_absolute() || *below.begin() == "..") return false;
    std::error_code error;
    return std::filesystem::is_regular_file(folder / file, error) &&
           std::filesystem::file_size(folder / file, error) <= kLargest && !error;
}

}  // namespace

bool Program::same_code(std::span<const std::uint8_t> a, std::span<const std::uint8_t> b) {
    const auto pieces = pieces_of(a);
    return !pieces.empty() && pieces == pieces_of(b);
}

Result<Program> Program::parse(std::vector<std::uint8_t> bytes, std::string name) {
    Program program;
    program.name_ = std::move(name);
    const ElfPtr elf = open_elf(bytes);
    if (!elf || elf_kind(elf.get()) != ELF_K_ELF) return fail("{}: not an ELF file", program.name_);
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf.get(), &names) != 0) names = 0;  // no section has a name then
    bool lacks_locations = false;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf.get(), section)) != nullptr;) {
        GElf_Shdr header;
        if (gelf_getshdr(section, &header) == nullptr) continue;
        const char* section_name = elf_strptr(elf.get(), names, header.sh_name);
        if (section_name != nullptr && std::string_view(section_name) == ".debug_loclists")
            lacks_locations = header.sh_size == 0;
        if (header.sh_type != SHT_SYMTAB) continue;
        Elf_Data* data = elf_getdata(section, nullptr);
        if (data == nullptr || header.sh_entsize == 0) continue;
        const std::size_t count = data->d_size / header.sh_entsize;
        for (std::size_t i = 0; i < count; ++i) {
            GElf_Sym symbol;
            if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) continue;
            const unsigned type = GELF_ST_TYPE(symbol.st_info);
            if (symbol.st_shndx == SHN_UNDEF ||
                (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE))
                continue;
            const char* text = elf_strptr(elf.get(), header.sh_link, symbol.st_name);
            // Local labels and the marks of the RISC-V ABI ($x, $d) name nothing, and nothing is at 0.
            if (symbol.st_value == 0 || text == nullptr || *text == '\0' || *text == '$' ||
                std::strncmp(text, ".L", 2) == 0)
                continue;
            program.symbols_.push_back(
                {readable_name(text), symbol.st_value, symbol.st_size, type == STT_FUNC});
        }
    }
    std::ranges::sort(program.symbols_, [](const Symbol& a, const Symbol& b) {
        return std::tie(a.address, a.bytes, a.name) < std::tie(b.address, b.bytes, b.name);
    });
    for (std::size_t i = 0; i < program.symbols_.size(); ++i)
        program.by_name_.try_emplace(program.symbols_[i].name, i);
    const std::unique_ptr<Dwarf, DwarfEnd> dwarf(dwarf_begin_elf(elf.get(), DWARF_C_READ, nullptr));
    if (dwarf) {
        program.debug_ = DebugInfo(dwarf.get());
        program.calls_ = CallFrames(bytes);
    }
    // Older recordings leave out where variables are; gdb then refuses all of it.
    if (!program.symbols_.empty() && !lacks_locations) program.elf_ = elf_for_debugger(bytes);
    return program;
}

Result<Program> Program::load(const std::string& file) {
    auto bytes = read_file(file);
    if (!bytes) return std::unexpected(bytes.error());
    return parse(std::move(*bytes), file);
}

Result<Program> Program::find(std::span<const std::uint8_t> loaded, std::span<const std::uint8_t> pack,
                              const std::string& wanted, std::string& note) {
    if (wanted == "none") return Program();
    if (!wanted.empty()) {
        auto bytes = read_file(wanted);
        if (!bytes) return std::unexpected(bytes.error());
        if (!loaded.empty() && !same_code(*bytes, loaded)) {
            return fail(
                "{} is not the firmware of this recording: its code differs. Give the orrery-fw.elf of "
                "the build that was recorded, or leave --elf out",
                wanted);
        }
        return parse(std::move(*bytes), wanted);
    }
    if (!pack.empty()) {
        auto symbols = SymbolPack::open(pack, {loaded.begin(), loaded.end()});
        auto program = symbols ? parse(std::move(symbols->elf), "in the recording")
                               : Result<Program>(std::unexpected(symbols.error()));
        if (program) {
            program->sources_ = std::move(symbols->sources);
            return program;
        }
        note = program.error().text;
    }
    std::error_code error;
    const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
    const std::string built = (self.parent_path().parent_path() / "firmware" / "orrery-fw.elf").string();
    if (!error && !loaded.empty() && std::filesystem::exists(built, error)) {
        if (auto bytes = read_file(built); bytes && same_code(*bytes, loaded))
            return parse(std::move(*bytes), built);
    }
    if (loaded.empty()) {
        note = "the recording holds no firmware image: no symbols, no source lines";
        return Program();
    }
    auto program = parse({loaded.begin(), loaded.end()}, "the recording's image");
    if (program && program->symbols_.empty()) {
        note += fmt::format(
            "{}no symbols and no source lines: the recording has none, and this build's firmware is another "
            "one; "
            "name its orrery-fw.elf with --elf",
            note.empty() ? "" : "; ");
    }
    return program;
}

const Symbol* Program::symbol(std::string_view name) const {
    const auto found = by_name_.find(name);
    if (found != by_name_.end()) return &symbols_[found->second];
    // The last part of the name is enough if only one symbol has it.
    const Symbol* only = nullptr;
    for (const Symbol& symbol : symbols_) {
        if (!is_end_of(name, symbol.name)) continue;
        if (only != nullptr) return nullptr;
        only = &symbol;
    }
    return only;
}

const Symbol* Program::symbol_at(std::uint64_t address) const {
    auto at = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
    // Names without a size (labels of assembly) reach to the next name.
    for (int tries = 0; at != symbols_.begin() && tries < 16; ++tries) {
        --at;
        if (address - at->address < at->bytes) return &*at;
        if (at->bytes == 0 && address - at->address < 0x1000) return &*at;
    }
    return nullptr;
}

std::string Program::where(std::uint64_t address) const {
    const Symbol* symbol = symbol_at(address);
    if (symbol == nullptr) return "";
    if (symbol->address == address) return symbol->name;
    return fmt::format("{}+{}", symbol->name, address - symbol->address);
}

Result<std::optional<Place>> Program::function(std::string_view name) const {
    // What is named exactly so, else what ends so.
    std::vector<Place> found;
    const auto take = [&](const std::string& full, std::span<const std::uint64_t> entries,
                          const std::optional<Line>& declared) {
        auto place = std::ranges::find(found, full, &Place::name);
        if (place == found.end()) place = found.insert(found.end(), Place{full, {}, std::nullopt});
        place->entries.insert(place->entries.end(), entries.begin(), entries.end());
        if (!place->declared) place->declared = declared;
    };
    for (const bool exact : {true, false}) {
        const auto fits = [&](std::string_view full) { return exact ? full == name : is_end_of(name, full); };
        for (const Function& f : debug_.functions())
            if (fits(f.name)) take(f.name, f.entries, f.declared);
        for (const Symbol& s : symbols_)
            if (s.code && fits(s.name)) take(s.name, std::span(&s.address, 1), std::nullopt);
        if (!found.empty()) break;
    }
    if (found.empty()) return std::nullopt;
    if (found.size() > 1) {
        std::string names;
        for (const Place& place : found)
            names += (names.empty() ? "" : ", ") + place.name;
        return fail("'{}' can be {}", name, names);
    }
    auto& entries = found.front().entries;
    std::ranges::sort(entries);
    entries.erase(std::ranges::unique(entries).begin(), entries.end());
    return std::move(found.front());
}

std::vector<std::string> Program::function_names() const {
    std::vector<std::string> names;
    for (const Function& f : debug_.functions())
        names.push_back(f.name);
    for (const Symbol& s : symbols_)
        if (s.code) names.push_back(s.name);
    std::ranges::sort(names);
    names.erase(std::ranges::unique(names).begin(), names.end());
    return names;
}

std::string Program::source_text(const std::string& file, unsigned line, unsigned around,
                                 const std::vector<std::string>& folders) const {
    std::ifstream opened;
    std::istringstream carried;
    std::istream* from = &opened;
    if (const auto found = sources_.find(file); found != sources_.end()) {
        carried.str(found->second);
        from = &carried;
    } else {
        if (can_be_source(file)) opened.open(file);
        for (const std::string& folder : folders) {
            if (opened.is_open()) break;
            if (can_be_source(file, folder)) opened.open(std::filesystem::path(folder) / file);
        }
    }
    std::istream& in = *from;
    std::string text, row;
    for (unsigned number = 1; std::getline(in, row); ++number) {
        if (number + around < line) continue;
        if (number > line + around) break;
        text += fmt::format("{} {:>5}  {}\n", number == line ? "=>" : "  ", number, row);
    }
    return text;
}

}  // namespace orrery::step
