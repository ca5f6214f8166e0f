#include "support/error.hpp"

#include <gtest/gtest.h>

namespace assay {
namespace {

TEST(Error, ABrokenInvariantIsInternalAndSaysWhereAndWhy) {
    const auto holds = [](bool value) { ASSAY_CHECK(value, "the test broke it"); };
    holds(true);
    try {
        holds(false);
        FAIL() << "no Error was thrown";
    } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::internal);
        const std::string text = error.what();
        EXPECT_NE(text.find("error_test.cpp:"), std::string::npos) << text;
        EXPECT_NE(text.find("the test broke it (value)"), std::string::npos) << text;
    }
}

}  // namespace
}  // namespace assay
