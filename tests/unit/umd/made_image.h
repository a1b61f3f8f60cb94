// Modules that no compiler makes: an image of a symbol table of the test's own.
#pragma once

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace orrery::umd::test {

class MadeImage {
  public:
    static constexpr std::uint64_t kCodeBytes = 64, kDataBytes = 1 << 20;

    // Bytes that names may be anywhere in; gives where they begin.
    std::uint32_t add_text(const std::string& text) {
        const std::size_t at = strings_.size();
        strings_.append(text).push_back('\0');
        return static_cast<std::uint32_t>(at);
    }
    // offset: in the code. name: of add_text(), or behind it.
    void add_function(std::uint32_t name, std::uint64_t offset = 0, std::uint64_t bytes = 4) {
        add(name, STT_FUNC, kCode + offset, bytes);
    }
    // offset: in the data, which starts as zeroes.
    void add_variable(std::uint32_t name, std::uint64_t offset, std::uint64_t bytes) {
        add(name, STT_OBJECT, kData + offset, bytes);
    }

    std::vector<std::byte> bytes() const {
        const std::uint64_t table = kTables + sizeof(Elf64_Dyn) * kEntries, hash = 2 * sizeof(std::uint32_t);
        const std::uint64_t symbols = table + hash, strings = symbols + symbols_.size() * sizeof(Elf64_Sym);
        const std::uint64_t end = strings + strings_.size();
        std::vector<std::byte> file(end - kFileGap);
        const auto put = [&](std::uint64_t at, const void* from, std::size_t size) {
            std::memcpy(file.data() + at, from, size);
        };
        Elf64_Ehdr header{};
        std::memcpy(header.e_ident, ELFMAG, SELFMAG);
        header.e_ident[EI_CLASS] = ELFCLASS64;
        header.e_ident[EI_DATA] = ELFDATA2LSB;
        header.e_machine = EM_RISCV;
        header.e_type = ET_DYN;
        header.e_phoff = sizeof header;
        header.e_phentsize = sizeof(Elf64_Phdr);
        header.e_phnum = 4;
        put(0, &header, sizeof header);
        const std::uint64_t tables = end - kTables;
        const Elf64_Phdr parts[] = {
            {PT_LOAD, PF_R | PF_X, 0, kCode, kCode, kCodeBytes, kCodeBytes, 0},
            {PT_LOAD, PF_R | PF_W, 0, kData, kData, 0, kDataBytes, 0},
            {PT_LOAD, PF_R, kTables - kFileGap, kTables, kTables, tables, tables, 0},
            {PT_DYNAMIC, PF_R, kTables - kFileGap, kTables, kTables, sizeof(Elf64_Dyn) * kEntries,
             sizeof(Elf64_Dyn) * kEntries, 0},
        };
        put(sizeof header, parts, sizeof parts);
        const Elf64_Dyn dynamic[kEntries] = {{DT_HASH, {table}},
                                             {DT_SYMTAB, {symbols}},
                                             {DT_STRTAB, {strings}},
                                             {DT_STRSZ, {strings_.size()}},
                                             {DT_NULL, {0}}};
        put(kTables - kFileGap, dynamic, sizeof dynamic);
        const std::uint32_t count[] = {1, static_cast<std::uint32_t>(symbols_.size())};
        put(table - kFileGap, count, sizeof count);
        put(symbols - kFileGap, symbols_.data(), symbols_.size() * sizeof(Elf64_Sym));
        put(strings - kFileGap, strings_.data(), strings_.size());
        return file;
    }

  private:
    // In the module's memory; the file has no bytes for the data and what is between.
    static constexpr std::uint64_t kCode = 0, kData = 4096, kTables = kData + kDataBytes;
    static constexpr std::uint64_t kFileGap = kTables - 4096, kEntries = 5;

    void add(std::uint32_t name, unsigned char type, std::uint64_t value, std::uint64_t bytes) {
        symbols_.push_back(
            {name, static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, type)), 0, 1, value, bytes});
    }

    std::string strings_ = std::string(1, '\0');
    std::vector<Elf64_Sym> symbols_ = std::vector<Elf64_Sym>(1);
};

}  // namespace orrery::umd::test
