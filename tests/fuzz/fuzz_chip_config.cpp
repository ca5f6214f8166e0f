// A chip's TOML text and --set assignments. What is admitted is a configuration that can be written and read again.
#include "fuzz_target.hpp"
#include "simkernel/chip_config.hpp"
#include "support/files.hpp"

namespace assay::fuzz {

std::vector<std::string> seeds() {
    std::vector<std::string> out;
    for (const char* preset : {"aurum-nano", "aurum-edge", "aurum-dc"}) out.push_back(read_text(std::string(ASSAY_SOURCE_DIR "/configs/") + preset + ".toml"));
    out.push_back("name = \"x\"\nmxu = { rows = 16, cols = 16 }\n");
    out.push_back("name = \"x\"\n[hbm]\nbytes = 0x4000_0000\n[mxu]\nrows = 8\n");
    out.push_back("mxu.rows=16");
    return out;
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    using namespace assay::simkernel;
    const std::string text(reinterpret_cast<const char*>(data), size);
    refusing([&] {
        const ChipConfig config = parse_chip_config(text, "fuzz.toml");
        ++accepted;
        expect(check_config(config).empty(), "what is admitted is sound");
        expect(parse_chip_config(to_toml(config), "again.toml") == config, "a configuration that is written reads as itself");
    });
    refusing([&] {
        ChipConfig config;
        set_parameter(config, text);
        ++accepted;
    });
    return 0;
}
