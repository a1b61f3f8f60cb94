// What the texts and the JSON of a report share: report.cc has processes, report_device.cc the text of a
// card, report_json.cc the same for programs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/prof/analysis.h"
#include "tools/prof/links.h"
#include "tools/prof/steps.h"
#include "tools/prof/work_sums.h"
#include "tools/text/table.h"

namespace orrery::prof {

// What is found once for all processes.
struct OfAll {
    explicit OfAll(const Model& model) : lasts(model), traffic(model) {}

    BarrierLasts lasts;
    LinkTraffic traffic;
};

// The first `top` rows of each table.
std::string device_text(const Activity& activity, const DeviceSums& sums, const LinkTraffic& traffic,
                        std::size_t top);
// "12.3 %"
std::string of_share(double share);
// Columns for sums of work, and their cells.
void add_sum_heads(std::vector<text::Table::Head>& heads, bool counted);
void add_sum_cells(std::vector<std::string>& cells, const WorkSums& sums);
// Of a device's streams, what took longest first.
std::vector<std::pair<const StreamModel*, WorkSums>> sums_of_streams(const Activity& activity,
                                                                     const DeviceModel& device);

}  // namespace orrery::prof
