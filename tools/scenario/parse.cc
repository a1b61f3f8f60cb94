// Scenario files: TOML to Scenario. docs/scenarios.md has the format.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

#include <fmt/format.h>

#include "tools/scenario/reader.h"
#include "tools/scenario/scenario.h"

namespace orrery::scenario {

std::expected<Ps, std::string> parse_time(std::string_view text) {
    const auto bad = [&] {
        return std::unexpected(fmt::format(
            "'{}' is no time: write a number with ps, ns, us, ms or s behind it, such as \"250us\"", text));
    };
    double number = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc{} || number < 0) return bad();
    const std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
    double scale = 0;
    if (unit == "ps") scale = 1;
    if (unit == "ns") scale = 1e3;
    if (unit == "us") scale = 1e6;
    if (unit == "ms") scale = 1e9;
    if (unit == "s") scale = 1e12;
    if (scale == 0 || number * scale > 1e18) return bad();
    return static_cast<Ps>(std::round(number * scale));
}

std::string time_text(Ps time) {
    struct Unit {
        Ps ps;
        const char* name;
    };
    constexpr Unit kUnits[] = {
        {1'000'000'000'000, "s"}, {1'000'000'000, "ms"}, {1'000'000, "us"}, {1'000, "ns"}};
    for (const Unit& unit : kUnits) {
        if (time % unit.ps == 0 && time != 0) return fmt::format("{}{}", time / unit.ps, unit.name);
    }
    return fmt::format("{}ps", time);
}

namespace {

using Names = std::map<std::string, std::uint32_t, std::less<>>;

const std::vector<std::pair<std::string_view, std::uint32_t>> kPriorities = {
    {"low", ORR_PRIORITY_LOW},
    {"normal", ORR_PRIORITY_NORMAL},
    {"high", ORR_PRIORITY_HIGH},
    {"realtime", ORR_PRIORITY_REALTIME}};
const std::vector<std::pair<std::string_view, std::uint32_t>> kOps = {
    {"nop", 0},    {"kernel", 1},  {"copy", 2},      {"fill", 3}, {"wait", 4},
    {"signal", 5}, {"barrier", 6}, {"timestamp", 7}, {"gang", 8}, {"malformed", 9}};

constexpr std::uint64_t kMaxRepeat = 100'000;

class Parser {
  public:
    Parser(std::string file, std::filesystem::path folder)
        : problem_(std::move(file)), folder_(std::move(folder)) {}

    Scenario read(const toml::table& root) {
        {
            TableReader top(root, "scenario", problem_);
            top.text("name", out_.name);
            top.require("name");
            out_.start = Scenario::kStart;
            top.time("start", out_.start);
            if (out_.start == 0) top.fail("start", "must be later: the cards boot first");
            moment(top, "until", out_.until);
            top.require("until");
            top.integer("seed", out_.seed, 0, INT64_MAX);
            top.integer("save_areas", out_.save_areas, 0, 64);
            each(top, "card", [&](TableReader& in) { card(in); });
            if (!top.has("card")) out_.cards.resize(1);
            each(top, "context", [&](TableReader& in) { context(in); });
            each(top, "semaphore", [&](TableReader& in) { semaphore(in); });
            each(top, "gang", [&](TableReader& in) { gang(in); });
            each(top, "queue", [&](TableReader& in) { queue(in); });
            each(top, "submit", [&](TableReader& in) { submit(in); });
            each(top, "action", [&](TableReader& in) { action(in); });
        }
        return std::move(out_);
    }
    const Problem& problem() const { return problem_; }

  private:
    template <class Function>
    void each(TableReader& top, const char* key, Function function) {
        const toml::node* node = top.node(key);
        if (node == nullptr) return;
        const toml::array* array = node->as_array();
        if (array == nullptr) return top.fail(key, fmt::format("write [[{}]] with two brackets", key));
        for (const toml::node& element : *array) {
            const toml::table* table = element.as_table();
            if (table == nullptr) return top.fail(key, fmt::format("write [[{}]] with two brackets", key));
            if (problem_.any()) return;
            TableReader in(*table, key, problem_);
            function(in);
        }
    }

    // Files have the cards' model time, as recordings do.
    void moment(TableReader& in, const char* key, Ps& out) {
        Ps time = out_.start + out;
        in.time(key, time);
        if (time < out_.start) {
            in.fail(key, fmt::format("is before the scenario starts, at {} of the cards' model time",
                                     time_text(out_.start)));
        }
        out = time - out_.start;
    }

    void name(TableReader& in, std::string& out, Names& names, std::uint32_t index) {
        in.text("name", out);
        in.require("name");
        if (out.empty() || out.size() >= ORR_NAME_BYTES) {
            in.fail("name", fmt::format("must have 1 to {} characters", ORR_NAME_BYTES - 1));
        }
        if (!names.emplace(out, index).second) in.fail("name", fmt::format("'{}' is there twice", out));
    }

    void card(TableReader& in) {
        if (!cards_seen_) out_.cards.clear();
        cards_seen_ = true;
        Card made;
        std::string sku;
        in.text("sku", sku);
        if (!sku.empty()) {
            auto loaded = emu::Sku::find(sku, folder_);
            if (!loaded) return in.fail("sku", loaded.error());
            made.sku = *std::move(loaded);
        }
        in.integer("copy_engines", made.sku.copy_engines, 1, 16);
        in.integer("vector_ports", made.sku.vector_ports, 1, 32);
        in.integer("vector_cores", made.sku.vector_cores, 1, 256);
        in.size("vram", made.vram_bytes);
        if (const auto good = emu::check_vram_size(made.vram_bytes); !good) in.fail("vram", good.error());
        out_.cards.push_back(std::move(made));
    }

    void card_number(TableReader& in, const char* key, std::uint32_t& out) {
        in.integer(key, out, 0, 7);
        if (out >= out_.cards.size()) {
            in.fail(key, fmt::format("there are {} cards, from 0 on: add a [[card]]", out_.cards.size()));
        }
    }

    void context(TableReader& in) {
        Context made;
        name(in, made.name, contexts_, static_cast<std::uint32_t>(out_.contexts.size()));
        card_number(in, "card", made.card);
        in.integer("user", made.user, 0, 0xffffffff);
        in.integer("process", made.process, 0, 0xffffffff);
        in.integer("quota", made.quota, 0, 1000);
        std::uint64_t period = 0;
        in.time("period", period);
        made.period_us = static_cast<std::uint32_t>(period / kUs);
        if ((made.quota != 0) != (made.period_us != 0)) {
            in.fail("quota", "and period belong together: quota = 250 (in 1/1000), period = \"1ms\"");
        }
        out_.contexts.push_back(std::move(made));
    }

    void semaphore(TableReader& in) {
        Semaphore made;
        name(in, made.name, semaphores_, static_cast<std::uint32_t>(out_.semaphores.size()));
        card_number(in, "card", made.card);
        out_.semaphores.push_back(std::move(made));
    }

    void gang(TableReader& in) {
        Gang made;
        name(in, made.name, gangs_, static_cast<std::uint32_t>(out_.gangs.size()));
        in.require("members");
        const toml::node* node = in.node("members");
        const toml::array* array = node == nullptr ? nullptr : node->as_array();
        if (array == nullptr) return in.fail("members", "must list the members on each card, such as [2, 2]");
        for (const toml::node& element : *array) {
            const auto count = element.value_exact<std::int64_t>();
            if (!count || *count < 0 || *count > ORR_NAME_BYTES)
                return in.fail("members", "must be whole numbers of queues on each card, such as [2, 2]");
            made.members.push_back(static_cast<std::uint32_t>(*count));
        }
        out_.gangs.push_back(std::move(made));
    }

    void queue(TableReader& in) {
        Queue made;
        std::uint64_t count = 1, slice = 0, limit = 0;
        std::uint32_t in_vram = 0;
        std::string base;
        in.text("name", base);
        in.integer("count", count, 1, ORR_FW_QUEUES_MAX);
        in.require("context");
        in.index("context", made.context, contexts_, "context");
        in.choice("priority", made.priority, kPriorities);
        in.integer("weight", made.weight, 1, ORR_WEIGHT_MAX);
        in.time("slice", slice);
        in.time("limit", limit);
        made.slice_us = static_cast<std::uint32_t>(std::min<std::uint64_t>(slice / kUs, 0xffffffff));
        made.limit_us = limit / kUs;
        in.choice("ring", in_vram, {{"host", 0}, {"vram", 1}});
        made.ring_in_vram = in_vram != 0;
        in.integer("entries", made.entries, 2, 65536);
        if (!in.has("count")) {
            const auto index = static_cast<std::uint32_t>(out_.queues.size());
            name(in, made.name, queues_, index);
            groups_[made.name] = {index};
            out_.queues.push_back(std::move(made));
            return;
        }
        in.require("name");
        for (std::uint64_t n = 0; n < count && !problem_.any(); ++n) {
            made.name = fmt::format("{}{}", base, n);
            const auto index = static_cast<std::uint32_t>(out_.queues.size());
            if (made.name.size() >= ORR_NAME_BYTES) return in.fail("name", "is too long");
            if (!queues_.emplace(made.name, index).second) {
                return in.fail("name", fmt::format("'{}' is there twice", made.name));
            }
            groups_[made.name] = {index};
            groups_[base].push_back(index);
            out_.queues.push_back(made);
        }
    }

    bool place(TableReader& in, const char* key, Place& out, bool peers) {
        std::string text;
        in.text(key, text);
        if (text.empty() || text == "vram") return true;
        if (text == "host") {
            out.kind = Place::Kind::kHost;
            return true;
        }
        if (peers && text.size() == 5 && text.starts_with("card") && text[4] >= '0' &&
            static_cast<std::size_t>(text[4] - '0') < out_.cards.size()) {
            out = {Place::Kind::kPeer, static_cast<std::uint32_t>(text[4] - '0')};
            return true;
        }
        in.fail(key, fmt::format("'{}' is none of \"vram\", \"host\"{}", text,
                                 peers ? ", \"card0\" and so on (a linked card)" : ""));
        return false;
    }

    std::vector<Job> jobs(TableReader& in) {
        std::vector<Job> made;
        in.require("jobs");
        const toml::node* node = in.node("jobs");
        const toml::array* array = node == nullptr ? nullptr : node->as_array();
        if (array == nullptr) {
            in.fail("jobs", "must be a list such as [{op = \"kernel\", groups = 8, cycles = 10000}]");
            return made;
        }
        for (const toml::node& element : *array) {
            const toml::table* table = element.as_table();
            if (table == nullptr) {
                in.fail("jobs",
                        "must be a list of tables such as {op = \"kernel\", groups = 8, cycles = 10000}");
                return made;
            }
            TableReader one(*table, "job", problem_);
            std::uint64_t repeat = 1;
            const Job job = read_job(one, repeat);
            if (made.size() + repeat > kMaxRepeat) one.fail("too many jobs");
            if (problem_.any()) return made;
            made.insert(made.end(), repeat, job);
        }
        return made;
    }

    Job read_job(TableReader& in, std::uint64_t& repeat) {
        Job job;
        std::uint32_t op = 0;
        in.require("op");
        in.choice("op", op, kOps);
        job.op = static_cast<Op>(op);
        in.integer("repeat", repeat, 1, kMaxRepeat);
        in.boolean("ordered", job.ordered);
        in.boolean("interrupt", job.interrupt);
        switch (job.op) {
            case Op::kKernel:
                in.integer("groups", job.groups, 1, 0x7fffffff);
                in.integer("cycles", job.cycles, 1, 1'000'000'000'000);
                in.boolean("resident", job.resident);
                in.boolean("traps", job.traps);
                break;
            case Op::kCopy:
                place(in, "from", job.from, false);
                [[fallthrough]];
            case Op::kFill:
                place(in, "to", job.to, true);
                in.require("bytes");
                in.size("bytes", job.bytes);
                break;
            case Op::kWait:
            case Op::kSignal:
                in.require("semaphore");
                in.index("semaphore", job.semaphore, semaphores_, "semaphore");
                in.require("value");
                in.integer("value", job.value, 0, INT64_MAX);
                break;
            case Op::kGang:
                in.require("gang");
                in.index("gang", job.gang, gangs_, "gang");
                in.integer("round", job.round, 1, INT64_MAX);
                break;
            case Op::kNop:
            case Op::kBarrier:
            case Op::kTimestamp:
            case Op::kMalformed:
                break;
        }
        return job;
    }

    void submit(TableReader& in) {
        std::string target;
        in.require("queue");
        in.text("queue", target);
        std::uint64_t at = 0, every = 0, count = 1;
        moment(in, "at", at);
        in.time("every", every);
        in.integer("count", count, 1, kMaxRepeat);
        const auto list = jobs(in);
        if (problem_.any()) return;
        const auto found = groups_.find(target);
        if (found == groups_.end()) {
            return in.fail("queue",
                           fmt::format("there is no queue '{}': make one with [[queue]] above", target));
        }
        for (std::uint64_t n = 0; n < count; ++n) {
            for (const std::uint32_t queue : found->second)
                out_.submits.push_back({at + n * every, queue, list});
        }
    }

    void action(TableReader& in) {
        Action made;
        std::uint32_t kind = 0;
        in.require("do");
        in.choice("do", kind,
                  {{"set_queue", 0},
                   {"set_quota", 1},
                   {"destroy_queue", 2},
                   {"crash", 3},
                   {"poke", 4},
                   {"ring", 5}});
        made.kind = static_cast<Action::Kind>(kind);
        moment(in, "at", made.at);
        in.require("at");
        switch (made.kind) {
            case Action::Kind::kQueueSet: {
                std::uint64_t slice = 0;
                in.require("queue");
                in.index("queue", made.queue, queues_, "queue");
                in.choice("priority", made.priority, kPriorities);
                in.integer("weight", made.weight, 1, ORR_WEIGHT_MAX);
                in.time("slice", slice);
                made.slice_us = static_cast<std::uint32_t>(slice / kUs);
                break;
            }
            case Action::Kind::kQuotaSet: {
                std::uint64_t period = 0;
                in.require("context");
                in.index("context", made.context, contexts_, "context");
                in.integer("quota", made.quota, 0, 1000);
                in.time("period", period);
                made.period_us = static_cast<std::uint32_t>(period / kUs);
                break;
            }
            case Action::Kind::kQueueDestroy:
                in.require("queue");
                in.index("queue", made.queue, queues_, "queue");
                break;
            case Action::Kind::kRing:
                in.require("queue");
                in.index("queue", made.queue, queues_, "queue");
                in.require("value");
                in.integer("value", made.value, 0, INT64_MAX);
                break;
            case Action::Kind::kCrash:
                card_number(in, "card", made.card);
                made.queue = Action::kNobody;
                in.index("queue", made.queue, queues_, "queue");
                break;
            case Action::Kind::kPoke:
                in.require("semaphore");
                in.index("semaphore", made.semaphore, semaphores_, "semaphore");
                in.require("value");
                in.integer("value", made.value, 0, INT64_MAX);
                break;
        }
        out_.actions.push_back(made);
    }

    static constexpr std::uint64_t ORR_FW_QUEUES_MAX = 1024;

    Problem problem_;
    std::filesystem::path folder_;
    Scenario out_;
    bool cards_seen_ = false;
    Names contexts_, semaphores_, gangs_, queues_;
    std::map<std::string, std::vector<std::uint32_t>, std::less<>> groups_;
};

}  // namespace

std::expected<Scenario, std::string> Scenario::parse(std::string_view text, const std::string& file,
                                                     const std::filesystem::path& folder) {
    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error& error = parsed.error();
        return std::unexpected(
            fmt::format("{}:{}: {}", file, error.source().begin.line, std::string_view(error.description())));
    }
    Parser parser(file, folder);
    Scenario made = parser.read(parsed.table());
    if (parser.problem().any()) return std::unexpected(parser.problem().text());
    if (const std::string wrong = made.check(); !wrong.empty()) return std::unexpected(file + ": " + wrong);
    return made;
}

std::expected<Scenario, std::string> Scenario::load(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    if (!in) return std::unexpected(file.string() + ": this scenario cannot be read");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    return parse(text, file.string(), file.parent_path());
}

}  // namespace orrery::scenario
