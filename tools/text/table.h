// Tables and colours for terminals.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace orrery::text {

enum class Align : bool { kLeft, kRight };

// Columns as wide as their widest cell, two spaces apart, no space at line ends.
class Table {
  public:
    struct Head {
        std::string_view title;
        Align align = Align::kLeft;
    };
    explicit Table(std::vector<Head> heads) : heads_(std::move(heads)) {}
    void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
    bool empty() const { return rows_.empty(); }
    // With the heads, if one of them has a title; "" if there is no row.
    std::string text(std::string_view indent = "") const;

  private:
    std::vector<Head> heads_;
    std::vector<std::vector<std::string>> rows_;
};

// How replies look: colours on a terminal only.
struct Style {
    bool colour = false;
    unsigned width = 100;

    std::string strong(std::string_view text) const { return wrap("1", text); }
    std::string faint(std::string_view text) const { return wrap("2", text); }
    std::string good(std::string_view text) const { return wrap("32", text); }
    std::string bad(std::string_view text) const { return wrap("31", text); }

  private:
    std::string wrap(std::string_view code, std::string_view text) const;
};

}  // namespace orrery::text
