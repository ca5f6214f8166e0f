#pragma once
// The committed digit classifier: where it lies, its held-out images and labels, and what a run predicted.
#include <filesystem>
#include <string>
#include <vector>

#include "support/tensor.hpp"

namespace assay::campaign {

/// Folder with fp32/, int8/ and heldout/: ASSAY_DIGITS_DIR, beside an installed program, or the source tree. Error(bad_input) when none exists.
std::filesystem::path digits_folder();

struct Predictions {
    std::vector<int> digit;  ///< arg-max by image
    std::size_t right = 0;   ///< equal to the label
};
/// `probabilities` is N x 10, `labels` N int64.
Predictions predict(const Tensor& probabilities, const Tensor& labels);

/// Images [first, first + count) side by side as text, two characters a pixel, eight lines.
std::string draw(const Tensor& images, std::size_t first, std::size_t count);

}  // namespace assay::campaign
