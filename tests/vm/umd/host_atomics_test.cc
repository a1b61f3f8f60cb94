// Kernels' atomics on host memory are AtomicOps of PCIe: the driver switches them on where the platform
// completes them, and without them they are a fault that says so.
#include <fcntl.h>
#include <unistd.h>

#include <cstring>

#include "tests/vm/umd/helpers.h"

namespace orrery::umd::vm {
namespace {

// Configuration space of the card, as setpci uses it.
class PcieControl {
  public:
    explicit PcieControl(const orrDeviceProp& prop)
        : fd_(::open(("/sys/bus/pci/devices/" + std::string(prop.pci_address) + "/config").c_str(),
                     O_RDWR | O_CLOEXEC)) {
        constexpr std::uint8_t kPcie = 0x10;
        for (at_ = get(0x34) & 0xff; at_ != 0 && (get(at_) & 0xff) != kPcie;)
            at_ = get(at_) >> 8 & 0xff;
    }
    ~PcieControl() { ::close(fd_); }
    bool atomics() const { return at_ != 0 && (get(at_ + kControl2) & kRequester) != 0; }
    void set_atomics(bool on) const {
        const auto old = static_cast<std::uint16_t>(get(at_ + kControl2));
        const auto now = static_cast<std::uint16_t>(on ? old | kRequester : old & ~kRequester);
        ASSERT_EQ(::pwrite(fd_, &now, sizeof now, at_ + kControl2), ssize_t{sizeof now});
    }

  private:
    static constexpr int kControl2 = 0x28;
    static constexpr unsigned kRequester = 0x40;
    unsigned get(int at) const {
        std::uint16_t value = 0;
        EXPECT_EQ(::pread(fd_, &value, sizeof value, at), ssize_t{sizeof value});
        return value;
    }
    int fd_;
    int at_ = 0;
};

class AtomicsTest : public ::testing::Test {
  protected:
    void SetUp() override {
        ASSERT_OK(orrGetDeviceProperties(&prop_, 0));
        ASSERT_OK(orrMallocHost(reinterpret_cast<void**>(&host_), 4096, 0));
        ASSERT_OK(orrMalloc(reinterpret_cast<void**>(&vram_), 4096));
        std::memset(host_, 0, 4096);
        ASSERT_OK(orrMemset(vram_, 0, 4096));
    }
    void TearDown() override {
        ASSERT_OK(orrFreeHost(host_));
        ASSERT_OK(orrFree(vram_));
    }
    // Adds to a word there, 6 x 10 times.
    orrError_t add(std::uint64_t* word) {
        const orrError_t launched = card_.launch("add_atomically", {word, 0, 3}, 6, 10);
        return launched != orrSuccess ? launched : orrStreamSynchronize(card_.stream);
    }
    void expect_refused(const char* advice) {
        EXPECT_FAIL(add(host_ + 5), orrErrorIllegalAddress, "kernel 'add_atomically'");
        const std::string text = orrGetLastErrorText();
        EXPECT_THAT(text, ::testing::HasSubstr("with an atomic on host memory"));
        EXPECT_THAT(text, ::testing::HasSubstr("40 bytes into the "));
        EXPECT_THAT(text, ::testing::HasSubstr(advice));
        EXPECT_THAT(text, ::testing::ContainsRegex("at pc 0x[0-9a-f]+ \\(.*kernel\\.h:[1-9][0-9]*"));
        EXPECT_EQ(host_[5], 0u);
        card_.renew_stream();
    }
    void expect_in_card_memory() {
        ASSERT_OK(add(vram_));
        std::uint64_t word = 0;
        ASSERT_OK(orrMemcpy(&word, vram_, 8, orrMemcpyDefault));
        EXPECT_EQ(word, 6u * 10 * 3);
    }

    Card card_{0};
    orrDeviceProp prop_ = ORR_INIT(orrDeviceProp);
    std::uint64_t* host_ = nullptr;
    std::uint64_t* vram_ = nullptr;
};

using HostAtomics = AtomicsTest;
using NoHostAtomics = AtomicsTest;

TEST_F(HostAtomics, AreOnByDefault) {
    EXPECT_EQ(prop_.host_atomics, 1u);
    EXPECT_TRUE(PcieControl(prop_).atomics());
    ASSERT_OK(add(host_));
    EXPECT_EQ(host_[0], 6u * 10 * 3);
    expect_in_card_memory();
}

TEST_F(HostAtomics, FaultWhileTheBitIsOff) {
    const PcieControl control(prop_);
    ASSERT_OK(add(host_)) << "so that the page is known";
    control.set_atomics(false);
    ASSERT_FALSE(control.atomics());
    expect_refused("in PCIe Device Control 2, where the driver had switched them on: bind it again");
    expect_in_card_memory();
    control.set_atomics(true);
    ASSERT_OK(add(host_));
    EXPECT_EQ(host_[0], 2u * 6 * 10 * 3);
}

TEST_F(NoHostAtomics, AreNotAskedFor) {
    EXPECT_EQ(prop_.host_atomics, 0u);
    const PcieControl control(prop_);
    EXPECT_FALSE(control.atomics());
    expect_refused("the platform completes none (host_atomics of orrGetDeviceProperties): use card memory");
    expect_in_card_memory();
    // The bit alone does not make a platform that completes them.
    control.set_atomics(true);
    EXPECT_TRUE(control.atomics());
    expect_refused("the platform completes none (host_atomics of orrGetDeviceProperties): use card memory");
    control.set_atomics(false);
}

}  // namespace
}  // namespace orrery::umd::vm
