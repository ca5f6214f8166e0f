#include "support/error.hpp"

#include <fmt/format.h>

namespace assay {

void check_failed(const char* condition, const char* why, const char* file, int line) {
    throw Error(ErrorKind::internal, fmt::format("{}:{}: internal error: {} ({})", file, line, why, condition));
}

}  // namespace assay
