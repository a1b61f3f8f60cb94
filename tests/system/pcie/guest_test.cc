// Runs in the guest, against the test card: what a driver meets, seen through the kernel's own vfio-pci.
// Usage: pcie_guest_test (with vfio-pci loaded and an IOMMU).
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/vfio.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/unit/pcie/test_card.h"

namespace orrery::test {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kIova = 0x10000000;
constexpr size_t kDmaBytes = 64 << 10;

std::string read_line(const fs::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

// sysfs folder of the one test card.
fs::path find_card() {
    for (const auto& entry : fs::directory_iterator("/sys/bus/pci/devices")) {
        if (read_line(entry.path() / "vendor") == "0x1af4" &&
            read_line(entry.path() / "device") == "0x10f0") {
            return entry.path();
        }
    }
    return {};
}

class Guest : public testing::Test {
  protected:
    static void SetUpTestSuite() {
        card_ = find_card();
        ASSERT_FALSE(card_.empty());
        const std::string address = card_.filename();
        std::ofstream(card_ / "driver_override") << "vfio-pci";
        std::ofstream("/sys/bus/pci/drivers_probe") << address;
        const fs::path group = fs::read_symlink(card_ / "iommu_group").filename();
        container_ = ::open("/dev/vfio/vfio", O_RDWR);
        ASSERT_GE(container_, 0) << std::strerror(errno);
        const int group_fd = ::open(("/dev/vfio" / group).c_str(), O_RDWR);
        ASSERT_GE(group_fd, 0) << std::strerror(errno);
        ASSERT_EQ(::ioctl(group_fd, VFIO_GROUP_SET_CONTAINER, &container_), 0) << std::strerror(errno);
        ASSERT_EQ(::ioctl(container_, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU), 0) << std::strerror(errno);
        device_ = ::ioctl(group_fd, VFIO_GROUP_GET_DEVICE_FD, address.c_str());
        ASSERT_GE(device_, 0) << std::strerror(errno);
        bar0_ = map_bar(0, 4096);
        ASSERT_NE(bar0_, nullptr);
        command(6);
    }

    static vfio_region_info region(uint32_t index) {
        vfio_region_info info{};
        info.argsz = sizeof info;
        info.index = index;
        EXPECT_EQ(::ioctl(device_, VFIO_DEVICE_GET_REGION_INFO, &info), 0);
        return info;
    }
    static std::byte* map_bar(uint32_t index, size_t size, uint64_t offset = 0) {
        void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, device_,
                         static_cast<off_t>(region(index).offset + offset));
        return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
    }
    template <typename T>
    static T config(uint64_t at) {
        T value{};
        EXPECT_EQ(::pread(device_, &value, sizeof value,
                          static_cast<off_t>(region(VFIO_PCI_CONFIG_REGION_INDEX).offset + at)),
                  static_cast<ssize_t>(sizeof value));
        return value;
    }
    static void command(uint16_t value) {
        EXPECT_EQ(
            ::pwrite(device_, &value, 2, static_cast<off_t>(region(VFIO_PCI_CONFIG_REGION_INDEX).offset + 4)),
            2);
    }
    static uint64_t get(Register reg) { return *reinterpret_cast<volatile uint64_t*>(bar0_ + reg); }
    static void set(Register reg, uint64_t value) {
        *reinterpret_cast<volatile uint64_t*>(bar0_ + reg) = value;
    }

    static uint32_t vectors(uint32_t index) {
        vfio_irq_info info{};
        info.argsz = sizeof info;
        info.index = index;
        EXPECT_EQ(::ioctl(device_, VFIO_DEVICE_GET_IRQ_INFO, &info), 0);
        return info.count;
    }

    static inline fs::path card_;
    static inline int container_ = -1;
    static inline int device_ = -1;
    static inline std::byte* bar0_ = nullptr;
};

TEST_F(Guest, SeesTheIdentity) {
    EXPECT_EQ(read_line(card_ / "class"), "0x120000");
    EXPECT_EQ(read_line(card_ / "subsystem_vendor"), "0x1af4");
    EXPECT_EQ(read_line(card_ / "revision"), "0x01");
    EXPECT_EQ(config<uint32_t>(0), 0x10f01af4u);
}

TEST_F(Guest, SeesARealLink) {
    EXPECT_EQ(read_line(card_ / "current_link_speed"), "16.0 GT/s PCIe");
    EXPECT_EQ(read_line(card_ / "current_link_width"), "16");
    EXPECT_EQ(read_line(card_ / "max_link_speed"), "16.0 GT/s PCIe");
    EXPECT_EQ(read_line(card_ / "max_link_width"), "16");
    EXPECT_EQ(read_line(card_ / "reset_method").substr(0, 3), "flr");
}

TEST_F(Guest, SeesTheSerialNumber) {
    unsigned at = 0x100;
    while (at != 0 && (config<uint32_t>(at) & 0xffff) != 0x0003)
        at = config<uint32_t>(at) >> 20;
    ASSERT_NE(at, 0u) << "no device serial number capability";
    EXPECT_EQ(config<uint32_t>(at + 4), 0x89abcdefu);
    EXPECT_EQ(config<uint32_t>(at + 8), 0x01234567u);
}

TEST_F(Guest, SeesTheBars) {
    EXPECT_EQ(region(0).size, ORR_BAR_REGS_SIZE);
    EXPECT_EQ(region(1).size, 0u);
    EXPECT_EQ(region(2).size, kVramSize);
    EXPECT_EQ(region(4).size, kDoorbellSize);
}

TEST_F(Guest, ReachesTrappedRegisters) {
    EXPECT_EQ(get(kRegMagic), kMagic);
    set(kRegScratch, 0x123456789abcdef0);
    EXPECT_EQ(get(kRegScratch), 0x123456789abcdef0u);
    EXPECT_EQ(*reinterpret_cast<volatile uint32_t*>(bar0_ + kRegScratch + 4), 0x12345678u);
}

TEST_F(Guest, SharesVramWithTheCard) {
    std::byte* vram = map_bar(2, kVramSize);
    ASSERT_NE(vram, nullptr);
    for (const uint64_t at : {uint64_t{0}, uint64_t{0x12340}, kVramSize - 8}) {
        *reinterpret_cast<volatile uint64_t*>(vram + at) = at ^ 0x5555;
        set(kRegVramWord, at);
        EXPECT_EQ(get(kRegVramData), at ^ 0x5555);
        set(kRegVramData, ~at);
        EXPECT_EQ(*reinterpret_cast<volatile uint64_t*>(vram + at), ~at);
    }
    ::munmap(vram, kVramSize);
}

TEST_F(Guest, TrapsOnlyTheUpperHalfOfTheDoorbells) {
    std::byte* lower = map_bar(4, 4096);
    std::byte* upper = map_bar(4, 4096, kDoorbellSize / 2);
    ASSERT_NE(lower, nullptr);
    ASSERT_NE(upper, nullptr);
    const uint64_t before = get(kRegKicks);
    *reinterpret_cast<volatile uint64_t*>(lower) = 77;
    EXPECT_EQ(*reinterpret_cast<volatile uint64_t*>(lower), 77u);
    EXPECT_EQ(get(kRegKicks), before);
    *reinterpret_cast<volatile uint64_t*>(upper) = 1;
    EXPECT_EQ(get(kRegKicks), before + 1);
}

TEST_F(Guest, GetsEachInterrupt) {
    const uint32_t index =
        vectors(VFIO_PCI_MSIX_IRQ_INDEX) > 0 ? VFIO_PCI_MSIX_IRQ_INDEX : VFIO_PCI_MSI_IRQ_INDEX;
    const uint32_t count = vectors(index);
    const char* expected = std::getenv("VECTORS");
    ASSERT_NE(expected, nullptr);
    ASSERT_EQ(std::to_string(count), expected);
    std::vector<std::byte> buffer(sizeof(vfio_irq_set) + count * sizeof(int));
    auto* irqs = reinterpret_cast<vfio_irq_set*>(buffer.data());
    irqs->argsz = static_cast<uint32_t>(buffer.size());
    irqs->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
    irqs->index = index;
    irqs->count = count;
    std::vector<int> fds;
    fds.reserve(count);
    for (uint32_t i = 0; i < count; i++)
        fds.push_back(::eventfd(0, EFD_NONBLOCK));
    std::memcpy(irqs->data, fds.data(), count * sizeof(int));
    ASSERT_EQ(::ioctl(device_, VFIO_DEVICE_SET_IRQS, irqs), 0) << std::strerror(errno);
    for (int round = 0; round < 20; round++) {
        for (uint32_t v = 0; v < emu::kVectorCount; v++) {
            set(kRegRaise, v);
            pollfd wait{fds[v % count], POLLIN, 0};
            ASSERT_EQ(::poll(&wait, 1, 60000), 1) << "vector " << v << ", round " << round;
            uint64_t signals = 0;
            ASSERT_EQ(::read(fds[v % count], &signals, 8), 8);
            EXPECT_EQ(signals, 1u);
            for (uint32_t other = 0; other < count; other++) {
                EXPECT_LT(::read(fds[other], &signals, 8), 0) << "vector " << other << " for " << v;
            }
        }
    }
    irqs->flags = VFIO_IRQ_SET_DATA_NONE | VFIO_IRQ_SET_ACTION_TRIGGER;
    irqs->argsz = sizeof *irqs;
    irqs->count = 0;
    EXPECT_EQ(::ioctl(device_, VFIO_DEVICE_SET_IRQS, irqs), 0);
}

TEST_F(Guest, IsReachedByDma) {
    void* p =
        ::mmap(nullptr, kDmaBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    ASSERT_NE(p, MAP_FAILED);
    auto* memory = static_cast<std::byte*>(p);
    vfio_iommu_type1_dma_map map{};
    map.argsz = sizeof map;
    map.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
    map.vaddr = reinterpret_cast<uint64_t>(p);
    map.iova = kIova;
    map.size = kDmaBytes;
    ASSERT_EQ(::ioctl(container_, VFIO_IOMMU_MAP_DMA, &map), 0) << std::strerror(errno);
    const uint64_t errors = get(kRegDmaErrors);
    for (const uint64_t at : {uint64_t{0}, uint64_t{0x5678}, uint64_t{kDmaBytes - 8}}) {
        set(kRegDmaAddress, kIova + at);
        set(kRegScratch, 0xfeed0000 + at);
        set(kRegDmaCommand, kDmaStore);
        EXPECT_EQ(*reinterpret_cast<volatile uint64_t*>(memory + at), 0xfeed0000 + at);
        *reinterpret_cast<volatile uint64_t*>(memory + at) = ~at;
        set(kRegDmaCommand, kDmaLoad);
        EXPECT_EQ(get(kRegScratch), ~at);
    }
    EXPECT_EQ(get(kRegDmaErrors), errors);
    vfio_iommu_type1_dma_unmap unmap{};
    unmap.argsz = sizeof unmap;
    unmap.iova = kIova;
    unmap.size = kDmaBytes;
    ASSERT_EQ(::ioctl(container_, VFIO_IOMMU_UNMAP_DMA, &unmap), 0) << std::strerror(errno);
    set(kRegDmaCommand, kDmaStore);
    EXPECT_EQ(get(kRegDmaErrors), errors + 1) << "taken back from the card";
}

TEST_F(Guest, ResetsTheFunction) {
    const uint64_t resets = get(kRegResets);
    set(kRegScratch, 99);
    ASSERT_EQ(::ioctl(device_, VFIO_DEVICE_RESET), 0) << std::strerror(errno);
    EXPECT_EQ(get(kRegMagic), kMagic) << "the kernel has restored the BARs";
    EXPECT_EQ(get(kRegScratch), 0u);
    EXPECT_GT(get(kRegResets), resets);
}

}  // namespace
}  // namespace orrery::test
