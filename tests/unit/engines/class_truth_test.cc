// Kernels' instructions by class, against a list of all that were executed: a core says of each cycle where
// it is (pc_test.cc), and memory what stands there.
#include <algorithm>
#include <numeric>

#include "tests/unit/core/instruction_class.h"
#include "tests/unit/engines/vector_rig.h"

namespace orrery::emu::test {
namespace {

constexpr std::uint64_t kCycle = 1000;

class Log final : public JobLog {
  public:
    explicit Log(const Rig& rig) : rig_(rig) {}
    bool wants_jobs() const override { return false; }
    void job_ended(const Completion&, const JobCounts&) override {}
    void was_at(const PcSample& sample) override {
        if (sample.cause != ORR_PC_ISSUE && sample.cause != ORR_PC_BARRIER) return;
        std::uint32_t bits = 0;
        std::memcpy(&bits, rig_.vram.data() + (sample.pc - kImageBase), sizeof bits);
        // A barrier's ecall is looked at, and then arrives.
        const bool ecall = bits == 0x73;
        if (ecall == (sample.cause == ORR_PC_BARRIER)) executed.add(bits, sample.count);
        compressed += (bits & 3) != 3 ? sample.count : 0;
    }
    ClassCounts executed;
    std::uint64_t compressed = 0;

  private:
    const Rig& rig_;
};

struct Launch {
    Kernel kernel;
    std::vector<std::uint64_t> args;
    std::uint32_t groups = 1;
    std::uint16_t items = 1;
    bool barriers = false;
};

class ClassTruth : public testing::TestWithParam<Launch> {};

// Of scalar instructions: one of vectors may be at its place for many cycles.
TEST_P(ClassTruth, OfAKernel) {
    const Launch& launch = GetParam();
    Rig rig(64 << 20, 64 << 20, 8 << 20, far_memory());
    Log log(rig);
    rig.context.jobs = &log;
    load_image(rig);
    VectorUnit unit(counted_config(), rig.context);
    unit.sample(kCycle);
    std::ranges::copy(launch.args,
                      reinterpret_cast<std::uint64_t*>(rig.vram.data() + kDataOffset + kDataBytes - 4096));
    orr_desc_kernel d =
        kernel_desc(rig, launch.kernel, kData + kDataBytes - 4096, launch.groups, launch.items);
    d.local_bytes = 8192;
    if (launch.barriers) {
        d.item_stacks = kData + (6 << 20);
        d.item_stack_pages = 1;
    }
    EXPECT_EQ(rig.run_one(unit.port(0), d).status, ORR_DONE_OK);
    std::array<std::uint64_t, kScalarClasses> counted{};
    for (unsigned n = 0; n < kScalarClasses; ++n)
        counted.at(n) = rig.counters.get(static_cast<orr_counter>(ORR_CTR_VECTOR_SCALAR_INT + n));
    EXPECT_EQ(counted, log.executed.scalar);
    EXPECT_EQ(std::reduce(counted.begin(), counted.end()), rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS));
    EXPECT_EQ(log.executed.vector, 0u);
    EXPECT_GT(log.compressed, 0u);
    std::printf("%llu instructions, %llu of two bytes\n",
                static_cast<unsigned long long>(rig.counters.get(ORR_CTR_VECTOR_INSTRUCTIONS)),
                static_cast<unsigned long long>(log.compressed));
}

INSTANTIATE_TEST_SUITE_P(Kernels, ClassTruth,
                         testing::Values(Launch{kHistogram, {kData, 3000, kData + (1 << 20)}, 3, 2},
                                         Launch{kAtomics, {0, 0, 200}, 2, 2},
                                         Launch{kFloat, {kData, kData + (1 << 20)}, 2, 4},
                                         Launch{kIds, {}, 2, 4},
                                         Launch{kMix, {50, kData + (3 << 20), 0}, 2, 2},
                                         Launch{kSum, {kData, 1000, kData + (3 << 20)}, 3, 1},
                                         Launch{kEveryAtomic, {kData, kData + (1 << 20)}, 1, 1},
                                         Launch{kTree, {5, kData + (3 << 20)}, 2, 3, true}));

}  // namespace
}  // namespace orrery::emu::test
