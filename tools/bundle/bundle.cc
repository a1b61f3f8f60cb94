#include "tools/bundle/bundle.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <sodium.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "tools/text/shown.h"

namespace orrery::bundle {

namespace fs = std::filesystem;
using nlohmann::ordered_json;
using text::fail;

namespace {

constexpr std::size_t kBlock = 64 << 10;
constexpr const char* kAgain = "the file is damaged, or no bundle of orrery-vm's: take another copy";

using Archive = std::unique_ptr<archive, decltype(&archive_write_free)>;
using Reader = std::unique_ptr<archive, decltype(&archive_read_free)>;
using Entry = std::unique_ptr<archive_entry, decltype(&archive_entry_free)>;

std::string hex(const unsigned char (&digest)[crypto_hash_sha256_BYTES]) {
    std::string out;
    for (const unsigned char byte : digest)
        out += fmt::format("{:02x}", byte);
    return out;
}

std::string sha256(std::string_view bytes) {
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256(digest, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    return hex(digest);
}

bool head(archive* to, std::string_view name, std::uint64_t bytes) {
    const Entry entry(archive_entry_new(), archive_entry_free);
    archive_entry_set_pathname(entry.get(), std::string(name).c_str());
    archive_entry_set_size(entry.get(), static_cast<la_int64_t>(bytes));
    archive_entry_set_filetype(entry.get(), AE_IFREG);
    archive_entry_set_perm(entry.get(), 0644);
    return archive_write_header(to, entry.get()) == ARCHIVE_OK;
}

bool put(archive* to, std::string_view bytes) {
    return archive_write_data(to, bytes.data(), bytes.size()) == static_cast<la_ssize_t>(bytes.size());
}

// Of a file that nobody else has: nothing that stands there is followed, or written to.
int open_fresh(const fs::path& file) {
    if (::unlink(file.c_str()) != 0 && errno != ENOENT) return -1;
    return ::open(file.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

bool write_whole(int to, std::string_view bytes, std::uint64_t at) {
    while (!bytes.empty()) {
        const ssize_t n = ::pwrite(to, bytes.data(), bytes.size(), static_cast<off_t>(at));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes.remove_prefix(static_cast<std::size_t>(n));
        at += static_cast<std::uint64_t>(n);
    }
    return true;
}

// How many it has got; -1: none.
ssize_t read_some(int from, std::span<char> to, std::uint64_t at) {
    while (true) {
        const ssize_t n = ::pread(from, to.data(), to.size(), static_cast<off_t>(at));
        if (n >= 0 || errno != EINTR) return n;
    }
}

// What stands in an archive, one entry after the other.
class Entries {
  public:
    Entries(fs::path file, std::uint64_t length)
        : file_(std::move(file)), left_(length), in_(archive_read_new(), archive_read_free) {}

    Result<void> open() {
        if (archive_read_support_format_tar(in_.get()) != ARCHIVE_OK ||
            archive_read_open_filename(in_.get(), file_.c_str(), kBlock) != ARCHIVE_OK)
            return broken();
        return {};
    }
    // Nothing: there are no more.
    Result<std::optional<File>> next() {
        archive_entry* entry = nullptr;
        const int got = archive_read_next_header(in_.get(), &entry);
        if (got == ARCHIVE_EOF) return std::nullopt;
        if (got != ARCHIVE_OK) return broken();
        const char* path = archive_entry_pathname(entry);
        File out{path != nullptr ? path : "", {}};
        if (!good_name(out.name) && out.name != kManifest)
            return refuse("there is a file '{}' in it, which no bundle has", text::shown(out.name));
        if (archive_entry_filetype(entry) != AE_IFREG || archive_entry_hardlink(entry) != nullptr ||
            archive_entry_sparse_count(entry) != 0)
            return refuse("'{}' in it is no plain file", out.name);
        // Nothing in it is packed, so a length beyond the file's is a lie.
        const la_int64_t bytes = archive_entry_size(entry);
        if (!archive_entry_size_is_set(entry) || bytes < 0 || static_cast<std::uint64_t>(bytes) > left_)
            return refuse("'{}' is said to have {} bytes, more than there are", out.name, bytes);
        left_ -= static_cast<std::uint64_t>(bytes);
        if (out.name == kManifest && static_cast<std::uint64_t>(bytes) > kMostManifest)
            return refuse("its manifest has {} bytes; {} are the most", bytes, kMostManifest);
        out.bytes.resize(static_cast<std::size_t>(bytes));
        if (archive_read_data(in_.get(), out.bytes.data(), out.bytes.size()) != bytes)
            return refuse("it ends inside '{}'", out.name);
        return out;
    }
    template <typename... Args>
    std::unexpected<text::Error> refuse(fmt::format_string<Args...> format, Args&&... args) const {
        return fail("{}: {}; {}", file_.string(), fmt::format(format, std::forward<Args>(args)...), kAgain);
    }

  private:
    std::unexpected<text::Error> broken() const {
        const char* why = archive_error_string(in_.get());
        return refuse("it cannot be read ({})", why != nullptr ? text::shown(why) : "no reason told");
    }

    fs::path file_;
    std::uint64_t left_;
    Reader in_;
};

}  // namespace

bool good_name(std::string_view name) {
    return !name.empty() && name.size() <= 64 && name.front() != '.' && name != kManifest &&
           std::ranges::all_of(name, [](char c) {
               return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '.' || c == '-' || c == '_';
           });
}

Writer::Writer(fs::path file) : file_(std::move(file)) {}

Writer::~Writer() {
    if (spool_ >= 0) ::close(spool_);
    if (out_ < 0) return;
    ::close(out_);
    ::unlink(beside(".new").c_str());
}

fs::path Writer::beside(const char* ending) const {
    fs::path out = file_;
    return out += ending;
}

bool Writer::has(std::string_view name) const {
    return std::ranges::find(files_, name, &Listed::name) != files_.end();
}

// The manifest, which comes first, has what is known only of all files: they wait in a file without a name.
Result<void> Writer::open() {
    if (spool_ >= 0) return {};
    spool_ = open_fresh(beside(".files"));
    if (spool_ < 0) return fail("{}: the report cannot be written: {}", file_.string(), std::strerror(errno));
    ::unlink(beside(".files").c_str());
    return {};
}

template <typename Read>
Result<void> Writer::take(const std::string& name, std::uint64_t bytes, Read&& read) {
    if (files_.size() == kMostFiles) return fail("there are {} files already", kMostFiles);
    if (bytes > kMostBytes - std::min(length_, kMostBytes))
        return fail("all files together have more than {} bytes", kMostBytes);
    if (auto opened = open(); !opened) return opened;
    crypto_hash_sha256_state state;
    crypto_hash_sha256_init(&state);
    std::uint64_t got = 0;
    while (got < bytes) {
        Result<std::string_view> some = read(got, bytes - got);
        if (!some) return std::unexpected(some.error());
        if (some->empty()) break;
        if (!write_whole(spool_, *some, length_ + got)) return fail("{}", std::strerror(errno));
        crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char*>(some->data()), some->size());
        got += some->size();
    }
    unsigned char digest[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_final(&state, digest);
    files_.push_back({name, hex(digest), got});
    length_ += got;
    return {};
}

Result<void> Writer::add(const std::string& name, std::string_view bytes) {
    return take(name, bytes.size(), [&](std::uint64_t at, std::uint64_t) -> Result<std::string_view> {
        return bytes.substr(static_cast<std::size_t>(at));
    });
}

Result<void> Writer::add(const std::string& name, int from, std::uint64_t offset, std::uint64_t bytes) {
    std::vector<char> block(kBlock);
    return take(name, bytes, [&](std::uint64_t at, std::uint64_t left) -> Result<std::string_view> {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), left));
        const ssize_t n = read_some(from, std::span(block).first(most), offset + at);
        if (n < 0) return fail("{}", std::strerror(errno));
        return std::string_view(block.data(), static_cast<std::size_t>(n));
    });
}

Result<void> Writer::write_all(const std::string& manifest) {
    const Archive out(archive_write_new(), archive_write_free);
    const auto broken = [&] {
        const char* why = archive_error_string(out.get());
        return fail("{}: the report cannot be written: {}", file_.string(),
                    why != nullptr ? why : std::strerror(errno));
    };
    out_ = open_fresh(beside(".new"));
    if (out_ < 0) return broken();
    if (archive_write_set_format_pax_restricted(out.get()) != ARCHIVE_OK ||
        archive_write_open_fd(out.get(), out_) != ARCHIVE_OK ||
        !head(out.get(), kManifest, manifest.size()) || !put(out.get(), manifest))
        return broken();
    std::vector<char> block(kBlock);
    std::uint64_t at = 0;
    for (const Listed& each : files_) {
        if (!head(out.get(), each.name, each.bytes)) return broken();
        for (std::uint64_t left = each.bytes; left > 0;) {
            const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(block.size(), left));
            const ssize_t n = read_some(spool_, std::span(block).first(most), at);
            if (n <= 0 || !put(out.get(), {block.data(), static_cast<std::size_t>(n)})) return broken();
            at += static_cast<std::uint64_t>(n);
            left -= static_cast<std::uint64_t>(n);
        }
    }
    if (archive_write_close(out.get()) != ARCHIVE_OK) return broken();
    return {};
}

Result<void> Writer::end(const ordered_json& manifest) {
    ordered_json whole{{"format", kFormat}};
    whole.update(manifest);
    ordered_json list = ordered_json::array();
    for (const Listed& each : files_)
        list.push_back({{"name", each.name}, {"bytes", each.bytes}, {"sha256", each.sha256}});
    whole["files"] = std::move(list);
    if (auto done = write_all(whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n");
        !done)
        return done;
    std::error_code error;
    fs::rename(beside(".new"), file_, error);
    if (error) return fail("{}: the report cannot be put there: {}", file_.string(), error.message());
    ::close(std::exchange(out_, -1));
    return {};
}

Result<void> write(const fs::path& file, const ordered_json& manifest, const std::vector<File>& files) {
    Writer writer(file);
    for (const File& each : files)
        if (auto added = writer.add(each.name, each.bytes); !added)
            return fail("{}: the report cannot be written: {}", file.string(), added.error().text);
    return writer.end(manifest);
}

std::string Bundle::text(const ordered_json& object, std::string_view key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}

std::uint64_t Bundle::number(const ordered_json& object, std::string_view key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() && at->is_number_unsigned() ? at->get<std::uint64_t>() : 0;
}

ordered_json Bundle::part(const ordered_json& object, std::string_view key) {
    const auto at = object.is_object() ? object.find(key) : object.end();
    return at != object.end() ? *at : ordered_json();
}

Result<Bundle> read(const fs::path& file) {
    std::error_code error;
    if (!fs::is_regular_file(file, error))
        return fail("{}: {}", file.string(), error ? error.message() : "this is no regular file");
    const std::uint64_t length = fs::file_size(file, error);
    if (error) return fail("{}: {}", file.string(), error.message());
    Entries entries(file, length);
    if (auto opened = entries.open(); !opened) return std::unexpected(opened.error());
    auto first = entries.next();
    if (!first) return std::unexpected(first.error());
    if (!*first || (*first)->name != kManifest) return entries.refuse("it does not begin with {}", kManifest);
    Bundle bundle;
    bundle.manifest_text = std::move((*first)->bytes);
    bool deep = false;
    bundle.manifest = ordered_json::parse(
        bundle.manifest_text,
        [&](int depth, ordered_json::parse_event_t, const ordered_json&) {
            deep |= depth > kMostDepth;
            return !deep;
        },
        false);
    if (deep) return entries.refuse("its manifest is nested more than {} deep", kMostDepth);
    if (!bundle.manifest.is_object()) return entries.refuse("its manifest is no JSON object");
    if (const std::uint64_t format = Bundle::number(bundle.manifest, "format"); format != kFormat)
        return fail("{}: a bundle of format {}; this program reads format {}", file.string(), format,
                    kFormat);
    const ordered_json listed = Bundle::part(bundle.manifest, "files");
    if (!listed.is_array() || listed.size() > kMostFiles)
        return entries.refuse("its manifest lists no files, or more than {}", kMostFiles);
    for (const ordered_json& each : listed) {
        const std::string name = Bundle::text(each, "name");
        auto next = entries.next();
        if (!next) return std::unexpected(next.error());
        if (!*next) return entries.refuse("'{}' is missing", text::shown(name));
        if ((*next)->name != name)
            return entries.refuse("'{}' stands where '{}' belongs", (*next)->name, text::shown(name));
        if ((*next)->bytes.size() != Bundle::number(each, "bytes") ||
            sha256((*next)->bytes) != Bundle::text(each, "sha256"))
            return entries.refuse(
                "'{}' is not the file that the manifest names: its length or SHA-256 differs", name);
        if (!bundle.files.emplace(name, std::move((*next)->bytes)).second)
            return entries.refuse("'{}' is in it twice", name);
    }
    const auto more = entries.next();
    if (!more) return std::unexpected(more.error());
    if (*more) return entries.refuse("'{}' is not in its manifest", (*more)->name);
    return bundle;
}

}  // namespace orrery::bundle
