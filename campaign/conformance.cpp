#include "campaign/conformance.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "campaign/markup.hpp"
#include "campaign/vector_run.hpp"
#include "simkernel/chip_config.hpp"
#include "simkernel/numerics/workers.hpp"
#include "support/error.hpp"

namespace assay::campaign {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;
using Status = VectorOutcome::Status;

constexpr const char* kSystemVectors = "/usr/share/libonnx-testdata/data/node";

Status status_from(const std::string& name) {
    for (const Status status : {Status::passed, Status::failed, Status::unsupported, Status::crashed})
        if (name == name_of(status)) return status;
    return Status::crashed;
}

std::vector<std::string> vectors_in(const std::string& folder, const std::string& filter) {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (fs::exists(entry.path() / "model.onnx") && entry.path().filename().string().find(filter) != std::string::npos) found.push_back(entry.path().string());
    if (found.empty())
        throw Error(ErrorKind::bad_input, fmt::format("{}: holds no <name>/model.onnx{}; install libonnx-testdata or name a folder of vectors", folder,
                                                      filter.empty() ? "" : fmt::format(" with '{}' in its name", filter)));
    std::sort(found.begin(), found.end());
    return found;
}

/// A child process with a target of its own: indices of vectors go in, a line of JSON for each comes out.
class Child {
public:
    Child(const std::vector<std::string>& vectors, const ConformanceOptions& options) {
        int in[2], out[2];
        if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw Error(ErrorKind::io, fmt::format("conformance: no pipe: {}", std::strerror(errno)));
        pid_ = fork();
        if (pid_ < 0) throw Error(ErrorKind::io, fmt::format("conformance: no child process: {}", std::strerror(errno)));
        if (pid_ == 0) {
            close(in[1]);
            close(out[0]);
            serve(in[0], out[1], vectors, options);
        }
        close(in[0]);
        close(out[1]);
        to_ = in[1];
        from_ = out[0];
    }
    ~Child() {
        close(to_);
        close(from_);
        kill(pid_, SIGKILL);
        waitpid(pid_, nullptr, 0);
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    void give(std::size_t index) {
        const std::string line = fmt::format("{}\n", index);
        index_ = index;
        began_ = Clock::now();
        // A child that died meanwhile is seen when its answer is read.
        if (write(to_, line.data(), line.size()) < 0) return;
    }
    std::optional<std::size_t> busy_with() const { return index_; }
    int answers() const { return from_; }
    double seconds() const { return std::chrono::duration<double>(Clock::now() - began_).count(); }

    /// Reads what is there. True with the whole answer in `line`; false when more must come. Throws nothing; `died` says that none will.
    bool read_answer(std::string& line, bool& died) {
        char buffer[4096];
        const ssize_t got = read(from_, buffer, sizeof buffer);
        if (got <= 0) {
            died = true;
            return false;
        }
        text_.append(buffer, static_cast<std::size_t>(got));
        const std::size_t end = text_.find('\n');
        if (end == std::string::npos) return false;
        line = text_.substr(0, end);
        text_.erase(0, end + 1);
        index_.reset();
        return true;
    }
    std::string how_it_died() {
        int status = 0;
        kill(pid_, SIGKILL);
        waitpid(pid_, &status, 0);
        return WIFSIGNALED(status) ? fmt::format("the process died of signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                                   : fmt::format("the process ended with status {}", WEXITSTATUS(status));
    }

private:
    [[noreturn]] static void serve(int in, int out, const std::vector<std::string>& vectors, const ConformanceOptions& options) {
        // The children share the cores already.
        simkernel::set_worker_count(1);
        FILE* orders = fdopen(in, "r");
        std::unique_ptr<switchover::Target> target;
        std::size_t index = 0;
        while (orders != nullptr && std::fscanf(orders, "%zu", &index) == 1) {
            VectorOutcome outcome;
            try {
                if (!target) target = switchover::make_target(options.target, options.target_options);
                outcome = run_vector(vectors.at(index), *target, options);
            } catch (const std::exception& error) {
                outcome.status = Status::failed;
                outcome.reason = error.what();
            }
            const std::string line = json{{"status", name_of(outcome.status)}, {"op", outcome.op}, {"host", outcome.on_host}, {"reason", outcome.reason}}.dump(
                                         -1, ' ', false, json::error_handler_t::replace) + "\n";
            if (write(out, line.data(), line.size()) < 0) break;
        }
        _exit(0);
    }

    pid_t pid_ = -1;
    int to_ = -1, from_ = -1;
    std::optional<std::size_t> index_;
    Clock::time_point began_;
    std::string text_;
};

}  // namespace

std::string_view name_of(VectorOutcome::Status status) {
    switch (status) {
        case Status::passed: return "passed";
        case Status::failed: return "failed";
        case Status::unsupported: return "unsupported";
        case Status::crashed: return "crashed";
    }
    return "?";
}

std::size_t ConformanceReport::count(VectorOutcome::Status status) const {
    return static_cast<std::size_t>(std::count_if(vectors.begin(), vectors.end(), [&](const VectorOutcome& v) { return v.status == status; }));
}

std::size_t ConformanceReport::passed_on_device() const {
    return static_cast<std::size_t>(
        std::count_if(vectors.begin(), vectors.end(), [](const VectorOutcome& v) { return v.status == Status::passed && !v.on_host; }));
}

ConformanceReport run_conformance(const ConformanceOptions& options) {
    ConformanceReport report{options.folder.empty() ? kSystemVectors : options.folder, options.target, options.target_options.chip.name, options.precision, {}};
    const std::vector<std::string> vectors = vectors_in(report.folder, options.filter);
    report.vectors.resize(vectors.size());
    signal(SIGPIPE, SIG_IGN);
    std::vector<std::unique_ptr<Child>> children(std::min<std::size_t>(std::max(1u, options.jobs), vectors.size()));
    std::size_t next = 0, done = 0;
    const auto finish = [&](std::size_t index, VectorOutcome outcome) {
        outcome.name = fs::path(vectors[index]).filename().string();
        report.vectors[index] = std::move(outcome);
        ++done;
        if (options.progress) options.progress(done, vectors.size());
    };
    while (done < vectors.size()) {
        std::vector<pollfd> polls;
        std::vector<std::size_t> who;
        for (std::size_t c = 0; c < children.size(); ++c) {
            if (!children[c] && next < vectors.size()) children[c] = std::make_unique<Child>(vectors, options);
            if (!children[c]) continue;
            if (!children[c]->busy_with() && next < vectors.size()) children[c]->give(next++);
            if (!children[c]->busy_with()) continue;
            polls.push_back({children[c]->answers(), POLLIN, 0});
            who.push_back(c);
        }
        poll(polls.data(), polls.size(), 500);
        for (std::size_t i = 0; i < polls.size(); ++i) {
            std::unique_ptr<Child>& child = children[who[i]];
            const std::size_t index = *child->busy_with();
            VectorOutcome outcome;
            outcome.seconds = child->seconds();
            std::string line;
            bool died = false;
            if (polls[i].revents != 0 && child->read_answer(line, died)) {
                const json answer = json::parse(line);
                outcome.status = status_from(answer.at("status"));
                outcome.op = answer.at("op");
                outcome.on_host = answer.at("host");
                outcome.reason = answer.at("reason");
                finish(index, std::move(outcome));
            } else if (died || outcome.seconds > options.timeout_seconds) {
                outcome.status = Status::crashed;
                outcome.reason = died ? child->how_it_died() : fmt::format("no answer after {:.0f} s", outcome.seconds);
                child.reset();
                finish(index, std::move(outcome));
            }
        }
    }
    return report;
}

std::string conformance_json(const ConformanceReport& report) {
    json vectors = json::array();
    for (const VectorOutcome& v : report.vectors)
        vectors.push_back({{"name", v.name}, {"op", v.op}, {"status", name_of(v.status)}, {"on_host", v.on_host}, {"reason", v.reason}, {"seconds", v.seconds}});
    return json{{"schema", "assay.conformance.1"},
                {"folder", report.folder},
                {"target", report.target},
                {"chip", report.chip},
                {"precision", report.precision},
                {"passed", report.count(Status::passed)},
                {"passed_on_device", report.passed_on_device()},
                {"passed_with_fallback", report.count(Status::passed) - report.passed_on_device()},
                {"failed", report.count(Status::failed) + report.count(Status::crashed)},
                {"crashed", report.count(Status::crashed)},
                {"unsupported", report.count(Status::unsupported)},
                {"vectors", vectors}}
               .dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::string conformance_junit(const ConformanceReport& report) {
    std::string text = fmt::format("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"onnx\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n",
                                   report.vectors.size(), report.count(Status::failed), report.count(Status::crashed), report.count(Status::unsupported));
    for (const VectorOutcome& v : report.vectors) {
        text += fmt::format("  <testcase classname=\"onnx.{}\" name=\"{}\" time=\"{:.3f}\"", escape_markup(v.op.empty() ? "?" : v.op), escape_markup(v.name), v.seconds);
        if (v.status == Status::passed) text += "/>\n";
        else
            text += fmt::format("><{0} message=\"{1}\"/></testcase>\n",
                                v.status == Status::unsupported ? "skipped" : v.status == Status::crashed ? "error" : "failure", escape_markup(v.reason));
    }
    return text + "</testsuite>\n";
}

}  // namespace assay::campaign
