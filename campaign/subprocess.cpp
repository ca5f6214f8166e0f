#include "campaign/subprocess.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/error.hpp"

extern char** environ;

namespace assay::campaign {

ChildResult run_assay(const std::vector<std::string>& arguments, const std::string& log) {
    std::vector<std::string> words{"/proc/self/exe"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const auto began = std::chrono::steady_clock::now();
    pid_t child = -1;
    const int error = posix_spawn(&child, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw Error(ErrorKind::io, fmt::format("a second assay cannot be started: {}", std::strerror(error)));
    int status = 0;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) throw Error(ErrorKind::io, fmt::format("waiting for a second assay failed: {}", std::strerror(errno)));
    ChildResult result;
    result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return result;
}

}  // namespace assay::campaign
