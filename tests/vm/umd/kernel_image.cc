#include "tests/vm/umd/helpers.h"

asm(".section .rodata\n"
    ".balign 8\n"
    "umd_test_image_begin:\n"
    ".incbin \"" TEST_IMAGE
    "\"\n"
    "umd_test_image_end:\n"
    ".previous\n");

// NOLINTBEGIN(readability-identifier-naming): labels of the assembler
extern const std::byte begin_label[] asm("umd_test_image_begin");
extern const std::byte end_label[] asm("umd_test_image_end");
// NOLINTEND(readability-identifier-naming)

namespace orrery::umd::vm {

std::span<const std::byte> test_kernels() {
    return {begin_label, end_label};
}

}  // namespace orrery::umd::vm
