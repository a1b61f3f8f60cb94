#include "emulator/trace/port_words.h"

namespace orrery::emu {

std::expected<orr_otrace_port, LogError> PortDecoder::head() {
    orr_otrace_port port{};
    if (in_.size() < sizeof port) return refuse("a port block without its head");
    std::memcpy(&port, in_.data(), sizeof port);
    if (port.reserved != 0) return refuse("a port block's reserved field is not zero");
    at_ = sizeof port;
    return port;
}

bool PortDecoder::number(unsigned bytes, std::uint64_t& value) {
    value = 0;
    if (bytes > sizeof value || in_.size() - at_ < bytes) return false;
    std::memcpy(&value, in_.data() + at_, bytes);
    at_ += bytes;
    return true;
}

std::expected<PortDecoder::Word, LogError> PortDecoder::next(bool header) {
    constexpr const char* kCut = "a word is cut, or of an unknown form";
    // Each takes a step, and so there is an end to what a file makes of little.
    if (++words_ > steps_) return refuse("more words than the log has steps");
    if (header) {
        const unsigned tag = in_[at_++];
        std::uint64_t steps = 0, ps = 0;
        if (!number(tag & 15u, steps) || !number(tag >> 4, ps)) return refuse(kCut);
        if ((any_ && steps == 0) || steps >= steps_ - step_ || ps > ps_ - time_)
            return refuse("a record lies beyond its log, or not behind the one before it");
        step_ += steps;
        time_ += ps;
        any_ = true;
    }
    Word word{.step = step_, .ps = time_};
    if (done() || !number(in_[at_++], word.value)) return refuse(kCut);
    return word;
}

}  // namespace orrery::emu
