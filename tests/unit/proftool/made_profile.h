// Profiles as bytes, made by hand.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "tools/prof/format.h"

namespace orrery::prof::test {

class MadePart {
  public:
    explicit MadePart(std::uint64_t pid = 100, std::string_view command = "program") {
        head.magic = kPartMagic;
        head.pid = pid;
        head.begin_ns = 1'000;
        head.ended = 1;
        std::memcpy(head.command, command.data(), command.size());
    }
    std::uint32_t text(std::string_view text) {
        RecordHead record{static_cast<std::uint16_t>(Type::kText),
                          static_cast<std::uint16_t>((sizeof(RecordHead) + text.size() + 8) / 8 * 8),
                          ++texts_};
        add(record);
        records_.append(text);
        records_.append(record.bytes - sizeof record - text.size(), '\0');
        return texts_;
    }
    void call(std::uint32_t text, std::uint64_t begin, std::uint64_t end, std::uint32_t thread = 100,
              std::int32_t error = 0) {
        CallRecord record{
            {static_cast<std::uint16_t>(Type::kCall), sizeof record, text}, begin, end, 7, 0, thread, error};
        add(record);
    }
    void range(Type type, std::uint32_t text, std::uint64_t ns, std::uint32_t domain = 0,
               std::uint32_t thread = 100) {
        RangeRecord record{{static_cast<std::uint16_t>(type), sizeof record, text}, ns, 0, 0, thread, domain};
        add(record);
    }
    void work(std::uint32_t text, std::uint32_t stream, std::uint64_t begin_ps, std::uint64_t end_ps,
              std::uint64_t correlation = 7, std::uint32_t device = 0, std::uint16_t outcome = 0) {
        WorkRecord record{};
        record.head = {static_cast<std::uint16_t>(Type::kWork), sizeof record, text};
        record.thread = 100;
        record.device = device;
        record.submitted_ns = 2'100;
        record.correlation = correlation;
        record.stream = stream;
        record.begin_ps = begin_ps;
        record.end_ps = end_ps;
        record.stream_name = stream;
        record.outcome = outcome;
        add(record);
    }
    template <typename Record>
    void add(const Record& record) {
        records_.append(reinterpret_cast<const char*>(&record), sizeof record);
    }
    std::string bytes() const {
        PartHead own = head;
        own.bytes = records_.size();
        return std::string(reinterpret_cast<const char*>(&own), sizeof own) + records_;
    }

    PartHead head{};

  private:
    std::string records_;
    std::uint32_t texts_ = 0;
};

inline std::string made_profile(const std::string& parts, std::uint32_t major = kFormatMajor) {
    FileHead head{{}, major, kFormatMinor};
    std::memcpy(head.magic, kMagic, sizeof kMagic);
    return std::string(reinterpret_cast<const char*>(&head), sizeof head) + parts;
}

}  // namespace orrery::prof::test
