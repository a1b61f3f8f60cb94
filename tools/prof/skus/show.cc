// A comparison as tables for a terminal, and as CSV.
#include <fmt/format.h>

#include <initializer_list>

#include "tools/prof/show.h"
#include "tools/prof/skus/compare.h"
#include "tools/prof/skus/words.h"
#include "tools/text/table.h"
#include "tools/text/units.h"

namespace orrery::prof {
namespace {

using text::Align;

std::string joined(std::string_view left, const std::string& right) {
    return right.empty() ? std::string(left) : fmt::format("{}  {}", left, right);
}

// A row a class, a column a SKU.
template <typename Cell>
std::string table(const Comparison& all, std::string_view title, Align align, std::size_t first,
                  Cell&& cell) {
    std::vector<std::string> names;
    names.reserve(all.skus.size());
    for (const SkuRun& run : all.skus)
        names.push_back(plain(run.name));
    std::vector<text::Table::Head> heads = {{title}};
    for (std::size_t i = first; i < names.size(); ++i)
        heads.push_back({names[i], align});
    text::Table shown(std::move(heads));
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        std::vector<std::string> cells = {std::string(work_classes()[i].name)};
        for (std::size_t sku = first; sku < all.skus.size(); ++sku)
            cells.push_back(all.skus[sku].measured[i].ps == 0 ? "-" : cell(sku, i));
        shown.row(std::move(cells));
    }
    return shown.text("  ");
}

}  // namespace

std::string times_text(double times) {
    if (times <= 0) return "";
    return fmt::format("{:.3g} x", times);
}

std::string joules_text(double joules) {
    if (joules >= 1) return fmt::format("{:.3g} J", joules);
    if (joules >= 1e-3) return fmt::format("{:.3g} mJ", joules * 1e3);
    return fmt::format("{:.3g} uJ", joules * 1e6);
}

std::string limit_text(const Measured& measured) {
    if (measured.limit_share == 0) return measured.limit;
    return fmt::format("{} {:.0f} %", measured.limit, measured.limit_share * 100);
}

static std::string shown(double value, std::string_view unit) {
    return value >= 100 ? fmt::format("{:.0f} {}", value, unit) : fmt::format("{:.3g} {}", value, unit);
}

std::optional<std::string> rate_text(std::size_t one_class, const Measured& measured) {
    using C = WorkCountersRecord;
    const auto per_ps = [&](double amount) { return amount / static_cast<double>(measured.ps); };
    const WorkSums& sums = measured.sums;
    const auto rate = [&](std::initializer_list<std::uint64_t C::*> fields,
                          std::string_view unit) -> std::optional<std::string> {
        double amount = 0;
        for (const auto field : fields) {
            if (!sums.knows(field)) return {};
            amount += static_cast<double>(sums[field]);
        }
        return shown(1e3 * per_ps(amount), unit);
    };
    const std::string_view name = work_classes()[one_class].name;
    if (measured.ps == 0) return {};
    if (name == "compute") return rate({&C::flops_f32, &C::flops_f16, &C::flops_f64}, "GFLOP/s");
    if (name == "memory") return rate({&C::vram_read, &C::vram_written}, "GB/s");
    if (name == "copies" || name == "link") return rate({&C::moved}, "GB/s");
    if (name == "launch") {
        if (sums.kernels == 0) return {};
        return shown(1e-6 / per_ps(static_cast<double>(sums.kernels)), "us each");
    }
    return "";
}

std::vector<std::string> left_out_lines(const Comparison& all) {
    std::vector<std::string> lines;
    for (const SkuRun& run : all.skus) {
        for (std::size_t i = 0; i < run.measured.size(); ++i) {
            if (run.measured[i].left_out)
                lines.push_back(fmt::format("{} is left out of {}: {}.", work_classes()[i].name, run.name,
                                            run.measured[i].problem));
        }
    }
    return lines;
}

std::string comparison_text(const Comparison& all) {
    const std::string base = plain(all.skus[0].name);
    std::string text = fmt::format("Work of each class{}, in model time, and how much faster than {}:\n\n",
                                   all.quick ? " (--quick)" : "", base);
    text += table(all, "class", Align::kRight, 0, [&](std::size_t sku, std::size_t i) {
        return joined(text::duration(all.skus[sku].measured[i].ps),
                      sku == 0 ? "" : times_text(all.throughput(sku, i)));
    });
    text += "\nAt what rate:\n\n";
    text += table(all, "class", Align::kRight, 0, [&](std::size_t sku, std::size_t i) {
        return rate_text(i, all.skus[sku].measured[i]).value_or("not known");
    });
    text += "\nWhat limits it most, and for how much of its time:\n\n";
    text += table(all, "class", Align::kLeft, 0, [&](std::size_t sku, std::size_t i) {
        return plain(limit_text(all.skus[sku].measured[i]));
    });
    text +=
        "\nEnergy, as the model estimates it (counters times the SKU's figures), and the static part of "
        "it:\n\n";
    text += table(all, "class", Align::kRight, 0, [&](std::size_t sku, std::size_t i) {
        const auto& energy = all.skus[sku].measured[i].energy;
        if (!energy) return std::string("not known");
        const double all_j = energy->all_j();
        return joules_text(all_j) +
               (all_j > 0 ? fmt::format("  {:.0f} %", 100 * energy->static_j / all_j) : std::string());
    });
    text += fmt::format(
        "\nCards of each for one of {}, for work that is all of that class and spreads over cards:\n\n",
        base);
    text += table(all, "class", Align::kRight, 1, [&](std::size_t sku, std::size_t i) {
        const double times = all.throughput(sku, i);
        return times > 0 ? fmt::format("{:.3g}", 1 / times) : std::string("-");
    });
    for (const std::string& line : left_out_lines(all))
        text += "\n" + plain(line) + "\n";
    return text;
}

std::string comparison_csv(const Comparison& all) {
    std::string csv =
        "class,sku,card,ps,throughput_of_first,cards_for_one_of_first,limit,limit_share,rate,static_j,"
        "compute_j,"
        "vram_j,host_j,link_j,work,counted,problem";
    for (const CounterField& field : kCounterFields)
        csv += fmt::format(",{}", field.name);
    csv += "\r\n";
    for (std::size_t i = 0; i < work_classes().size(); ++i) {
        for (std::size_t sku = 0; sku < all.skus.size(); ++sku) {
            const SkuRun& run = all.skus[sku];
            const Measured& one = run.measured[i];
            const double times = all.throughput(sku, i);
            csv += fmt::format("{},{},{},{},{},{},{},{},{}", work_classes()[i].name,
                               csv_cell(valid_utf8(run.name)), csv_cell(valid_utf8(run.card)), one.ps,
                               times > 0 ? fmt::format("{}", times) : "",
                               times > 0 ? fmt::format("{}", 1 / times) : "", csv_cell(valid_utf8(one.limit)),
                               one.limit_share, csv_cell(rate_text(i, one).value_or("")));
            if (one.energy) {
                csv += fmt::format(",{},{},{},{},{}", one.energy->static_j, one.energy->compute_j,
                                   one.energy->vram_j, one.energy->host_j, one.energy->link_j);
            } else {
                csv += ",,,,,";
            }
            csv +=
                fmt::format(",{},{},{}", one.sums.work, one.sums.counted, csv_cell(valid_utf8(one.problem)));
            for (std::size_t field = 0; field < kCounterFields.size(); ++field) {
                const auto sum = one.sums.counter(field);
                csv += sum ? fmt::format(",{}", *sum) : ",";
            }
            csv += "\r\n";
        }
    }
    return csv;
}

}  // namespace orrery::prof
