// What tasks cost, from what the same kernel with the same grid and data sizes has cost before on a card of
// the same SKU: model time between two time stamps of the card.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "umd/scheduler/machine.h"
#include "umd/winsys/error.h"

namespace orrery::umd {

class CostModel {
  public:
    // Neither name has white space.
    using Sku = std::uint32_t;
    using Key = std::uint32_t;
    Sku sku(const std::string& name);
    Key key(const std::string& footprint);
    // kNever: never measured there.
    Ps expect(Sku sku, Key key) const;
    // True if the expectation is new, or has moved by more than a fifth since it was last said so.
    bool measured(Sku sku, Key key, Ps duration);
    // Of tasks that were never measured there: something between those that were.
    Ps guess(Sku sku) const;
    // How much longer tasks take there than on `reference`, by those that were measured on both; 0: none was.
    double slowness(Sku sku, Sku reference) const;

    // By a name without white space; nothing: never measured.
    std::optional<Channel> channel(const std::string& name) const;
    void set_channel(const std::string& name, const Channel& channel) { channels_[name] = channel; }

    // A line each: SKU, footprint, mean in picoseconds, count; of channels: ">", name, picoseconds before the
    // first byte and for each. A file that is not there is an empty one, and
    // so is one of the first version, which does not say whose costs it has.
    Status load(const std::string& path);
    Status save(const std::string& path) const;

  private:
    struct Entry {
        double mean = 0;
        std::uint64_t count = 0;
        double told = 0;
    };
    const Entry& entry(Sku sku, Key key) const;
    Entry& entry(Sku sku, Key key);

    std::map<std::string, Sku> skus_;
    std::map<std::string, Key> keys_;
    std::map<std::string, Channel> channels_;
    std::vector<std::vector<Entry>> entries_;  // by SKU and key
};

}  // namespace orrery::umd
