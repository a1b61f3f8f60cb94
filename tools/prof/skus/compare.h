// orrery-prof sku-compare: the same work on cards of several kinds, in VMs of their own.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/prof/ranges.h"
#include "tools/text/result.h"

namespace orrery::prof {

// A class of work: a program that is run, whose range of that name is what counts. All SKUs do the same.
struct WorkClass {
    std::string_view name;
    std::string_view what;
    std::string_view command;
    std::string_view range;
    bool quick_option = true;  // it takes --quick
    bool two_cards = false;
};
std::span<const WorkClass> work_classes();
// Why a card with so many link ports does no work of this class; "": it does.
std::string why_left_out(const WorkClass& one, unsigned link_ports);
// What the shell of the guest does with such cards: each class is recorded, and says how it ended, whatever
// the others do.
std::string guest_script(bool quick, unsigned link_ports);

// Of the model, not of any product: what was counted times the figures of the SKU (energy.…).
struct Energy {
    double static_j = 0, compute_j = 0, vram_j = 0, host_j = 0, link_j = 0;
    double dynamic_j() const { return compute_j + vram_j + host_j + link_j; }
    double all_j() const { return static_j + dynamic_j(); }
};

struct Measured {
    std::uint64_t ps = 0;  // from the first work of the range to the end of its last; 0: it was not measured
    WorkSums sums;
    std::string limit;             // what limits it most, as `explain` calls it
    double limit_share = 0;        // of that time; 0: `limit` says why there is no share
    std::optional<Energy> energy;  // nothing: the SKU has no figures, or work was not counted
    bool left_out = false;         // the card cannot do it: no fault of the run
    std::string problem;           // why it was not measured
};
// The longest range of this name of the profile, as if nothing else had been there.
Measured measured_of(const Model& model, std::string_view range);

struct SkuRun {
    std::string name;                // as it was given, without folders
    std::string card;                // what the cards call themselves
    std::vector<Measured> measured;  // in the order of work_classes()
};

struct Comparison {
    std::vector<SkuRun> skus;  // the first is what the others are compared with
    bool quick = false;

    // How many times as much of a class a card does in the same time as one of `base`; 0: not measured.
    double throughput(std::size_t sku, std::size_t one_class, std::size_t base = 0) const;
};

// A line for each class that a SKU cannot do.
std::vector<std::string> left_out_lines(const Comparison& all);
std::string comparison_text(const Comparison& all);
std::string comparison_csv(const Comparison& all);
std::string comparison_page(const Comparison& all);

// Runs it, for main(). The status.
int run_sku_compare(const std::vector<std::string>& words);

}  // namespace orrery::prof
