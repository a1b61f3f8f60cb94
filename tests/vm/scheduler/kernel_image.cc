#include "tests/vm/scheduler/kernel_image.h"

asm(".section .rodata\n"
    ".balign 8\n"
    "scheduler_test_image_begin:\n"
    ".incbin \"" TEST_IMAGE
    "\"\n"
    "scheduler_test_image_end:\n"
    ".previous\n");

// NOLINTBEGIN(readability-identifier-naming): labels of the assembler
extern const std::byte begin_label[] asm("scheduler_test_image_begin");
extern const std::byte end_label[] asm("scheduler_test_image_end");
// NOLINTEND(readability-identifier-naming)

std::span<const std::byte> kernel_image() {
    return {begin_label, end_label};
}
