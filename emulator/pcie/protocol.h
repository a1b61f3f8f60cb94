// The vfio-user protocol on the wire, as far as a PCI function without migration needs it.
//
// Sources: the protocol specification in QEMU's tree (docs/interop/vfio-user.rst), which takes its payloads
// from the kernel's <linux/vfio.h>. All fields are in host byte order, which here is little-endian.
#pragma once

#include <cstddef>
#include <cstdint>

namespace orrery::emu::wire {

// Specification, section "Header". Every message starts with one.
struct Header {
    uint16_t id;       // chosen by the sender, echoed in the reply
    uint16_t command;  // Command
    uint32_t size;     // bytes, header included
    uint32_t flags;    // kFlag*
    uint32_t error;    // errno in an error reply, else 0
};
static_assert(sizeof(Header) == 16);

inline constexpr uint32_t kFlagTypeMask = 0xf;
inline constexpr uint32_t kFlagCommand = 0x0;
inline constexpr uint32_t kFlagReply = 0x1;
inline constexpr uint32_t kFlagNoReply = 0x10;
inline constexpr uint32_t kFlagError = 0x20;

// Specification, section "Commands". 14 was DIRTY_PAGES in drafts and is unused now.
enum Command : uint16_t {
    kVersion = 1,
    kDmaMap = 2,
    kDmaUnmap = 3,
    kDeviceGetInfo = 4,
    kDeviceGetRegionInfo = 5,
    kDeviceGetRegionIoFds = 6,
    kDeviceGetIrqInfo = 7,
    kDeviceSetIrqs = 8,
    kRegionRead = 9,
    kRegionWrite = 10,
    kDmaRead = 11,   // server to client only
    kDmaWrite = 12,  // server to client only
    kDeviceReset = 13,
    kDirtyPages = 14,
    kRegionWriteMulti = 15,
    kDeviceFeature = 16,
    kMigDataRead = 17,
    kMigDataWrite = 18,
};

// VERSION, both ways; a JSON text with its terminating NUL may follow.
struct Version {
    uint16_t major;
    uint16_t minor;
};
static_assert(sizeof(Version) == 4);
inline constexpr uint16_t kVersionMajor = 0;
inline constexpr uint16_t kVersionMinor = 0;

// DMA_MAP (struct vfio_iommu_type1_dma_map); at most one descriptor comes with it.
struct DmaMap {
    uint32_t argsz;
    uint32_t flags;  // kDmaReadable, kDmaWritable
    uint64_t offset;
    uint64_t address;
    uint64_t size;
};
static_assert(sizeof(DmaMap) == 32);
inline constexpr uint32_t kDmaReadable = 1;
inline constexpr uint32_t kDmaWritable = 2;

// DMA_UNMAP, both ways (struct vfio_iommu_type1_dma_unmap).
struct DmaUnmap {
    uint32_t argsz;
    uint32_t flags;  // kUnmapAll, or 0
    uint64_t address;
    uint64_t size;
};
static_assert(sizeof(DmaUnmap) == 24);
inline constexpr uint32_t kUnmapAll = 2;  // VFIO_DMA_UNMAP_FLAG_ALL; address and size are 0 then

// DEVICE_GET_INFO, both ways (struct vfio_device_info).
struct DeviceInfo {
    uint32_t argsz;
    uint32_t flags;
    uint32_t num_regions;
    uint32_t num_irqs;
};
static_assert(sizeof(DeviceInfo) == 16);
inline constexpr uint32_t kDeviceFlagReset = 1;
inline constexpr uint32_t kDeviceFlagPci = 2;

// Region indices of a PCI device (VFIO_PCI_*_REGION_INDEX); 0..5 are the BARs.
inline constexpr uint32_t kRegionRom = 6;
inline constexpr uint32_t kRegionConfig = 7;
inline constexpr uint32_t kRegionVga = 8;
inline constexpr uint32_t kRegionCount = 9;

// DEVICE_GET_REGION_INFO, both ways (struct vfio_region_info).
struct RegionInfo {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t cap_offset;  // from the start of this structure; 0 without capabilities
    uint64_t size;
    uint64_t offset;  // file offset of the region's start in the descriptor that comes with the reply
};
static_assert(sizeof(RegionInfo) == 32);
inline constexpr uint32_t kRegionFlagRead = 1;
inline constexpr uint32_t kRegionFlagWrite = 2;
inline constexpr uint32_t kRegionFlagMmap = 4;
inline constexpr uint32_t kRegionFlagCaps = 8;

// Region capability: which parts can be mapped (VFIO_REGION_INFO_CAP_SPARSE_MMAP); areas follow.
struct SparseMmap {
    uint16_t id;
    uint16_t version;
    uint32_t next;
    uint32_t nr_areas;
    uint32_t reserved;
};
static_assert(sizeof(SparseMmap) == 16);
struct SparseArea {
    uint64_t offset;
    uint64_t size;
};
static_assert(sizeof(SparseArea) == 16);
inline constexpr uint16_t kCapSparseMmap = 1;

// DEVICE_GET_IRQ_INFO, both ways (struct vfio_irq_info).
struct IrqInfo {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t count;
};
static_assert(sizeof(IrqInfo) == 16);
inline constexpr uint32_t kIrqFlagEventfd = 1;
inline constexpr uint32_t kIrqFlagMaskable = 2;

// DEVICE_SET_IRQS (struct vfio_irq_set); one byte a vector follows with kIrqDataBool, one descriptor a vector
// (or none at all: take away) comes with kIrqDataEventfd.
struct IrqSet {
    uint32_t argsz;
    uint32_t flags;
    uint32_t index;
    uint32_t start;
    uint32_t count;
};
static_assert(sizeof(IrqSet) == 20);
inline constexpr uint32_t kIrqDataNone = 1 << 0;
inline constexpr uint32_t kIrqDataBool = 1 << 1;
inline constexpr uint32_t kIrqDataEventfd = 1 << 2;
inline constexpr uint32_t kIrqActionMask = 1 << 3;
inline constexpr uint32_t kIrqActionUnmask = 1 << 4;
inline constexpr uint32_t kIrqActionTrigger = 1 << 5;

// REGION_READ and REGION_WRITE, both ways; `count` bytes of data follow a write and the reply to a read.
struct RegionAccess {
    uint64_t offset;
    uint32_t region;
    uint32_t count;
};
static_assert(sizeof(RegionAccess) == 16);

// Limits. The largest transfer is the protocol's default, so a client that reads no capabilities fits too.
inline constexpr uint32_t kMaxTransfer = 1024 * 1024;
inline constexpr uint32_t kMaxMessage = sizeof(Header) + sizeof(RegionAccess) + kMaxTransfer;
inline constexpr unsigned kMaxMessageFds = 16;  // more than QEMU can send at once
inline constexpr size_t kMaxDmaMaps = 65535;    // the protocol's default
inline constexpr uint64_t kDmaPageSize = 4096;

}  // namespace orrery::emu::wire
