// The thread that runs a card, for as long as this lives.
#pragma once

#include <thread>

namespace orrery::emu {

class Card;

class CardThread {
  public:
    // From here on the card's commands are the thread's, also while it still starts: two that take them at
    // once would carry one out twice.
    explicit CardThread(Card& card);
    ~CardThread() { stop(); }
    CardThread(const CardThread&) = delete;
    CardThread& operator=(const CardThread&) = delete;

    // Ends it, and waits for that; what was posted has been carried out then. May be called again.
    void stop();

  private:
    Card& card_;
    std::thread thread_;
};

}  // namespace orrery::emu
