// orrery-step bundle: what is known of a run that failed, and where to look.
#pragma once

#include <string>
#include <vector>

#include "tools/bundle/bundle.h"
#include "tools/step/commands/cards.h"
#include "tools/step/report/cause.h"

namespace orrery::step {

struct OpenBundle {
    bundle::Bundle bundle;
    Cards cards;                         // their recordings, each at the moment of the cause
    std::vector<std::uint32_t> numbers;  // of those cards in the run
    std::vector<Cause> causes;           // the first one first
    const Cause* cause() const { return causes.empty() ? nullptr : &causes.front(); }
};

// Opens a bundle of anybody's, and moves the recordings to the first cause. `open` opens a recording.
using OpenBytes =
    std::function<Result<std::unique_ptr<Session>>(std::vector<std::uint8_t> bytes, const std::string& name)>;
Result<std::unique_ptr<OpenBundle>> open_bundle(const std::string& file, const Debugger::Options& options,
                                                const OpenBytes& open);

// What it is about, for people: how it ended, the first cause, what it holds.
std::string summary(const OpenBundle& bundle);
// `--where`: the first cause in lines "kind: ...", "cause: ...", "card: ...", "step: ...", "time: ...", or as
// JSON.
std::string where(const OpenBundle& bundle, bool json);

// Writes its files into a folder, which is made; none there is replaced.
Result<void> extract(const bundle::Bundle& bundle, const std::string& folder);

}  // namespace orrery::step
