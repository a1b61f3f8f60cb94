// A headless Chromium, driven over loopback by its driver (W3C WebDriver).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace orrery::prof::test {

// What goes wrong with the browser itself is a std::runtime_error. One thread at a time.
class Browser {
  public:
    using Json = nlohmann::json;

    // `folder` is its own, and is there as long as it is.
    explicit Browser(const std::filesystem::path& folder);
    ~Browser();
    Browser(const Browser&) = delete;
    Browser& operator=(const Browser&) = delete;

    void open(const std::filesystem::path& page);
    // The function's body has the arguments as `arguments`.
    Json run(const std::string& script, const Json& arguments = Json::array());
    // The same, and it gives its result to a function, its last argument.
    Json run_async(const std::string& script, const Json& arguments = Json::array());
    // In pixels of the window, and whether it likes the dark.
    void resize(int width, int height);
    void prefer_dark(bool dark);

    // At points of the page in the window.
    void click(double x, double y, bool twice = false);
    void drag(double x, double y, double to_x, double to_y, bool shift = false);
    void scroll(double x, double y, int delta_y);
    // A character, or one of WebDriver's own: U+E012 is the left arrow.
    void key(const std::string& key);
    void type(const std::string& text);

    // What the page and the browser said in the console since the last call.
    Json console();

  private:
    Json request(const std::string& method, const std::string& path, const Json& body = Json());
    Json command(const std::string& path, const Json& body) { return request("POST", session_ + path, body); }
    void actions(const Json& sources) { command("/actions", {{"actions", sources}}); }
    void start(const std::filesystem::path& folder);
    void stop();

    pid_t driver_ = -1;
    std::uint16_t port_ = 0;
    std::string session_;
};

}  // namespace orrery::prof::test
