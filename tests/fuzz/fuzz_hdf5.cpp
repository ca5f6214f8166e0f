// Bytes of an HDF5 file through the program loader and the tensor reader.
#include "fuzz_target.hpp"
#include "sample_program.hpp"
#include "scratch_file.hpp"
#include "support/files.hpp"
#include "support/hdf5.hpp"
#include "support/tensor_io.hpp"

namespace assay::fuzz {

std::vector<std::string> seeds() {
    const ScratchFile file(".h5");
    simkernel::save_program(sample_program(), file.path());
    std::vector<std::string> out{read_text(file.path())};
    {
        Hdf5File tensors = Hdf5File::create(file.path());
        tensors.write_tensor("/", "a/b", Tensor(DType::bf16, {2, 3}));
        tensors.write_tensor("t", "scalar", Tensor(DType::f64, {}));
        tensors.write_tensor("t", "none", Tensor(DType::i8, {0, 4}));
        tensors.close();
    }
    out.push_back(read_text(file.path()));
    return out;
}

}  // namespace assay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace assay::fuzz;
    static const ScratchFile file(".h5");
    file.holding({data, size});
    refusing([&] {
        (void)assay::simkernel::load_program(file.path());
        ++accepted;
    });
    refusing([&] {
        (void)assay::read_tensors(file.path());
        ++accepted;
    });
    return 0;
}
