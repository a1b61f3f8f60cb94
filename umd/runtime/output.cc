#include "umd/runtime/output.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdio>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace orrery::umd {
namespace {

constexpr std::uint64_t kMask = ORR_OUTPUT_WORDS - 1;
constexpr std::uint64_t kCountMask = 0xffffff;
constexpr int kMostWidth = 1000;  // of a field: more is a mistake

std::uint64_t load(const std::uint64_t& word) {
    return std::atomic_ref(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
void store(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref(word).store(value, std::memory_order_release);
}

void to_stdout(const std::string& text) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fflush(stdout);
}

// A conversion of a format, from behind its '%' on.
struct Conversion {
    std::string flags;
    int width = 0;
    int precision = -1;
    std::string_view length;
    char kind = 0;
};

class Formatter {
  public:
    Formatter(std::string_view format, std::span<const std::uint64_t> args, const Output::Texts& texts)
        : format_(format), args_(args), texts_(texts) {}

    std::string run() {
        while (!format_.empty()) {
            const std::size_t plain = std::min(format_.find('%'), format_.size());
            out_ += format_.substr(0, plain);
            format_.remove_prefix(plain);
            if (format_.empty()) break;
            const std::string_view whole = format_;
            format_.remove_prefix(1);
            if (!convert()) out_ += whole.substr(0, whole.size() - format_.size());
        }
        return std::move(out_);
    }

  private:
    char take() {
        if (format_.empty()) return 0;
        const char c = format_.front();
        format_.remove_prefix(1);
        return c;
    }
    bool next(std::uint64_t& value) {
        if (args_.empty()) return false;
        value = args_.front();
        args_ = args_.subspan(1);
        return true;
    }
    // Digits, or '*' and an argument.
    bool number(int& value) {
        if (!format_.empty() && format_.front() == '*') {
            std::uint64_t arg = 0;
            format_.remove_prefix(1);
            if (!next(arg)) return false;
            value = std::clamp(static_cast<int>(static_cast<std::uint32_t>(arg)), -kMostWidth, kMostWidth);
            return true;
        }
        int digits = 0;
        while (!format_.empty() && format_.front() >= '0' && format_.front() <= '9')
            digits = std::min(digits * 10 + (take() - '0'), kMostWidth);
        value = digits;
        return true;
    }

    bool convert() {
        Conversion c;
        while (!format_.empty() && std::string_view("-+ #0").contains(format_.front()))
            c.flags += take();
        if (!number(c.width)) return false;
        if (!format_.empty() && format_.front() == '.') {
            take();
            if (!number(c.precision)) return false;
        }
        const std::size_t length = std::min(format_.find_first_not_of("hlqjzt"), format_.size());
        c.length = format_.substr(0, length);
        format_.remove_prefix(length);
        c.kind = take();
        if (c.kind == '%') {
            out_ += '%';
            return true;
        }
        std::uint64_t value = 0;
        if (!std::string_view("diouxXcsfFeEgGaAp").contains(c.kind) || c.kind == 0 || !next(value))
            return false;
        put(c, value);
        return true;
    }

    template <typename T>
    void print(const Conversion& c, std::string_view length, T value) {
        const std::string spec = fmt::format("%{}*.*{}{}", c.flags, length, c.kind);
        std::array<char, 2 * kMostWidth> text;
// The format is made of checked parts.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        const int size = std::snprintf(text.data(), text.size(), spec.c_str(), c.width, c.precision, value);
#pragma GCC diagnostic pop
        if (size > 0) out_.append(text.data(), std::min(static_cast<std::size_t>(size), text.size() - 1));
    }

    void put(const Conversion& c, std::uint64_t value) {
        const bool wide = !c.length.empty() && c.length.front() != 'h';
        switch (c.kind) {
            case 'd':
            case 'i':
                return print(c, "ll",
                             wide               ? static_cast<long long>(value)
                             : c.length == "h"  ? static_cast<std::int16_t>(value)
                             : c.length == "hh" ? static_cast<std::int8_t>(value)
                                                : static_cast<std::int32_t>(value));
            case 'o':
            case 'u':
            case 'x':
            case 'X':
                return print(c, "ll",
                             wide               ? static_cast<unsigned long long>(value)
                             : c.length == "h"  ? static_cast<std::uint16_t>(value)
                             : c.length == "hh" ? static_cast<std::uint8_t>(value)
                                                : static_cast<std::uint32_t>(value));
            case 'c':
                return put_text(c, std::string(1, static_cast<char>(value)));
            case 's':
                return put_text(c, texts_(value).value_or("(no string of the module)"));
            case 'p':
                return put_text(c, fmt::format("{:#x}", value));
            default:
                return print(c, "", std::bit_cast<double>(value));
        }
    }

    void put_text(const Conversion& c, std::string text) {
        if (c.precision >= 0) text.resize(std::min(text.size(), static_cast<std::size_t>(c.precision)));
        const bool left = c.flags.contains('-') || c.width < 0;
        const auto width = static_cast<std::size_t>(std::abs(c.width));
        const std::string pad(width > text.size() ? width - text.size() : 0, ' ');
        out_ += left ? text + pad : pad + text;
    }

    std::string_view format_;
    std::span<const std::uint64_t> args_;
    const Output::Texts& texts_;
    std::string out_;
};

}  // namespace

std::string format_output(const std::string& format, std::span<const std::uint64_t> args,
                          const Output::Texts& texts) {
    return Formatter(format, args, texts).run();
}

Output::Output(orr_output& ring, Texts texts, Work work, std::string who, Sink sink)
    : ring_(ring),
      texts_(std::move(texts)),
      who_(std::move(who)),
      work_(std::move(work)),
      sink_(sink ? std::move(sink) : Sink(to_stdout)) {}

void Output::tell(const std::string& what) {
    std::fprintf(stderr, "orrery: %s: %s\n", who_.c_str(), what.c_str());
}

void Output::print() {
    if (load(ring_.head) == tail_.load(std::memory_order_relaxed) &&
        load(ring_.lost) == lost_.load(std::memory_order_relaxed))
        return;
    // Streams are asked, and may go, without the lock: they wait for memory that others free under locks of
    // their own.
    while (auto gap = print_complete()) {
        if (!gap->ended) gap = watch(*gap);
        if (!gap->ended()) return;
        skip(*gap);
    }
}

std::uint64_t Output::words_of(std::uint64_t first, std::uint64_t room) {
    const std::uint64_t words = first & kCountMask;
    const bool good = (first & ~kCountMask) == ORR_OUTPUT_RECORD && words >= ORR_OUTPUT_RECORD_HEAD &&
                      words <= ORR_OUTPUT_RECORD_HEAD + ORR_OUTPUT_ARGS && words <= room;
    return good ? words : 0;
}

void Output::clear(std::uint64_t from, std::uint64_t words) {
    for (std::uint64_t i = 0; i < words; ++i)
        store(ring_.words[(from + i) & kMask], 0);
}

void Output::move_tail(std::uint64_t to) {
    tail_.store(to, std::memory_order_relaxed);
    store(ring_.tail, to);
}

std::shared_ptr<const Output::Gap> Output::print_complete() {
    const std::lock_guard lock(mutex_);
    const std::uint64_t head = load(ring_.head);
    std::shared_ptr<const Gap> gap;
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    bool spoilt = head - tail > ORR_OUTPUT_WORDS;
    while (!spoilt && tail != head) {
        const std::uint64_t first = load(ring_.words[tail & kMask]);
        if (first == 0) {
            gap = gap_ != nullptr && gap_->at == tail ? gap_ : std::make_shared<Gap>(tail, head, Ended());
            break;
        }
        const std::uint64_t words = words_of(first, head - tail);
        spoilt = words == 0;
        if (spoilt) break;
        std::vector<std::uint64_t> record(words);
        for (std::uint64_t i = 0; i < words; ++i)
            record[i] = load(ring_.words[(tail + i) & kMask]);
        clear(tail, words);
        print_record(record);
        tail += words;
        move_tail(tail);
    }
    if (spoilt) {
        // Kernels take their places from `head` on, so that is where it goes on.
        clear(0, ORR_OUTPUT_WORDS);
        move_tail(head);
        tell("a kernel has written over what kernels had printed: some of it is lost");
    }
    const std::uint64_t lost = load(ring_.lost), told = lost_.exchange(lost, std::memory_order_relaxed);
    if (lost != told)
        tell(
            fmt::format("{} calls of printf in kernels found no room and were lost; wait for the stream more "
                        "often",
                        lost - told));
    return gap;
}

std::shared_ptr<const Output::Gap> Output::watch(const Gap& gap) {
    auto watched = std::make_shared<const Gap>(gap.at, gap.head, work_());
    const std::lock_guard lock(mutex_);
    if (tail_.load(std::memory_order_relaxed) == gap.at) gap_ = watched;
    return watched;
}

void Output::skip(const Gap& gap) {
    const std::lock_guard lock(mutex_);
    // Another thread may have been here.
    if (tail_.load(std::memory_order_relaxed) != gap.at) return;
    std::uint64_t next = gap.at;
    while (next != gap.head && words_of(load(ring_.words[next & kMask]), gap.head - next) == 0)
        ++next;
    if (next == gap.at) return;  // it was completed at last
    clear(gap.at, next - gap.at);
    move_tail(next);
    tell("a kernel ended while it printed: that text is lost");
}

void Output::print_record(std::span<const std::uint64_t> record) {
    const auto format = texts_(record[1]);
    if (!format) return tell("a kernel printed with a format that is no constant of its module");
    sink_(format_output(*format, record.subspan(ORR_OUTPUT_RECORD_HEAD), texts_));
}

}  // namespace orrery::umd
