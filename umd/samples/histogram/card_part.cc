#include "umd/samples/histogram/card_part.h"

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>

ORR_EMBEDDED_KERNEL(histogram_kernels);

namespace {

constexpr std::uint32_t kGroups = 64;
constexpr std::uint32_t kItemsPerGroup = 64;
constexpr std::size_t kBinsBytes = kHistogramBins * sizeof(std::uint64_t);

// Everything that one card needs; made with that card as the current device.
struct Card {
    explicit Card(int number, std::span<const std::byte> part)
        : device(number),
          library(histogram_kernels_image()),
          host(part.size()),
          input(part.size()),
          bins(kHistogramBins) {
        std::memcpy(host.data(), part.data(), part.size());
    }

    int device;
    bool linked = false;  // to the first
    orrery::Stream stream;
    orrery::Library library;
    orrery::PinnedArray<std::byte> host;
    orrery::DeviceArray<std::uint8_t> input;
    orrery::DeviceArray<std::uint64_t> bins;
    orrery::Event started, copied, counted, ended;
};

void copy_and_count(Card& card) {
    const orrery::DeviceGuard guard(card.device);
    card.started.record(card.stream);
    orrery::copy(card.input.data(), card.host.data(), card.host.bytes(), card.stream);
    orrery::fill(card.bins.data(), 0, kBinsBytes, card.stream);
    card.copied.record(card.stream);
    const HistogramArgs args{card.input.data(), card.input.size(), card.bins.data()};
    orrery::launch(card.library.function("histogram"), {kGroups, 1, 1}, {kItemsPerGroup, 1, 1}, args,
                   kHistogramBins * sizeof(std::uint32_t), card.stream);
    card.counted.record(card.stream);
}

}  // namespace

Run count_on_cards(std::span<const std::byte> data, int cards) {
    std::vector<std::unique_ptr<Card>> all;
    // Whole pages a card, the rest to the last.
    const auto number_of_cards = static_cast<std::size_t>(cards);
    const std::size_t share = ((data.size() + number_of_cards - 1) / number_of_cards + 4095) / 4096 * 4096;
    for (int number = 0; number < cards && !data.empty(); ++number) {
        const bool last = number + 1 == cards;
        const auto part = data.first(last ? data.size() : std::min(share, data.size()));
        data = data.subspan(part.size());
        const orrery::DeviceGuard guard(number);
        all.push_back(std::make_unique<Card>(number, part));
    }
    Card& first = *all.front();
    const auto others = static_cast<std::uint32_t>(all.size() - 1);

    const orrery::DeviceGuard guard(first.device);
    orrery::DeviceArray<std::uint64_t> partial(orrery::empty);
    std::vector<orrery::Semaphore> arrived;  // one for each other card, in the first card's memory
    orrery::PinnedArray<std::uint64_t> result(kHistogramBins);
    if (others != 0) {
        partial = orrery::DeviceArray<std::uint64_t>(std::size_t{others} * kHistogramBins);
        arrived = std::vector<orrery::Semaphore>(others);
        for (std::uint32_t i = 1; i <= others; ++i) {
            // What no links lead to is copied through the host's memory, and waited for here.
            all[i]->linked = orrery::peer_way(all[i]->device, first.device).kind == orrPeerWayLink;
            if (all[i]->linked) orrery::enable_peer_access(all[i]->device, first.device);
        }
    }

    const auto begin = std::chrono::steady_clock::now();
    for (auto& card : all)
        copy_and_count(*card);
    for (std::uint32_t i = 0; i < others; ++i) {
        Card& card = *all[i + 1];
        orrery::copy(partial.data() + std::size_t{i} * kHistogramBins, card.bins.data(), kBinsBytes,
                     card.stream);
        if (card.linked) card.stream.signal(arrived[i], 1);
    }
    for (std::uint32_t i = 0; i < others; ++i)
        if (all[i + 1]->linked) first.stream.wait(arrived[i], 1);
    if (others != 0) {
        const MergeArgs args{first.bins.data(), partial.data(), others, 0};
        orrery::launch(first.library.function("merge"), {kHistogramBins / kItemsPerGroup, 1, 1},
                       {kItemsPerGroup, 1, 1}, args, 0, first.stream);
    }
    orrery::copy(result.data(), first.bins.data(), kBinsBytes, first.stream);
    first.ended.record(first.stream);
    // The others first: if one of them stops, the first card waits for ever.
    for (std::uint32_t i = 1; i <= others; ++i)
        all[i]->stream.synchronize();
    first.stream.synchronize();
    const auto end = std::chrono::steady_clock::now();

    Run run;
    std::copy_n(result.data(), kHistogramBins, run.bins.begin());
    run.host_ns = std::chrono::duration<double, std::nano>(end - begin).count();
    run.model_ns = first.ended.model_ns_since(first.started);
    for (auto& card : all) {
        CardTimes times;
        times.device = card->device;
        times.by_host = card.get() != &first && !card->linked;
        times.bytes = card->host.size();
        times.work_items = std::uint64_t{kGroups} * kItemsPerGroup;
        times.copy_model_ns = card->copied.model_ns_since(card->started);
        times.count_model_ns = card->counted.model_ns_since(card->copied);
        if (card.get() == &first) times.merge_model_ns = card->ended.model_ns_since(card->counted);
        run.cards.push_back(times);
    }
    // The memory of a card goes while that card's device is current or not: handles know their card.
    return run;
}
