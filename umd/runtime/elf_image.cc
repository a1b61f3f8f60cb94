#include "umd/runtime/elf_image.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "umd/runtime/bytes.h"
#include "umd/runtime/memory.h"

namespace orrery::umd {
namespace {

// <elf.h> of old systems lacks it.
constexpr std::uint32_t kRiscvRelative = 3;
constexpr std::uint32_t kRiscvAttributes = 0x70000003;

template <typename... Args>
std::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) {
    return fail(orrErrorInvalidImage, "not a module of orrery-cc: {}",
                fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace

class ElfParser {
  public:
    explicit ElfParser(std::span<const std::byte> file) : file_(file) {}

    Result<ElfImage> parse() {
        for (auto step : {&ElfParser::read_header, &ElfParser::load_segments, &ElfParser::read_dynamic,
                          &ElfParser::read_relocations, &ElfParser::read_symbols, &ElfParser::check_variables,
                          &ElfParser::read_attributes}) {
            ORR_TRY(done, (this->*step)());
        }
        image_.lines_ = LineTables::of(file_);
        return std::move(image_);
    }

  private:
    Status read_header() {
        if (file_.size() > ElfImage::kMaxFile) return bad("{} bytes are too many", file_.size());
        const auto header = read_at<Elf64_Ehdr>(file_, 0);
        if (!header) return bad("{} bytes are less than an ELF header", file_.size());
        if (std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0)
            return bad("it does not begin as an ELF file");
        if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB) {
            return bad("it is not 64-bit little-endian");
        }
        if (header->e_machine != EM_RISCV) return bad("it is for machine {}, not RISC-V", header->e_machine);
        if (header->e_type != ET_DYN) return bad("it is not position-independent");
        if (header->e_phentsize != sizeof(Elf64_Phdr)) return bad("odd program header size");
        header_ = *header;
        return {};
    }

    Status load_segments() {
        if (header_.e_phnum == 0 || header_.e_phnum > 64) return bad("{} program headers", header_.e_phnum);
        std::vector<Elf64_Phdr> loads;
        for (std::uint64_t i = 0; i < header_.e_phnum; ++i) {
            // e_phoff may be anything; the product is small.
            if (header_.e_phoff > file_.size()) return bad("program headers outside the file");
            const auto header = read_at<Elf64_Phdr>(file_, header_.e_phoff + i * sizeof(Elf64_Phdr));
            if (!header) return bad("it is cut short (program header {})", i);
            if (header->p_type == PT_INTERP || header->p_type == PT_TLS) {
                return bad("it has an interpreter or thread-local variables");
            }
            if (header->p_type == PT_DYNAMIC) dynamic_ = *header;
            if (header->p_type == kRiscvAttributes) attributes_ = *header;
            if (header->p_type == PT_LOAD && header->p_memsz != 0) loads.push_back(*header);
        }
        if (loads.empty()) return bad("nothing to load");
        if (loads.size() > ElfImage::kMaxSegments) return bad("{} segments", loads.size());
        std::uint64_t end = 0;  // of the segment before, whole pages
        for (const auto& load : loads) {
            if (load.p_filesz > load.p_memsz) return bad("a segment with more file than memory");
            if (load.p_offset > file_.size() || load.p_filesz > file_.size() - load.p_offset) {
                return bad("it is cut short (a segment ends outside the file)");
            }
            if (load.p_vaddr > ElfImage::kMaxMemory || load.p_memsz > ElfImage::kMaxMemory - load.p_vaddr) {
                return bad("a segment beyond {} MiB", ElfImage::kMaxMemory >> 20);
            }
            const std::uint64_t start = load.p_vaddr / kPage * kPage;
            if (start < end) return bad("segments out of order or sharing a page");
            if ((load.p_flags & PF_W) != 0 && (load.p_flags & PF_X) != 0) {
                return bad("a segment that is both writable and executable");
            }
            if ((load.p_flags & PF_R) == 0) return bad("a segment that cannot be read");
            end = round_up(load.p_vaddr + load.p_memsz, kPage);
            std::uint32_t bind = ORR_BIND_READ;
            if (load.p_flags & PF_W) bind |= ORR_BIND_WRITE;
            if (load.p_flags & PF_X) bind |= ORR_BIND_EXEC;
            image_.segments_.push_back({start, end - start, bind});
        }
        image_.memory_.resize(end);
        for (const auto& load : loads) {
            std::memcpy(image_.memory_.data() + load.p_vaddr, file_.data() + load.p_offset, load.p_filesz);
        }
        return {};
    }

    Status read_dynamic() {
        if (dynamic_.p_type != PT_DYNAMIC) return bad("it has no dynamic section, so no exported kernels");
        const std::uint64_t count = dynamic_.p_memsz / sizeof(Elf64_Dyn);
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto entry = read_at<Elf64_Dyn>(image_.memory_, dynamic_.p_vaddr + i * sizeof(Elf64_Dyn));
            if (!entry || dynamic_.p_vaddr > image_.memory_.size())
                return bad("its dynamic section lies outside");
            const std::uint64_t value = entry->d_un.d_val;
            switch (entry->d_tag) {
                case DT_NULL:
                    return {};
                case DT_NEEDED:
                    return bad("it needs a shared library");
                case DT_INIT:
                case DT_FINI:
                case DT_INIT_ARRAY:
                case DT_FINI_ARRAY:
                case DT_PREINIT_ARRAY:
                    return bad(
                        "it has constructors or destructors of global objects, which nobody would call");
                case DT_REL:
                case DT_RELR:
                case DT_JMPREL:
                case DT_TEXTREL:
                    return bad("it has relocations of a kind that is not supported (tag {})", entry->d_tag);
                case DT_RELA:
                    rela_ = value;
                    break;
                case DT_RELASZ:
                    rela_size_ = value;
                    break;
                case DT_RELAENT:
                    if (value != sizeof(Elf64_Rela)) return bad("odd relocation size");
                    break;
                case DT_SYMTAB:
                    symtab_ = value;
                    break;
                case DT_SYMENT:
                    if (value != sizeof(Elf64_Sym)) return bad("odd symbol size");
                    break;
                case DT_STRTAB:
                    strtab_ = value;
                    break;
                case DT_STRSZ:
                    strtab_size_ = value;
                    break;
                case DT_HASH:
                    hash_ = value;
                    break;
                default:
                    break;
            }
        }
        return {};
    }

    bool writable(std::uint64_t offset, std::uint64_t bytes) const {
        return std::ranges::any_of(image_.segments_, [&](const ElfImage::Segment& s) {
            return (s.bind & ORR_BIND_WRITE) != 0 && offset >= s.start && offset - s.start <= s.size &&
                   bytes <= s.size - (offset - s.start);
        });
    }

    Status read_relocations() {
        if (rela_size_ == 0) return {};
        if (rela_ > image_.memory_.size() || rela_size_ > image_.memory_.size() - rela_) {
            return bad("its relocations lie outside");
        }
        for (std::uint64_t i = 0; i < rela_size_ / sizeof(Elf64_Rela); ++i) {
            const auto entry = read_at<Elf64_Rela>(image_.memory_, rela_ + i * sizeof(Elf64_Rela));
            if (!entry) return bad("its relocations lie outside");
            const auto type = static_cast<std::uint32_t>(entry->r_info);
            if (type == 0) continue;
            if (type != kRiscvRelative || entry->r_info >> 32 != 0) {
                return bad("relocation of type {} against symbol {}: is a function or variable undefined?",
                           type, entry->r_info >> 32);
            }
            if (!writable(entry->r_offset, sizeof(std::uint64_t)))
                return bad("a relocation outside its data");
            const auto addend = static_cast<std::uint64_t>(entry->r_addend);
            if (addend > image_.memory_.size()) return bad("a relocation that points outside");
            image_.relocations_.push_back({entry->r_offset, addend});
        }
        return {};
    }

    Status read_symbols() {
        if (!symtab_ || !strtab_ || !hash_)
            return bad("it has no symbol table with a hash (--hash-style=sysv)");
        const std::span<const std::byte> memory = image_.memory_;
        if (*strtab_ > memory.size() || strtab_size_ > memory.size() - *strtab_ || *symtab_ > memory.size() ||
            *hash_ > memory.size()) {
            return bad("its symbol table lies outside");
        }
        const auto count = read_at<std::uint32_t>(memory, *hash_ + sizeof(std::uint32_t));  // nchain
        if (!count) return bad("its symbol hash lies outside");
        if (*count > ElfImage::kMaxSymbols) return bad("{} symbols", *count);
        const auto strings = memory.subspan(*strtab_, strtab_size_);
        for (std::uint64_t i = 0; i < *count; ++i) {
            const auto symbol = read_at<Elf64_Sym>(memory, *symtab_ + i * sizeof(Elf64_Sym));
            if (!symbol) return bad("its symbol table lies outside");
            const auto type = ELF64_ST_TYPE(symbol->st_info);
            const bool note = type == STT_OBJECT || symbol->st_shndx == SHN_ABS;
            if (symbol->st_shndx == SHN_UNDEF || (type != STT_FUNC && !note)) continue;
            ORR_TRY(name, read_name(strings, symbol->st_name));
            if (note) {
                ORR_TRY(read, read_note(*symbol, *name));
                continue;
            }
            const std::uint64_t entry = symbol->st_value;
            const bool code = std::ranges::any_of(image_.segments_, [&](const ElfImage::Segment& s) {
                return (s.bind & ORR_BIND_EXEC) != 0 && entry >= s.start && entry - s.start < s.size &&
                       symbol->st_size <= s.size - (entry - s.start);
            });
            if (!code || entry % 2 != 0)
                return bad("function '{}' lies outside the code", printable(name->substr(0, 80)));
            image_.code_bytes_.emplace(*name, symbol->st_size);
            image_.functions_.emplace(*name, entry);
        }
        return {};
    }

    // A file's symbols may all be named by the same long text.
    Result<std::string_view> read_name(std::span<const std::byte> strings, std::uint64_t at) {
        if (at >= strings.size()) return bad("a symbol's name lies outside");
        const auto* name = reinterpret_cast<const char*>(strings.data()) + at;
        const std::uint64_t most = std::min<std::uint64_t>(strings.size() - at, ElfImage::kMaxName + 1);
        const auto* end = static_cast<const char*>(std::memchr(name, 0, most));
        if (end == nullptr && most > ElfImage::kMaxName)
            return bad("a symbol's name has more than {} bytes", ElfImage::kMaxName);
        if (end == nullptr) return bad("a symbol's name does not end");
        names_ += static_cast<std::uint64_t>(end - name);
        if (names_ > ElfImage::kMaxNames)
            return bad("the names of its symbols have more than {} MiB", ElfImage::kMaxNames >> 20);
        return std::string_view(name, end);
    }

    // What kernel_group.h and kernel_output.h leave for the loader, and variables.
    Status read_note(const Elf64_Sym& symbol, std::string_view name) {
        constexpr std::string_view kStack = "orr_item_stack.";
        const std::uint64_t value = symbol.st_value;
        if (symbol.st_shndx == SHN_ABS) {
            if (name == "orr_uses_barriers") image_.barriers_ = true;
            if (!name.starts_with(kStack)) return {};
            if (value == 0 || value > ElfImage::kMaxItemStack)
                return bad("item stacks of {} bytes: at most {}", value, ElfImage::kMaxItemStack);
            image_.item_stacks_.emplace(name.substr(kStack.size()), static_cast<std::uint32_t>(value));
        } else if (name == "orr_output") {
            if (value % sizeof(std::uint64_t) != 0 || !writable(value, sizeof(std::uint64_t)))
                return bad("its pointer for output lies outside its data");
            image_.output_pointer_ = value;
        } else {
            return read_variable(symbol, name);
        }
        return {};
    }

    Status read_variable(const Elf64_Sym& symbol, std::string_view name) {
        const std::uint64_t offset = symbol.st_value, bytes = symbol.st_size;
        if (bytes == 0) return {};
        for (const ElfImage::Segment& s : image_.segments_) {
            if (offset < s.start || offset - s.start >= s.size) continue;
            if (bytes > s.size - (offset - s.start)) break;
            image_.variables_.emplace(name,
                                      ElfImage::Variable{offset, bytes, (s.bind & ORR_BIND_WRITE) == 0});
            return {};
        }
        return bad("variable '{}' lies outside the module's memory", printable(name.substr(0, 80)));
    }

    // Memory is looked for by the variable that an address lies in.
    Status check_variables() {
        std::vector<std::pair<const ElfImage::Variable*, std::string_view>> sorted;
        for (const auto& [name, variable] : image_.variables_)
            sorted.emplace_back(&variable, name);
        std::ranges::sort(
            sorted, {}, [](const auto& entry) { return std::pair(entry.first->offset, entry.first->bytes); });
        for (std::size_t i = 1; i < sorted.size(); ++i) {
            const auto& [before, first] = sorted[i - 1];
            const auto& [variable, second] = sorted[i];
            const std::uint64_t apart = variable->offset - before->offset;
            if (apart >= before->bytes || (apart == 0 && variable->bytes == before->bytes)) continue;
            return bad("variables '{}' and '{}' overlap", printable(first.substr(0, 80)),
                       printable(second.substr(0, 80)));
        }
        return {};
    }

    // What the code needs of a core: an attribute of the file as a whole, in the format of the RISC-V ELF
    // ABI.
    Status read_attributes() {
        if (attributes_.p_type != kRiscvAttributes) return {};
        const auto odd = [] { return bad("its attributes (.riscv.attributes) make no sense"); };
        ByteReader in(part_of(file_, attributes_.p_offset, attributes_.p_filesz));
        if (in.take<std::uint8_t>() != 'A') return odd();
        while (in.more()) {
            const auto bytes = in.take<std::uint32_t>();
            if (bytes < sizeof(bytes)) return odd();
            ByteReader vendor(in.part(bytes - sizeof(bytes)));
            if (vendor.text() != "riscv") continue;
            while (vendor.more()) {
                const std::uint64_t begin = vendor.at();
                const std::uint64_t tag = vendor.uleb();
                const auto size = vendor.take<std::uint32_t>();
                if (size < vendor.at() - begin) return odd();
                ByteReader attributes(vendor.part(size - (vendor.at() - begin)));
                if (tag != kWholeFile) continue;
                if (auto done = read_file_attributes(attributes); !done) return done;
                if (!attributes.good()) return odd();
            }
            if (!vendor.good()) return odd();
        }
        if (!in.good()) return odd();
        return {};
    }

    Status read_file_attributes(ByteReader& attributes) {
        while (attributes.more()) {
            const std::uint64_t tag = attributes.uleb();
            // Those with odd numbers are texts.
            if (tag % 2 == 0) {
                attributes.uleb();
                continue;
            }
            const std::string_view text = attributes.text();
            if (tag != kArch || !attributes.good()) continue;
            auto isa = Isa::parse(text);
            if (!isa) return bad("{}", isa.error().text);
            image_.needs_ = *std::move(isa);
        }
        return {};
    }

    static constexpr std::uint64_t kWholeFile = 1, kArch = 5;

    std::span<const std::byte> file_;
    Elf64_Ehdr header_{};
    Elf64_Phdr dynamic_{};
    Elf64_Phdr attributes_{};
    std::uint64_t rela_ = 0, rela_size_ = 0, strtab_size_ = 0;
    std::uint64_t names_ = 0;  // bytes of names read
    std::optional<std::uint64_t> symtab_, strtab_, hash_;
    ElfImage image_;
};

Result<ElfImage> ElfImage::parse(std::span<const std::byte> file) {
    return ElfParser(file).parse();
}

std::uint32_t ElfImage::item_stack_bytes(std::string_view function) const {
    if (!barriers_) return 0;
    const auto found = item_stacks_.find(function);
    return found == item_stacks_.end() ? static_cast<std::uint32_t>(kPage) : found->second;
}

std::uint64_t ElfImage::code_bytes(std::string_view function) const {
    const auto found = code_bytes_.find(function);
    return found == code_bytes_.end() ? 0 : found->second;
}

std::vector<std::byte> ElfImage::relocated(std::uint64_t base) const {
    std::vector<std::byte> bytes = memory_;
    for (const Relocation& relocation : relocations_) {
        const std::uint64_t value = base + relocation.addend;
        std::memcpy(bytes.data() + relocation.offset, &value, sizeof(value));
    }
    return bytes;
}

}  // namespace orrery::umd
