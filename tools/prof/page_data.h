// What the page of a profile shows, as it travels in the page: tools/prof/page/data.js reads it.
//
// `meta` is JSON: texts, tracks, rows, and the list of columns. A column has a number for each slice, or for
// each slice that is work, as LEB128: seven bits a byte, the lowest first. Slices stand row by row, in the
// order of meta["rows"], and in a row in the order of time, none over another. Those of cards come last.
#pragma once

#include <cstdint>
#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tools/prof/explain.h"
#include "tools/prof/model.h"

namespace orrery::prof {

// Numbers one behind the other. What JavaScript does not hold exactly (2^53 and above, which only a profile
// that somebody made up has) becomes the largest that it does.
class PageColumn {
  public:
    static constexpr std::uint64_t kMost = (std::uint64_t{1} << 53) - 1;

    void put(std::uint64_t value);
    void put_signed(std::int64_t value);  // zigzag
    // The difference to what came before it, signed.
    void put_delta(std::uint64_t value);
    void restart() { last_ = 0; }
    const std::string& bytes() const { return bytes_; }

  private:
    std::string bytes_;
    std::uint64_t last_ = 0;
};

struct PageData {
    nlohmann::ordered_json meta;
    std::string columns;
};
PageData page_data(const Model& model);

// Parts of it, which fill in meta and give columns.
using PageColumns = std::deque<std::pair<std::string, PageColumn>>;
// All processes' texts have one list of numbers in a page.
class PageTexts {
  public:
    std::uint32_t number(std::string_view text);
    // Of a number of the process's own.
    std::uint32_t number(const Process& process, std::uint32_t text);
    const nlohmann::ordered_json& all() const { return all_; }

  private:
    const Process* process_ = nullptr;
    std::vector<std::uint32_t> numbers_;  // of that process's texts
    std::map<std::string, std::uint32_t, std::less<>> known_ = {{"", 0}};
    nlohmann::ordered_json all_ = nlohmann::ordered_json::array({""});
};
// What cards counted for each work in `work`, which is in the order of the page's; "counted" says for which.
void add_work_counters(const std::vector<const Work*>& work, PageData& data, PageColumns& columns);
// How busy a card was, why it was not, and where its kernels are below its roofline. `places` has the slice
// of each work.
void add_summary(const DeviceSums& sums, std::uint64_t model_begin, const std::vector<std::uint32_t>& places,
                 nlohmann::ordered_json& device);
nlohmann::ordered_json finding_json(const Finding& finding, std::size_t process);
// Counters and memory over time, and samples of vector cores, added up.
void add_samples(const Model& model, std::uint64_t model_begin, PageTexts& texts, PageData& data,
                 PageColumns& columns);

}  // namespace orrery::prof
