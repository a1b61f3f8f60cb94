#include "umd/samples/halo/field.h"

#include <orrery/embedded_kernel.hpp>
#include <orrery/orrery.hpp>

#include <array>
#include <memory>

#include "umd/samples/halo/kernels.h"

ORR_EMBEDDED_KERNEL(halo_kernels);

namespace {

enum Side : unsigned { kAbove, kBelow, kLeft, kRight };
constexpr Side kOpposite[] = {kBelow, kAbove, kRight, kLeft};
constexpr unsigned kGroups = 8;  // as many as a card has vector cores

// What one card needs; made with that card as the current device.
struct Card {
    Card(int number, Grid cells)
        : device(number),
          part(cells),
          pitch(cells.columns + 2),
          tiles(std::size_t{2} * pitch * (cells.rows + 2)) {}

    // Row and column 0, and those behind the last, are the halo. The tiles take turns.
    float* cell(unsigned step, std::size_t row, std::size_t column) const {
        return tiles.data() + (step % 2 * (part.rows + 2) + row) * pitch + column;
    }

    int device;
    Grid part;
    std::size_t pitch;
    orrery::DeviceArray<float> tiles;
    orrery::Stream work;
    std::array<orrery::Stream, HALO_SIDES> outgoing;
    std::array<orrery::Semaphore, HALO_SIDES> arrived;  // so many steps' edges have come from there
    std::array<Card*, HALO_SIDES> neighbours{};
    orrery::Semaphore gate;
    orrery::Event edges_done, begin, end;
};

// The edges first, so that they travel while the rest is worked on.
void compute(const Card& card, const orrery::Library& library, unsigned step, bool exchange) {
    const orrery::DeviceGuard guard(card.device);
    for (unsigned side = 0; exchange && side < HALO_SIDES; ++side)
        card.work.wait(card.arrived[side], step);
    const HaloArgs args{card.cell(step, 0, 0), card.cell(step + 1, 0, 0), card.pitch, card.part.rows,
                        card.part.columns};
    orrery::launch(library.function("edges"), {HALO_SIDES, 2, 1}, {1, 1, 1}, args, 0, card.work);
    card.edges_done.record(card.work);
    orrery::launch(library.function("inside"), {kGroups, 1, 1}, {1, 1, 1}, args, 0, card.work);
}

// One edge into the neighbour's halo, and behind it the word that it is there. Nobody has to say that there
// is room: a card sends an edge when it has the neighbour's last one, and the neighbour has used its halo of
// two steps ago by then.
void send(const Card& card, unsigned step, unsigned side) {
    const orrery::DeviceGuard guard(card.device);
    const Card& to = *card.neighbours[side];
    const orrery::Stream& stream = card.outgoing[side];
    const std::size_t last_row = card.part.rows, last_column = card.part.columns;
    const auto row = [&](std::size_t halo, std::size_t own) {
        orrery::copy(to.cell(step + 1, halo, 1), card.cell(step + 1, own, 1), last_column * sizeof(float),
                     stream);
    };
    const auto column = [&](std::size_t halo, std::size_t own) {
        orrery::copy_2d(to.cell(step + 1, 1, halo), to.pitch * sizeof(float), card.cell(step + 1, 1, own),
                        card.pitch * sizeof(float), sizeof(float), last_row, stream);
    };
    stream.wait(card.edges_done);
    if (side == kAbove) row(last_row + 1, 1);
    if (side == kBelow) row(0, last_row);
    if (side == kLeft) column(last_column + 1, 1);
    if (side == kRight) column(0, last_column);
    stream.signal(to.arrived[kOpposite[side]], step + 1);
}

// The card's part of the field and what is around it, there or back.
void bring(const Card& card, std::vector<float>& cells, Grid field, Grid place, unsigned step, bool back) {
    const std::size_t wide = card.part.columns + 2, high = card.part.rows + 2;
    std::vector<float> tile(wide * high);
    const auto at = [&](std::size_t row, std::size_t column) -> float& {
        return cells[field.at(
            static_cast<unsigned>(place.rows * card.part.rows + field.rows - 1 + row),
            static_cast<unsigned>(place.columns * card.part.columns + field.columns - 1 + column))];
    };
    if (back) orrery::copy(tile.data(), card.cell(step, 0, 0), tile.size() * sizeof(float));
    for (std::size_t row = back; row < high - back; ++row)
        for (std::size_t column = back; column < wide - back; ++column) {
            float& here = tile[row * wide + column];
            if (back)
                at(row, column) = here;
            else
                here = at(row, column);
        }
    if (!back) orrery::copy(card.cell(step, 0, 0), tile.data(), tile.size() * sizeof(float));
}

}  // namespace

double run_steps(std::vector<float>& cells, Grid cards, Grid part, bool exchange) {
    const Grid field{cards.columns * part.columns, cards.rows * part.rows};
    const orrery::Library library(halo_kernels_image());
    std::vector<std::unique_ptr<Card>> all;
    for (unsigned number = 0; number < cards.size(); ++number) {
        const orrery::DeviceGuard guard(static_cast<int>(number));
        library.preload();
        all.push_back(std::make_unique<Card>(static_cast<int>(number), part));
        bring(*all.back(), cells, field, {number % cards.columns, number / cards.columns}, 0, false);
    }
    for (unsigned number = 0; number < cards.size(); ++number) {
        const unsigned row = number / cards.columns, column = number % cards.columns;
        Card& card = *all[number];
        card.neighbours = {
            all[cards.at(row + cards.rows - 1, column)].get(), all[cards.at(row + 1, column)].get(),
            all[cards.at(row, column + cards.columns - 1)].get(), all[cards.at(row, column + 1)].get()};
        for (const Card* to : card.neighbours)
            if (exchange && to != &card) orrery::enable_peer_access(card.device, to->device);
    }

    // All is in the streams before anything begins: from then on no card needs the host.
    Card& first = *all.front();
    for (const auto& card : all)
        card->work.wait(card->gate, 1);
    for (unsigned step = 0; step < kSteps; ++step) {
        if (step == kFirst) first.begin.record(first.work);
        for (const auto& card : all) {
            compute(*card, library, step, exchange);
            for (unsigned side = 0; exchange && side < HALO_SIDES; ++side)
                send(*card, step, side);
        }
    }
    first.end.record(first.work);
    for (const auto& card : all)
        card->gate.signal(1);
    for (const auto& card : all) {
        card->work.synchronize();
        for (const orrery::Stream& stream : card->outgoing)
            stream.synchronize();
    }
    for (unsigned number = 0; number < cards.size(); ++number)
        bring(*all[number], cells, field, {number % cards.columns, number / cards.columns}, kSteps, true);
    return first.end.model_ns_since(first.begin) / (kSteps - kFirst);
}
