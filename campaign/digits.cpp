#include "campaign/digits.hpp"

#include <cstdlib>

#include <fmt/format.h>

#include "support/error.hpp"

namespace assay::campaign {
namespace fs = std::filesystem;

fs::path digits_folder() {
    std::vector<fs::path> folders;
    if (const char* folder = std::getenv("ASSAY_DIGITS_DIR")) folders.emplace_back(folder);
    std::error_code error;
    const fs::path self = fs::read_symlink("/proc/self/exe", error);
    if (!error) folders.push_back(self.parent_path().parent_path() / "share/assay/digits");
    folders.emplace_back(ASSAY_SOURCE_DIGITS);
    for (const fs::path& folder : folders)
        if (fs::exists(folder / "int8/model.onnx")) return folder;
    throw Error(ErrorKind::bad_input, fmt::format("the digit classifier is not at {}; set ASSAY_DIGITS_DIR to workloads/digits of the source tree",
                                                  folders.back().string()));
}

Predictions predict(const Tensor& probabilities, const Tensor& labels) {
    if (probabilities.shape.size() != 2 || probabilities.shape[0] != labels.count())
        throw Error(ErrorKind::bad_input, fmt::format("predictions are {}, labels {}: need one row a label", to_string(probabilities.shape), to_string(labels.shape)));
    Predictions result;
    const std::int64_t classes = probabilities.shape[1];
    for (std::int64_t row = 0; row < labels.count(); ++row) {
        std::int64_t best = 0;
        for (std::int64_t c = 1; c < classes; ++c)
            if (probabilities.value(row * classes + c) > probabilities.value(row * classes + best)) best = c;
        result.digit.push_back(static_cast<int>(best));
        result.right += best == labels.integer(row);
    }
    return result;
}

std::string draw(const Tensor& images, std::size_t first, std::size_t count) {
    static constexpr const char* kShades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
    std::string text;
    for (std::size_t y = 0; y < 8; ++y) {
        for (std::size_t i = first; i < first + count; ++i) {
            for (std::size_t x = 0; x < 8; ++x) {
                const double value = images.value(static_cast<std::int64_t>(i * 64 + y * 8 + x));
                text += kShades[std::min(4, static_cast<int>(value * 4.99))];
            }
            text += "  ";
        }
        text += "\n";
    }
    return text;
}

}  // namespace assay::campaign
