#include "umd/samples/kernel_image.h"

asm(".section .rodata\n"
    ".balign 8\n"
    "kernel_image_begin:\n"
    ".incbin \"" KERNEL_IMAGE
    "\"\n"
    "kernel_image_end:\n"
    ".previous\n");

// NOLINTBEGIN(readability-identifier-naming): labels of the assembler
extern const std::byte begin_label[] asm("kernel_image_begin");
extern const std::byte end_label[] asm("kernel_image_end");
// NOLINTEND(readability-identifier-naming)

std::span<const std::byte> kernel_image() {
    return {begin_label, end_label};
}
