// Files that programs give the path of.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <vector>

#include "umd/runtime/elf_image.h"

namespace orrery::umd {

inline Result<std::vector<std::byte>> read_module_file(const char* path) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rbe"), std::fclose);
    if (file == nullptr) return fail_errno(errno, fmt::format("opening the module {}", path));
    std::vector<std::byte> bytes;
    std::byte piece[65536];
    for (std::size_t got = sizeof(piece); got == sizeof(piece);) {
        got = std::fread(piece, 1, sizeof(piece), file.get());
        bytes.insert(bytes.end(), piece, piece + got);
        if (bytes.size() > ElfImage::kMaxFile) {
            return fail(orrErrorInvalidImage, "{} is larger than {} bytes", path, ElfImage::kMaxFile);
        }
    }
    if (std::ferror(file.get()) != 0) return fail_errno(errno, fmt::format("reading the module {}", path));
    return bytes;
}

}  // namespace orrery::umd
