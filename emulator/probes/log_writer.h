// Writes lines to a log that may be slow, on a thread of its own: who has something to say never waits.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string>
#include <thread>

namespace orrery::emu {

// Thread safety: any thread.
class LogWriter {
  public:
    // `out` is borrowed.
    explicit LogWriter(std::FILE* out) : out_(out) {}
    // Waits for what is left, for a reader that does not read not longer than kPatienceMs.
    ~LogWriter();
    LogWriter(const LogWriter&) = delete;
    LogWriter& operator=(const LogWriter&) = delete;

    // A line without its end. Of too many that wait the newest are lost, and the log says how many.
    void put(std::string line);
    // Waits, with the same limit, until everything that was put has been written.
    void flush();

    static constexpr std::size_t kLines = 1024;
    static constexpr std::size_t kLineBytes = 2048;  // longer ones are cut
    static constexpr int kPatienceMs = 1000;

  private:
    void run();
    bool wait_until_writable();

    std::FILE* const out_;
    std::mutex mutex_;
    std::condition_variable more_, written_;
    std::deque<std::string> lines_;
    std::uint64_t lost_ = 0;
    bool busy_ = false;      // the writer holds lines
    bool stopping_ = false;  // give up what cannot be written soon
    std::thread thread_;     // from the first line on
};

}  // namespace orrery::emu
