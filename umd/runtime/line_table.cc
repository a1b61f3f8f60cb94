#include "umd/runtime/line_table.h"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "umd/runtime/bytes.h"

namespace orrery::umd {
namespace {

// Of DWARF; <dwarf.h> belongs to a library.
enum Content : std::uint64_t { kPath = 1, kDirectory = 2 };
enum Form : std::uint64_t {
    kData2 = 0x05,
    kData4 = 0x06,
    kData8 = 0x07,
    kString = 0x08,
    kBlock = 0x09,
    kData1 = 0x0b,
    kStrp = 0x0e,
    kUdata = 0x0f,
    kData16 = 0x1e,
    kLineStrp = 0x1f,
};
enum Standard : std::uint8_t {
    kExtended = 0,
    kCopy = 1,
    kAdvancePc = 2,
    kAdvanceLine = 3,
    kSetFile = 4,
    kConstAddPc = 8,
    kFixedAdvancePc = 9,
};
constexpr std::uint64_t kLongestName = 4096;  // the search for its end takes time, in each of many entries
enum Extended : std::uint8_t { kEndSequence = 1, kSetAddress = 2 };

struct File {
    std::string_view name;
    std::uint64_t directory = 0;
};

struct Row {
    std::uint64_t address = 0;
    std::uint64_t file = 1;
    std::int64_t line = 1;

    // Any sum is some number.
    void add(std::int64_t lines) {
        line =
            static_cast<std::int64_t>(static_cast<std::uint64_t>(line) + static_cast<std::uint64_t>(lines));
    }
};

// One unit of .debug_line.
class Unit {
  public:
    Unit(const LineTables& tables, std::span<const std::byte> bytes, bool wide)
        : tables_(tables), in_(bytes), wide_(wide) {}

    std::string find(std::uint64_t address) {
        if (!read_header()) return {};
        const auto row = run([&](const Row& row, const Row& next) {
            return row.address <= address && address < next.address;
        });
        return row ? name_of(*row) : std::string();
    }
    // Of the first instruction from `begin` to before `end` that is of the unit's own file.
    std::string find_own(std::uint64_t begin, std::uint64_t end) {
        if (!read_header()) return {};
        const std::size_t own = version_ >= 5 ? 0 : 1;
        if (own >= files_.size()) return {};
        const auto last_part = [](std::string_view name) { return name.substr(name.rfind('/') + 1); };
        const auto row = run([&](const Row& row, const Row&) {
            return row.address >= begin && row.address < end && row.file < files_.size() &&
                   last_part(files_[row.file].name) == last_part(files_[own].name);
        });
        return row ? name_of(*row) : std::string();
    }

  private:
    std::uint64_t offset() { return wide_ ? in_.take<std::uint64_t>() : in_.take<std::uint32_t>(); }

    bool read_header() {
        version_ = in_.take<std::uint16_t>();
        if (version_ < 2 || version_ > 5) return false;
        if (version_ >= 5) in_.take<std::uint16_t>();  // sizes of addresses and segment selectors
        ByteReader header(in_.part(offset()));
        instruction_bytes_ = header.take<std::uint8_t>();
        if (version_ >= 4) header.take<std::uint8_t>();  // operations of an instruction: VLIW only
        header.take<std::uint8_t>();                     // whether rows begin as statements
        line_base_ = header.take<std::int8_t>();
        line_range_ = header.take<std::uint8_t>();
        opcode_base_ = header.take<std::uint8_t>();
        if (!header.good() || line_range_ == 0 || opcode_base_ == 0) return false;
        for (unsigned n = 1; n < opcode_base_; ++n)
            operands_[n] = header.take<std::uint8_t>();
        version_ >= 5 ? read_files(header) : read_old_files(header);
        return header.good();
    }

    void read_old_files(ByteReader& header) {
        directories_.emplace_back();  // that of the compilation
        while (header.good()) {
            const std::string_view name = header.text();
            if (name.empty()) break;
            directories_.push_back(name);
        }
        files_.emplace_back();  // they count from 1
        while (header.good()) {
            const std::string_view name = header.text();
            if (name.empty()) break;
            files_.push_back({name, header.uleb()});
            header.uleb();  // time
            header.uleb();  // size
        }
    }

    void read_files(ByteReader& header) {
        for (const bool directories : {true, false}) {
            struct Field {
                std::uint64_t content, form;
            };
            std::vector<Field> fields(header.take<std::uint8_t>());
            for (Field& field : fields) {
                field.content = header.uleb();
                field.form = header.uleb();
            }
            const std::uint64_t count = header.uleb();
            // Without fields an entry takes no bytes, and nothing would end the loop.
            if (fields.empty()) continue;
            for (std::uint64_t n = 0; n < count && header.good(); ++n) {
                File file;
                for (const Field& field : fields) {
                    std::string_view text;
                    const std::uint64_t number = read_field(header, field.form, text);
                    if (field.content == kPath) file.name = text;
                    if (field.content == kDirectory) file.directory = number;
                }
                if (directories) {
                    directories_.push_back(file.name);
                } else {
                    files_.push_back(file);
                }
            }
        }
    }

    std::uint64_t read_field(ByteReader& header, std::uint64_t form, std::string_view& text) {
        const auto indirect = [&](const std::vector<std::byte>& strings) {
            const std::uint64_t at = wide_ ? header.take<std::uint64_t>() : header.take<std::uint32_t>();
            if (at >= strings.size()) return std::string_view();
            const auto rest = std::span(strings).subspan(at);
            return ByteReader(rest.first(std::min<std::uint64_t>(rest.size(), kLongestName))).text();
        };
        switch (form) {
            case kString:
                text = header.text();
                return 0;
            case kStrp:
                text = indirect(tables_.str);
                return 0;
            case kLineStrp:
                text = indirect(tables_.line_str);
                return 0;
            case kData1:
                return header.take<std::uint8_t>();
            case kData2:
                return header.take<std::uint16_t>();
            case kData4:
                return header.take<std::uint32_t>();
            case kData8:
                return header.take<std::uint64_t>();
            case kUdata:
                return header.uleb();
            case kData16:
                header.part(16);
                return 0;
            case kBlock:
                header.part(header.uleb());
                return 0;
            default:
                header.part(~std::uint64_t{0});  // of unknown length: this header ends here
                return 0;
        }
    }

    // The first row that `match` takes; it sees each with the one behind it in its sequence.
    template <typename Match>
    std::optional<Row> run(Match&& match) {
        std::optional<Row> before;
        Row now;
        // A sequence that begins at 0, where no code is, belongs to a function that the linker has dropped.
        bool dropped = true;
        const auto emit = [&] {
            const bool found = before && !dropped && match(*before, now);
            if (!found) before = now;
            return found;
        };
        while (in_.more()) {
            const auto opcode = in_.take<std::uint8_t>();
            if (opcode >= opcode_base_) {
                const unsigned special = opcode - opcode_base_;
                now.address += special / line_range_ * instruction_bytes_;
                now.add(line_base_ + static_cast<int>(special % line_range_));
                if (emit()) return before;
                continue;
            }
            switch (opcode) {
                case kExtended: {
                    ByteReader operands(in_.part(in_.uleb()));
                    const auto kind = operands.take<std::uint8_t>();
                    if (kind == kEndSequence) {
                        if (emit()) return before;
                        before.reset();
                        now = {};
                        dropped = true;
                    } else if (kind == kSetAddress) {
                        now.address = operands.take<std::uint64_t>();
                        dropped = now.address == 0;
                    }
                    break;
                }
                case kCopy:
                    if (emit()) return before;
                    break;
                case kAdvancePc:
                    now.address += in_.uleb() * instruction_bytes_;
                    break;
                case kAdvanceLine:
                    now.add(in_.sleb());
                    break;
                case kSetFile:
                    now.file = in_.uleb();
                    break;
                case kConstAddPc:
                    now.address += (255u - opcode_base_) / line_range_ * instruction_bytes_;
                    break;
                case kFixedAdvancePc:
                    now.address += in_.take<std::uint16_t>();
                    break;
                default:
                    for (unsigned n = 0; n < operands_[opcode]; ++n)
                        in_.uleb();
                    break;
            }
        }
        return {};
    }

    std::string name_of(const Row& row) const {
        // Line 0 is code that belongs to no line.
        if (row.file >= files_.size() || row.line <= 0) return {};
        const File& file = files_[row.file];
        if (file.name.empty()) return {};
        std::string path;
        // The first directory is the one in which the compiler was called, and goes without saying.
        if (file.directory != 0 && file.directory < directories_.size() && !file.name.starts_with('/'))
            path = fmt::format("{}/", directories_[file.directory]);
        return fmt::format("{}{}:{}", printable(path), printable(file.name), row.line);
    }

    const LineTables& tables_;
    ByteReader in_;
    bool wide_;
    std::uint16_t version_ = 0;
    std::uint8_t instruction_bytes_ = 0, line_range_ = 0, opcode_base_ = 0;
    int line_base_ = 0;
    std::array<std::uint8_t, 256> operands_{};
    std::vector<std::string_view> directories_;
    std::vector<File> files_;
};

// What `ask` finds in the first unit that has it.
template <typename Ask>
std::string first_of(const LineTables& tables, Ask&& ask) {
    ByteReader in(tables.line);
    while (in.more()) {
        std::uint64_t bytes = in.take<std::uint32_t>();
        const bool wide = bytes == 0xffffffffu;
        if (wide) bytes = in.take<std::uint64_t>();
        const auto unit = in.part(bytes);
        if (!in.good()) break;
        if (std::string found = ask(Unit(tables, unit, wide)); !found.empty()) return found;
    }
    return {};
}

}  // namespace

LineTables LineTables::of(std::span<const std::byte> file) {
    LineTables tables;
    const auto header = read_at<Elf64_Ehdr>(file, 0);
    if (!header || header->e_shentsize != sizeof(Elf64_Shdr)) return tables;
    const auto section = [&](std::uint64_t number) {
        if (header->e_shoff > file.size()) return std::optional<Elf64_Shdr>();
        return read_at<Elf64_Shdr>(file, header->e_shoff + number * sizeof(Elf64_Shdr));
    };
    const auto names = section(header->e_shstrndx);
    if (!names) return tables;
    const auto strings = part_of(file, names->sh_offset, names->sh_size);
    for (std::uint64_t n = 0; n < header->e_shnum; ++n) {
        const auto each = section(n);
        if (!each || each->sh_type != SHT_PROGBITS || (each->sh_flags & SHF_COMPRESSED) != 0 ||
            each->sh_name >= strings.size())
            continue;
        const std::string_view name = ByteReader(strings.subspan(each->sh_name)).text();
        std::vector<std::byte>* to = name == ".debug_line"       ? &tables.line
                                     : name == ".debug_line_str" ? &tables.line_str
                                     : name == ".debug_str"      ? &tables.str
                                                                 : nullptr;
        const auto bytes = part_of(file, each->sh_offset, each->sh_size);
        if (to != nullptr) to->assign(bytes.begin(), bytes.end());
    }
    if (tables.line.empty()) return {};
    return tables;
}

std::string LineTables::find(std::uint64_t offset) const {
    return first_of(*this, [&](Unit unit) { return unit.find(offset); });
}

std::string LineTables::find_function(std::uint64_t offset, std::uint64_t bytes) const {
    std::string own = first_of(*this, [&](Unit unit) { return unit.find_own(offset, offset + bytes); });
    return own.empty() ? find(offset) : own;
}

}  // namespace orrery::umd
