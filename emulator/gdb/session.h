// One debugger's session with a target: bytes in, bytes out. No sockets here.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "emulator/gdb/packets.h"
#include "emulator/gdb/target.h"

namespace orrery::emu::gdb {

class Session {
  public:
    // Stops the target; it is left running when the session ends without a detach.
    explicit Session(Target& target);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    void receive(std::span<const std::uint8_t> bytes);
    // Looks whether the running target has stopped. false: it has not, and nothing happened.
    bool poll();
    bool running() const { return running_; }

    // What the debugger is to get; taken away by the caller.
    std::string& output() { return output_; }
    bool over() const { return over_; }      // detached or killed: hang up
    bool killed() const { return killed_; }  // the debugger wants the target to end

  private:
    void handle(std::string_view packet);
    void reply(std::string_view data);
    void resume(Resume how);
    void query(std::string_view packet);
    void verbose(std::string_view rest);
    std::string stop_text() const;
    // threads.cc
    std::string thread_query(std::string_view packet);
    std::string select(std::string_view text);
    std::string alive(std::string_view text);
    void resume_threads(std::string_view actions);
    std::string read_all();
    std::string write_all(std::string_view text);
    std::string read_one(std::string_view text);
    std::string write_one(std::string_view text);
    std::string read_memory(std::string_view text);
    std::string write_memory(std::string_view text);
    std::string point(std::string_view text, bool insert);
    std::string description(std::string_view text);
    std::string program_path(std::string_view text);
    static std::string part(std::string_view all, std::string_view text);
    std::string monitor(std::string_view text);
    void end();

    Target& target_;
    PacketReader reader_;
    std::string output_;
    std::string last_;  // reply, for a debugger that wants it again
    Stop stop_;
    bool acknowledge_ = true;
    bool running_ = false;
    bool over_ = false;
    bool killed_ = false;
};

}  // namespace orrery::emu::gdb
