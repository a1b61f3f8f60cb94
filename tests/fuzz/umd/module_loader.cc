// Any bytes as a kernel module: refused or understood, never believed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "umd/runtime/elf_image.h"
#include "umd/winsys/winsys.h"

namespace {

void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto image = orrery::umd::ElfImage::parse(std::as_bytes(std::span(data, size)));
    if (!image) {
        require(!image.error().text.empty());
        return 0;
    }
    std::uint64_t end = 0;
    for (const auto& segment : image->segments()) {
        require(segment.start >= end && segment.size != 0 && segment.size <= image->size() - segment.start);
        require((segment.bind & ORR_BIND_WRITE) == 0 || (segment.bind & ORR_BIND_EXEC) == 0);
        end = segment.start + segment.size;
    }
    for (const auto& [name, entry] : image->functions())
        require(entry < image->size());
    for (const std::uint64_t at : {std::uint64_t{0}, std::uint64_t{0x1000}, image->size()}) {
        for (const char c : image->lines().find(at))
            require(c >= ' ' && c <= '~');
    }
    require(image->needs().text().starts_with("rv64"));
    if (image->size() < 1u << 20) require(image->relocated(0x7f0000000000).size() == image->size());
    return 0;
}
