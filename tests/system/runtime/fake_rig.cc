// Cards that live in the test's process.
#include <fstream>
#include <iterator>
#include <map>
#include <vector>

#include "tests/system/runtime/rig.h"
#include "tests/unit/umd/fake_winsys.h"
#include "tests/vm/umd/kernels.h"
#include "umd/runtime/elf_image.h"

namespace orrery::umd::conformance {
namespace {

using test::FakeCard;
using test::FakeDispatch;
using test::FakeOutcome;

// The only kernel that the suite uses.
FakeOutcome obey(FakeCard& card, const FakeDispatch& dispatch) {
    std::uint64_t fault = 0;
    const auto* raw = card.translate(dispatch.args, sizeof(TestArgs), ORR_BIND_READ, &fault);
    if (raw == nullptr) return {ORR_QERR_FAULT, dispatch.args, fault};
    const auto args = *reinterpret_cast<const TestArgs*>(raw);
    const auto va = reinterpret_cast<std::uintptr_t>(args.data);
    auto* words =
        reinterpret_cast<std::uint64_t*>(card.translate(va, 16, ORR_BIND_READ | ORR_BIND_WRITE, &fault));
    if (words == nullptr) return {ORR_QERR_FAULT, va, fault};
    std::atomic_ref(words[1]).store(1);
    const bool on = args.count == kObeySpin || args.count == kObeyScribbleOn;
    if (args.count == kObeyScribble || args.count == kObeyScribbleOn) {
        auto* memory = card.translate(args.value, 8, ORR_BIND_WRITE, &fault);
        if (memory == nullptr) return {ORR_QERR_FAULT, args.value, fault};
        std::atomic_ref(*reinterpret_cast<std::uint64_t*>(memory)).store(~0ull);
    }
    if (on || std::atomic_ref(words[0]).load() == 0) return {0, 0, 0, true};
    if (args.count == kObeyTrap) return {ORR_QERR_KERNEL_TRAP, dispatch.entry, 3};
    if (args.count == kObeyStore && card.translate(args.value, 8, ORR_BIND_WRITE, &fault) == nullptr)
        return {ORR_QERR_FAULT, args.value, fault};
    return {};
}

class FakeRig final : public Rig {
  public:
    FakeRig() : system_(2) {
        for (std::size_t i = 0; i < 2; ++i)
            system_.card(i).on_dispatch = obey;
        std::ifstream file(TEST_KERNELS, std::ios::binary);
        const std::vector<char> image(std::istreambuf_iterator<char>(file), {});
        const auto bytes = std::as_bytes(std::span(image));
        image_.assign(bytes.begin(), bytes.end());
    }
    std::span<const std::byte> module() const override { return image_; }
    std::string cannot(Mishap) const override { return {}; }
    void happen(Mishap mishap, int device, const std::string& stream) override {
        FakeCard& card = system_.card(static_cast<std::size_t>(device));
        switch (mishap) {
            case Mishap::kFirmwareCrash:
                card.crash(stream);
                break;
            case Mishap::kCardKilled:
                card.lose();
                break;
            case Mishap::kLinkCut:
                card.cut_link();
                break;
        }
    }

  private:
    test::FakeSystem system_;
    std::vector<std::byte> image_;
};

}  // namespace

std::unique_ptr<Rig> make_rig() {
    return std::make_unique<FakeRig>();
}

}  // namespace orrery::umd::conformance
