#include "emulator/faults/faults.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "emulator/faults/mix.h"

namespace orrery::emu {
namespace {

std::uint64_t draw(std::uint64_t seed, std::uint64_t rule, std::uint64_t hit) {
    return mix(mix(mix(seed) ^ rule) ^ hit);
}

// Does one of so many bits go wrong? By products alone, which are the same on every host.
bool hit(std::uint64_t random, double bit_errors, std::uint64_t bits) {
    double none = 1;
    for (double power = 1 - bit_errors; bits != 0; bits >>= 1, power *= power)
        if ((bits & 1) != 0) none *= power;
    return static_cast<double>(random >> 11) * 0x1p-53 >= none;
}

}  // namespace

class Faults::Late {
  public:
    Late(EventQueue& events, ModelTime at, std::function<void()> what) : what_(std::move(what)) {
        events.schedule(event_, at);
    }
    bool over() const { return over_; }

  private:
    void fire(ModelTime) {
        what_();
        over_ = true;
    }
    bool over_ = false;
    std::function<void()> what_;
    Event event_ = Event::of<&Late::fire>(this);
};

Faults::Faults(FaultPlan plan, EventQueue& events, Hooks hooks)
    : plan_(std::move(plan)), events_(events), hooks_(std::move(hooks)) {
    for (const FaultRule& rule : plan_.rules)
        rules_.push_back({.rule = rule});
    arm();
}

Faults::~Faults() = default;

void Faults::arm() {
    for (unsigned point = 0; point < kFaultPoints; ++point) {
        const bool any = std::ranges::any_of(
            rules_, [point](const Live& live) { return static_cast<unsigned>(live.rule.point) == point; });
        armed_[point].store(any, std::memory_order_relaxed);
    }
}

Fault Faults::strike(FaultPoint point, std::uint64_t subject, const Frame& frame) {
    Fault fault;
    Struck told{.point = point, .action = {}, .subject = subject, .pass = 0, .number = 0};
    {
        const std::scoped_lock lock(mutex_);
        for (std::size_t i = 0; i < rules_.size(); ++i) {
            Live& live = rules_[i];
            const FaultRule& rule = live.rule;
            if (rule.point != point || (rule.subject && *rule.subject != subject)) continue;
            // Each rule counts for itself, whatever the others do.
            const std::uint64_t passed = ++live.passed;
            if (passed < rule.first || (passed - rule.first) % rule.every != 0) continue;
            if (live.struck >= rule.count || fault) continue;
            const std::uint64_t which =
                frame.bits == 0 ? passed : mix(mix(subject) ^ frame.number) ^ frame.try_number;
            const std::uint64_t random = draw(plan_.seed, i, which);
            const bool strikes = rule.bit_errors != 0 ? hit(mix(random), rule.bit_errors, frame.bits)
                                                      : mix(random) % FaultRule::kAlways < rule.chance;
            if (!strikes) continue;
            ++live.struck;
            told.action = rule.action;
            told.pass = passed;
            told.number = ++struck_;
            fault = {rule.action, rule.delay, random, rule.lanes};
        }
    }
    if (!fault) return fault;
    if (hooks_.struck) hooks_.struck(told);
    if (fault.action == FaultAction::kDie) {
        hooks_.die();
        return {};
    }
    if (fault.action == FaultAction::kHang) {
        hung_.store(true, std::memory_order_release);
        return {};
    }
    return fault;
}

void Faults::later(ModelTime delay, std::function<void()> what) {
    // Those that have happened go here: an event cannot end itself.
    std::erase_if(late_, [](const std::unique_ptr<Late>& late) { return late->over(); });
    late_.push_back(
        std::make_unique<Late>(events_, orrery::emu::later(events_.now(), delay), std::move(what)));
}

void Faults::reset() {
    hung_.store(false, std::memory_order_release);
    late_.clear();
}

std::expected<void, std::string> Faults::add(std::string_view rules) {
    auto plan = FaultPlan::parse(rules);
    if (!plan) return std::unexpected(plan.error());
    if (!hooks_.points.empty())
        if (auto known = plan->only_of(hooks_.points); !known) return known;
    const std::scoped_lock lock(mutex_);
    if (rules_.size() + plan->rules.size() > FaultPlan::kMaxRules)
        return std::unexpected(fmt::format("more than {} rules", FaultPlan::kMaxRules));
    for (const FaultRule& rule : plan->rules)
        rules_.push_back({.rule = rule});
    arm();
    return {};
}

void Faults::clear() {
    const std::scoped_lock lock(mutex_);
    rules_.clear();
    arm();
}

std::string Faults::hits() const {
    const std::scoped_lock lock(mutex_);
    std::string text;
    for (std::size_t i = 0; i < rules_.size(); ++i)
        text += fmt::format("{} passed={} struck={} {}\n", i, rules_[i].passed, rules_[i].struck,
                            to_text(rules_[i].rule));
    return text;
}

}  // namespace orrery::emu
