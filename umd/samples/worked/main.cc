// worked: programs that are slow for one reason, and mended, for docs/profiling-cases.md.
#include <fmt/format.h>
#include <orrery/group.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <orrery/embedded_kernel.hpp>
#include <span>
#include <utility>

#include "umd/samples/support/sample.h"
#include "umd/samples/worked/kernels.h"

ORR_EMBEDDED_KERNEL(worked_kernels);

namespace {

using namespace orrery::sample;
using orrery::DeviceArray;
using orrery::Stream;

constexpr const char* kHelp =
    "usage: worked host|memory [--mended]\n"
    "       orrery-run -n RANKS --topology ring -- worked rank [--mended]\n"
    "Programs that are slow for one reason, and the same mended; docs/profiling-cases.md finds out why.\n"
    "\n"
    "  host    relaxes a rod step by step, and looks at each step's change\n"
    "  memory  three operations on each element, one kernel each\n"
    "  rank    blocks of work, shared by ranks that meet after each round\n"
    "Exit status: 0 all correct, 1 a wrong result or a failure, 2 a mistake in the command line.\n";

class Kernels {
  public:
    Kernels() : library_(worked_kernels_image()) { library_.preload(); }
    void launch(const char* name, const WorkedArgs& args, const Stream& stream) const {
        orrery::launch(library_.function(name), {groups(), 1, 1}, {1, 1, 1}, args, 0, stream);
    }
    static std::uint32_t groups() { return orrery::device_properties(orrery::current_device()).vector_cores; }

  private:
    orrery::Library library_;
};

int told(std::string_view what, bool right, const std::vector<float>& result) {
    fmt::print("{}: {}, {}\n", what, right ? "correct" : "WRONG", digest(std::as_bytes(std::span(result))));
    return right && std::fflush(stdout) == 0 ? 0 : 1;
}

int relax_rod(bool mended) {
    constexpr std::size_t kCount = 64 << 10, kSteps = 40;
    std::vector<float> rod(kCount + 2, 0.0f), next;
    rod.front() = 1.0f;
    rod.back() = -1.0f;
    const DeviceArray<float> card[2] = {DeviceArray<float>(rod.size()), DeviceArray<float>(rod.size())};
    for (const auto& side : card)
        orrery::copy(side.data(), rod.data(), side.bytes());
    const std::uint32_t groups = Kernels::groups();
    const DeviceArray<float> change(kSteps * groups);
    std::vector<float> changes(change.size());
    const Kernels kernels;
    const Stream stream;
    for (std::size_t step = 0; step < kSteps; ++step) {
        float* const own = change.data() + step * groups;
        kernels.launch("relax", {card[(step + 1) % 2].data(), card[step % 2].data(), nullptr, own, kCount, 0},
                       stream);
        if (mended) continue;
        stream.synchronize();
        orrery::copy(changes.data() + step * groups, own, groups * sizeof(float));
    }
    if (mended) orrery::copy(changes.data(), change.data(), change.bytes(), stream);
    stream.synchronize();

    const std::vector<float> got = from_card(card[kSteps % 2]);
    bool right = true;
    next = rod;
    for (std::size_t step = 0; step < kSteps; ++step) {
        float most = 0;
        for (std::size_t i = 1; i <= kCount; ++i) {
            next[i] = (rod[i - 1] + rod[i + 1]) * 0.5f;
            most = std::max(most, std::abs(next[i] - rod[i]));
        }
        std::swap(rod, next);
        const auto own = changes.begin() + static_cast<std::ptrdiff_t>(step * groups);
        right = right && *std::max_element(own, own + groups) == most;
    }
    return told("the rod", right && got == rod, got);
}

int three_operations(bool mended) {
    constexpr std::size_t kCount = 2 << 20, kRounds = 24;
    std::vector<float> x = random_floats(kCount, 1);
    const std::vector<float> y = random_floats(kCount, 2);
    const auto card_x = to_card<float>(x), card_y = to_card<float>(y);
    const DeviceArray<float> scaled(kCount), sum(kCount);
    const Kernels kernels;
    const Stream stream;
    for (std::size_t round = 0; round < kRounds; ++round) {
        if (mended) {
            kernels.launch("scale_add_clip",
                           {card_x.data(), card_x.data(), card_y.data(), nullptr, kCount, 0}, stream);
        } else {
            kernels.launch("scale", {scaled.data(), card_x.data(), nullptr, nullptr, kCount, 0}, stream);
            kernels.launch("add", {sum.data(), scaled.data(), card_y.data(), nullptr, kCount, 0}, stream);
            kernels.launch("clip", {card_x.data(), sum.data(), nullptr, nullptr, kCount, 0}, stream);
        }
    }
    stream.synchronize();
    const std::vector<float> got = from_card(card_x);
    for (std::size_t i = 0; i < kCount; ++i) {
        for (std::size_t round = 0; round < kRounds; ++round) {
            const float more = x[i] * 1.5f;
            x[i] = std::clamp(more + y[i], 0.0f, 1.0f);
        }
    }
    return told("the sums", got == x, got);
}

unsigned variable(const char* name) {
    const char* const text = std::getenv(name);
    if (text == nullptr) throw std::runtime_error(fmt::format("{} is not set: start it by orrery-run", name));
    return number(name, text, 0, 1'000);
}

class Group {
  public:
    Group(unsigned rank, unsigned ranks) {
        const char* const text = std::getenv("ORR_TOKEN");
        orrGroupToken token{};
        const std::string_view words = text == nullptr ? "" : text;
        if (words.empty() || words.size() >= sizeof token.text)
            throw std::runtime_error("ORR_TOKEN is not set: start it by orrery-run");
        words.copy(token.text, words.size());
        orrGroupJoinParams params = ORR_INIT(orrGroupJoinParams);
        params.rank = static_cast<int>(rank);
        params.members = static_cast<int>(ranks);
        params.limit_ns = 60'000'000'000;
        orrery::check(orrGroupJoin(&group_, &token, &params));
    }
    ~Group() { orrGroupDestroy(group_); }
    Group(const Group&) = delete;
    Group& operator=(const Group&) = delete;
    void meet(const Stream& stream) const {
        orrery::check(orrGroupBarrierAsync(group_, stream.handle(), nullptr));
    }
    void meet() const { orrery::check(orrGroupBarrier(group_, 60'000'000'000)); }

  private:
    orrGroup_t group_ = nullptr;
};

// Blocks first .. first + count - 1 of all.
struct Share {
    unsigned first, count;
};
Share share_of(unsigned rank, unsigned ranks, unsigned blocks, bool mended) {
    const unsigned each = blocks / ranks, rest = blocks % ranks;
    // As it is often written: the last one takes what is left.
    if (!mended) return {rank * each, each + (rank + 1 == ranks ? rest : 0)};
    return {rank * each + std::min(rank, rest), each + (rank < rest ? 1 : 0)};
}

int shared_blocks(bool mended) {
    constexpr unsigned kBlocks = 11, kRounds = 6, kIterations = 400;
    constexpr std::size_t kCount = 64 << 10;
    const unsigned rank = variable("ORR_RANK"), ranks = variable("ORR_RANKS");
    orrery::check(orrSetDevice(static_cast<int>(variable("ORR_LOCAL_RANK"))));
    const Group group(rank, ranks);
    const Share share = share_of(rank, ranks, kBlocks, mended);
    const std::size_t count = share.count * kCount;
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = static_cast<float>((share.first * kCount + i) % 1'000);
    const auto blocks = to_card<float>(values);
    const Kernels kernels;
    const Stream stream;
    group.meet();  // all have their blocks
    for (unsigned round = 0; round < kRounds; ++round) {
        for (unsigned block = 0; block < share.count; ++block) {
            float* const own = blocks.data() + block * kCount;
            kernels.launch("iterate", {own, own, nullptr, nullptr, kCount, kIterations}, stream);
        }
        group.meet(stream);
    }
    stream.synchronize();
    const std::vector<float> got = from_card(blocks);
    for (float& x : values) {
        for (unsigned i = 0; i < kRounds * kIterations && x * 0.5f + 1.0f != x; ++i)
            x = x * 0.5f + 1.0f;
    }
    return told(fmt::format("{} blocks of rank {}", share.count, rank), got == values, got);
}

}  // namespace

int main(int argc, char** argv) {
    return run_command(argc, argv, kHelp, [&] {
        const std::string_view name = argc > 1 ? argv[1] : "";
        const bool mended = argc == 3 && std::string_view(argv[2]) == "--mended";
        if (argc == 2 || mended) {
            if (name == "host") return relax_rod(mended);
            if (name == "memory") return three_operations(mended);
            if (name == "rank") return shared_blocks(mended);
        }
        throw UsageError(fmt::format("which case?\n{}", kHelp));
    });
}
