#include "emulator/api/lone_card.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>

#include <orrery/hw/pci.h>

#include "emulator/card/card.h"
#include "emulator/host/card_device.h"

namespace orrery::emu {

struct LoneCard::Impl {
    struct FileCloser {
        void operator()(std::FILE* file) const { std::fclose(file); }
    };
    UniqueFd ram_fd;
    Mapping ram, doorbells;
    std::uint64_t ram_bytes = 0;
    std::unique_ptr<std::FILE, FileCloser> log;
    std::unique_ptr<Card> card;
    std::unique_ptr<CardDevice> device;
    std::multimap<ModelTime, std::function<void()>> arrivals;
    Event arrival = Event::of<&Impl::fire>(this);
    Event horizon = Event::stop();  // keeps the core from running past a limit

    void fire(ModelTime now) {
        while (!arrivals.empty() && arrivals.begin()->first <= now) {
            const auto due = std::move(arrivals.begin()->second);
            arrivals.erase(arrivals.begin());
            due();
        }
        if (!arrivals.empty()) card->events().schedule(arrival, arrivals.begin()->first);
        // The doorbells are looked at in this very moment, whatever the card does next.
        card->take_arrivals();
    }
    std::expected<void, std::string> build(LoneCardConfig config);
};

std::expected<void, std::string> LoneCard::Impl::build(LoneCardConfig config) {
    const auto system_error = [](const char* what) {
        return std::unexpected(fmt::format("cannot make {}: {}", what, std::strerror(errno)));
    };
    ram_bytes = config.ram_bytes;
    ram_fd = UniqueFd(memfd_create("lone-card", MFD_CLOEXEC));
    if (!ram_fd || ftruncate(ram_fd.get(), static_cast<off_t>(ram_bytes)) != 0)
        return system_error("host memory");
    auto mapped = Mapping::create(ram_fd.get(), 0, ram_bytes, true);
    if (!mapped) return system_error("host memory");
    ram = *std::move(mapped);
    log.reset(std::tmpfile());
    if (!log) return system_error("a temporary file for the card's log");

    CardConfig made;
    made.sku = std::move(config.sku);
    made.vram_bytes = config.vram_bytes;
    made.uid = config.uid;
    made.key = config.key;
    made.program = std::move(config.program);
    made.record = std::move(config.record);
    made.symbols = std::move(config.symbols);
    made.raise = std::move(config.raise);
    made.log = log.get();
    for (LoneCardConfig::Link& from : config.links) {
        LinkConfig link;
        link.port = from.port;
        link.listen = from.listen;
        link.path = std::move(from.path);
        made.links.push_back(std::move(link));
    }
    auto created = Card::create(std::move(made));
    if (!created) return std::unexpected(created.error());
    card = *std::move(created);
    device = std::make_unique<CardDevice>(*card);
    auto pages = Mapping::create(card->doorbells().fd(), 0, Doorbells::kBytes, true);
    if (!pages) return system_error("a mapping of the doorbells");
    doorbells = *std::move(pages);

    device->client_attached();
    device->bus_master(true);
    device->atomics(true);
    DmaMap map;
    map.address = config.ram_base;
    map.size = ram_bytes;
    map.fd = UniqueFd(fcntl(ram_fd.get(), F_DUPFD_CLOEXEC, 0));
    map.readable = map.writable = true;
    if (const int error = device->dma_map(std::move(map)); error != 0)
        return std::unexpected(fmt::format("cannot map host memory for the card: {}", std::strerror(error)));
    return {};
}

LoneCard::LoneCard(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LoneCard::~LoneCard() = default;

std::expected<std::unique_ptr<LoneCard>, std::string> LoneCard::create(LoneCardConfig config) {
    auto impl = std::make_unique<Impl>();
    if (auto built = impl->build(std::move(config)); !built) return std::unexpected(built.error());
    return std::unique_ptr<LoneCard>(new LoneCard(std::move(impl)));
}

std::span<std::uint8_t> LoneCard::ram() {
    return {impl_->ram.data(), impl_->ram_bytes};
}

std::span<std::uint8_t> LoneCard::vram() {
    Vram& vram = impl_->card->vram();
    return {vram.data(), vram.size()};
}

std::span<std::uint8_t> LoneCard::doorbells() {
    return {impl_->doorbells.data(), Doorbells::kBytes};
}

void LoneCard::write32(std::uint64_t offset, std::uint32_t value) {
    impl_->device->bar_write(ORR_BAR_REGS, offset, std::as_bytes(std::span(&value, 1)));
}

void LoneCard::write64(std::uint64_t offset, std::uint64_t value) {
    impl_->device->bar_write(ORR_BAR_REGS, offset, std::as_bytes(std::span(&value, 1)));
}

std::uint32_t LoneCard::read32(std::uint64_t offset) {
    std::uint32_t value = 0;
    impl_->device->bar_read(ORR_BAR_REGS, offset, std::as_writable_bytes(std::span(&value, 1)));
    return value;
}

void LoneCard::poke(std::uint64_t vram_offset) {
    impl_->card->soc().poked(vram_offset);
}

ModelTime LoneCard::now() const {
    return impl_->card->events().now();
}

void LoneCard::at(ModelTime time, std::function<void()> arrival) {
    impl_->arrivals.emplace(time, std::move(arrival));
    impl_->card->events().schedule(impl_->arrival, impl_->arrivals.begin()->first);
}

bool LoneCard::step(ModelTime limit) {
    Card& card = *impl_->card;
    if (limit != kNever) card.events().schedule(impl_->horizon, limit);
    const bool busy = card.step(true, limit - 1);
    card.events().cancel(impl_->horizon);
    return busy;
}

ModelTime LoneCard::next_activity() {
    impl_->card->take_arrivals();
    return impl_->card->core().runnable() ? now() : impl_->card->events().next_time();
}

void LoneCard::take_arrivals() {
    impl_->card->take_arrivals();
}

bool LoneCard::halted() const {
    return impl_->card->core().state() == ControlCore::State::kHalted;
}

std::vector<std::uint64_t> LoneCard::counters() {
    const auto all = impl_->card->snapshot();
    return {all.begin(), all.end()};
}

void LoneCard::on_trace(std::function<void(std::uint64_t word, ModelTime now)> listener) {
    impl_->card->core().set_trace_listener(std::move(listener));
}

std::vector<std::string> LoneCard::log() {
    std::vector<std::string> lines;
    impl_->card->errors().flush();
    std::fflush(impl_->log.get());
    std::rewind(impl_->log.get());
    char line[512];
    while (std::fgets(line, sizeof line, impl_->log.get()) != nullptr) {
        lines.emplace_back(line);
        while (!lines.back().empty() && lines.back().back() == '\n')
            lines.back().pop_back();
    }
    return lines;
}

void LoneCard::finish_recording() {
    impl_->card->finish_recording();
}

}  // namespace orrery::emu
