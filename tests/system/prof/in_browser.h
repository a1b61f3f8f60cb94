// Tests of pages of `orrery-prof html`: what a headless Chromium shows of them.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/system/prof/browser.h"

namespace orrery::prof::test {

namespace fs = std::filesystem;
using Json = Browser::Json;
using Strings = std::vector<std::string>;

constexpr const char* kEscape = "\uE00C";

// A browser for all tests of a suite.
class InBrowser : public ::testing::Test {
  protected:
    static void SetUpTestSuite() {
        folder_ = fs::temp_directory_path() / fmt::format("orrery-prof-html-{}", ::getpid());
        fs::create_directories(folder_);
        browser_ = std::make_unique<Browser>(folder_);
    }
    static void TearDownTestSuite() {
        browser_.reset();
        fs::remove_all(folder_);
    }
    void SetUp() override {
        browser_->resize(1200, 800);
        browser_->prefer_dark(false);
    }
    // Nothing may be wrong in the page, whatever was done with it.
    void TearDown() override { EXPECT_EQ(browser_->console().dump(), "[]"); }

    static void open(const fs::path& page) {
        browser_->open(page);
        ASSERT_TRUE(
            browser_
                ->run_async("const done = arguments[0];"
                            "const look = () => window.orreryPage ? done(true) : setTimeout(look, 20);"
                            "setTimeout(() => done(false), 60000); look();")
                .get<bool>());
    }
    static Json state() { return browser_->run("return orreryPage.state()"); }
    static std::string text(const std::string& selector) {
        return browser_->run("return document.querySelector(arguments[0]).innerText", {selector});
    }
    static int count(const std::string& selector) {
        return browser_->run("return document.querySelectorAll(arguments[0]).length", {selector});
    }
    static Strings texts(const std::string& selector) {
        return browser_->run(
            "return [...document.querySelectorAll(arguments[0])].map((one) => one.innerText)", {selector});
    }
    // The n-th slice with this name.
    static int slice(const std::string& name, std::size_t n = 0) {
        return browser_->run("return orreryPage.slices(arguments[0])", {name}).at(n);
    }
    static Json place(int slice) { return browser_->run("return orreryPage.place(arguments[0])", {slice}); }
    static void click(int slice, bool twice = false) {
        const Json at = place(slice);
        browser_->click(at["x"], at["y"], twice);
    }
    static void press(const std::string& selector) {
        const Json box = browser_->run(
            "const one = document.querySelector(arguments[0]); one.scrollIntoView({block: 'nearest'});"
            "const box = one.getBoundingClientRect(); return [box.left + box.width / 2, box.top + box.height "
            "/ 2]",
            {selector});
        browser_->click(box[0], box[1]);
    }
    static std::string selected() {
        const Json now = state()["selected"];
        return now.is_null() ? "" : now["name"].get<std::string>();
    }

    static inline fs::path folder_;
    static inline std::unique_ptr<Browser> browser_;
};

}  // namespace orrery::prof::test
