// Runs a fuzz target without libFuzzer, so that every compiler's build replays it: the seeds, then mutations of seeds and of earlier inputs.
//
//   fuzz_x [--runs N] [--seconds S] [--seed N] [--crash FILE]    mutated inputs until N are done, and S seconds have passed
//   fuzz_x --write-seeds FOLDER                  the seeds as files, for libFuzzer
//   fuzz_x FILE...                               replays these inputs
//
// On a crash or after 20 s on one input the input is left in FILE (default: crash.bin) and the process dies by the signal.
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fuzz_target.hpp"

namespace {

constexpr unsigned kSecondsPerInput = 20;
constexpr std::size_t kMaxBytes = 1 << 16;

// Plain pointers, because a signal handler reads them.
const char* g_crash_path = "crash.bin";
const char* g_input = nullptr;
std::size_t g_input_bytes = 0;

extern "C" void keep_input(int signal) {
    const int file = ::open(g_crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file >= 0) {
        if (::write(file, g_input, g_input_bytes) < 0) ::_exit(1);
        ::close(file);
    }
    std::signal(signal, SIG_DFL);
    ::raise(signal);
}

void run_one(const std::string& input) {
    g_input = input.data();
    g_input_bytes = input.size();
    ::alarm(kSecondsPerInput);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
    ::alarm(0);
}

class Mutator {
public:
    explicit Mutator(std::uint64_t seed) : random_(seed) {}

    /// `input` after one to eight small changes; `other` lends it a piece.
    std::string mutate(std::string input, const std::string& other) {
        for (std::size_t changes = 1 + below(8); changes > 0; --changes) change(input, other);
        if (input.size() > kMaxBytes) input.resize(kMaxBytes);
        return input;
    }
    std::size_t below(std::size_t bound) { return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_); }

private:
    void change(std::string& s, const std::string& other) {
        if (s.empty()) {
            s.assign(1 + below(16), static_cast<char>(below(256)));
            return;
        }
        const std::size_t at = below(s.size());
        const std::size_t piece = std::min<std::size_t>(s.size() - at, 1 + below(32));
        switch (below(9)) {
            case 0: s[at] = static_cast<char>(s[at] ^ (1 << below(8))); break;
            case 1: s[at] = static_cast<char>(below(256)); break;
            case 2: s.erase(at, piece); break;
            case 3: s.insert(at, s.substr(below(s.size()), piece)); break;
            case 4: s.resize(at); break;
            case 5: {  // a boundary number, at any width
                static constexpr std::uint64_t kNumbers[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF,
                                                             0x100000000, INT64_MAX, std::uint64_t{1} << 63, UINT64_MAX};
                const std::uint64_t number = kNumbers[below(std::size(kNumbers))];
                std::memcpy(s.data() + at, &number, std::min<std::size_t>(s.size() - at, std::size_t{1} << below(4)));
                break;
            }
            case 6: {  // deep repetition, for anything that recurses
                const std::string part = s.substr(at, 1 + below(3));
                std::string many;
                for (std::size_t n = std::size_t{1} << below(15); n > 0; --n) many += part;
                if (below(8) == 0) s.insert(at, many);
                break;
            }
            case 7:
                if (!other.empty()) s.replace(at, piece, other.substr(below(other.size()), piece));
                break;
            default: {  // a decimal digit, as text formats have them
                const std::size_t digit = s.find_first_of("0123456789", at);
                if (digit != std::string::npos) s.replace(digit, 1, std::to_string(std::uint64_t{1} << below(64)));
            }
        }
    }
    std::mt19937_64 random_;
};

int mutate_until(std::uint64_t runs, double seconds, std::uint64_t seed) {
    std::vector<std::string> corpus = assay::fuzz::seeds();
    if (corpus.empty()) {
        std::fprintf(stderr, "fuzz: the target has no seeds\n");
        return 1;
    }
    for (const std::string& input : corpus) run_one(input);
    const std::uint64_t valid_seeds = assay::fuzz::accepted;
    const std::size_t fixed = corpus.size();
    Mutator mutator(seed);
    const auto began = std::chrono::steady_clock::now();
    const auto passed = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count(); };
    std::uint64_t done = 0;
    while (done < runs || passed() < seconds) {
        const std::uint64_t accepted_before = assay::fuzz::accepted;
        const std::string input = mutator.mutate(corpus[mutator.below(corpus.size())], corpus[mutator.below(corpus.size())]);
        run_one(input);
        ++done;
        // Valid mutations are mutated again: they lead away from the seeds without leaving what is valid.
        if (assay::fuzz::accepted > accepted_before) {
            if (corpus.size() < fixed + 256) corpus.push_back(input);
            else corpus[fixed + mutator.below(256)] = input;
        }
    }
    std::printf("%zu seeds, %llu times valid; %llu mutated inputs in %.1f s, seed %llu, %llu times valid\n", fixed, static_cast<unsigned long long>(valid_seeds),
                static_cast<unsigned long long>(done), passed(), static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(assay::fuzz::accepted - valid_seeds));
    if (valid_seeds == 0 || assay::fuzz::accepted == valid_seeds) {
        std::fprintf(stderr, "fuzz: no seed or no mutation was valid, so nothing past the first check was tested\n");
        return 1;
    }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t runs = 20'000, seed = 1;
    double seconds = 0;
    std::vector<std::string> files;
    std::string seed_folder;
    for (int i = 1; i < argc; ++i) {
        const std::string option = argv[i];
        if (option.starts_with("--") && i + 1 == argc) {
            std::fprintf(stderr, "%s needs a value\n", option.c_str());
            return 2;
        }
        if (option == "--runs") runs = std::stoull(argv[++i]);
        else if (option == "--seconds") seconds = std::stod(argv[++i]);
        else if (option == "--seed") seed = std::stoull(argv[++i]);
        else if (option == "--crash") g_crash_path = argv[++i];
        else if (option == "--write-seeds") seed_folder = argv[++i];
        else files.push_back(option);
    }
    if (!seed_folder.empty()) {
        std::filesystem::create_directories(seed_folder);
        std::size_t n = 0;
        for (const std::string& input : assay::fuzz::seeds()) std::ofstream(seed_folder + "/seed" + std::to_string(n++), std::ios::binary) << input;
        return n > 0 ? 0 : 1;
    }
#if !defined(ASSAY_ASAN)
    const rlimit memory{std::uint64_t{4} << 30, std::uint64_t{4} << 30};  // what an input makes us allocate is bounded; ASan needs terabytes of address space
    ::setrlimit(RLIMIT_AS, &memory);
#endif
    for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM}) std::signal(signal, keep_input);
    for (const std::string& file : files) {
        std::ifstream in(file, std::ios::binary);
        run_one({std::istreambuf_iterator<char>(in), {}});
    }
    return files.empty() ? mutate_until(runs, seconds, seed) : 0;
}
