/* SPDX-License-Identifier: MIT */
/*
 * The firmware image and the boot ROM. The image is this header followed by a RISC-V ELF64
 * executable. The ROM reads it from host memory once, checks it, loads its segments into SRAM
 * and starts the control core at the ELF's entry. Checks are made in the order of the status
 * codes; nothing of the ELF is looked at before its hash and signature hold.
 */
#ifndef ORRERY_HW_BOOT_H
#define ORRERY_HW_BOOT_H

#include "base.h"

#define ORR_IMAGE_MAGIC 0x313057465952524full /* "ORRYFW01" as bytes in memory */
#define ORR_IMAGE_MAX_SIZE 0x400000u /* 4 MiB */

struct orr_image_header {
	uint64_t magic; /* ORR_IMAGE_MAGIC */
	uint32_t header_size; /* sizeof(struct orr_image_header) */
	uint32_t image_size; /* bytes, header included */
	uint32_t hw_version; /* ORR_HW_VERSION that it was built for: same major, minor <= card's */
	uint32_t fw_abi; /* major << 16 | minor of the firmware's contracts; the ROM does not look */
	uint32_t fw_version; /* the firmware's own version; the ROM does not look */
	uint32_t reserved0; /* 0 */
	uint8_t build_id[32]; /* free text, zero-padded; the ROM does not look */
	uint8_t sha256[32]; /* of the ELF */
	uint8_t reserved1[64]; /* 0 */
	/* Ed25519 over all bytes above; all zero: unsigned. */
	uint8_t signature[64];
};
ORR_ASSERT_OFFSET(struct orr_image_header, sha256, 64);
ORR_ASSERT_OFFSET(struct orr_image_header, signature, 160);
ORR_ASSERT_SIZE(struct orr_image_header, 224);

#define ORR_BOOT_IDLE 0u
#define ORR_BOOT_BUSY 1u
#define ORR_BOOT_OK 2u
#define ORR_BOOT_BAD_ADDRESS 3u /* image not in memory mapped for DMA */
#define ORR_BOOT_TOO_SMALL 4u /* shorter than a header, or than the header says; detail: bytes wanted */
#define ORR_BOOT_BAD_MAGIC 5u
#define ORR_BOOT_BAD_HEADER 6u /* sizes inconsistent, over ORR_IMAGE_MAX_SIZE, reserved not 0 */
#define ORR_BOOT_HW_VERSION 7u /* detail: the image's hw_version */
#define ORR_BOOT_BAD_HASH 8u /* corrupted */
#define ORR_BOOT_UNSIGNED 9u
#define ORR_BOOT_BAD_SIGNATURE 10u /* not signed with the key in the card's fuses */
#define ORR_BOOT_BAD_ELF 11u /* not a static little-endian RISC-V ELF64 executable */
#define ORR_BOOT_ELF_RANGE 12u /* a segment or the entry lies outside SRAM; detail: segment number */
#define ORR_BOOT_NO_KEY 13u /* the card has no public key in its fuses */

#endif /* ORRERY_HW_BOOT_H */
