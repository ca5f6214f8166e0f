#pragma once
// The datasets of a program file, apart from HDF5: what is checked before a program from a file is believed.
#include <string>

#include "simkernel/program.hpp"

namespace assay::simkernel {

struct ProgramParts {
    std::string meta;        ///< JSON, docs/file-formats.md
    Tensor descriptors;      ///< uint32, N x kDescriptorWords
    Tensor debug;            ///< uint32, N x 2: layer, tile
    Tensor constants;        ///< uint8: the constants' bytes, one after another
    Tensor element_boxes;    ///< int64, N x 14: the constant slots' boxes (element, offset, counts, element strides, offset strides), one slot after another
    Tensor host_image;       ///< uint8: the host steps' models, then the bound inputs' bytes, one after another
};

ProgramParts parts_of(const Program& program);

/// Throws Error(damaged) naming the dataset when the parts do not agree: a size, an index, an address range or a permutation that would
/// send a reader outside its buffers. Nothing is allocated for a size that the parts do not hold. Descriptors are not decoded here: whether
/// they are legal depends on a chip (exec/legality.hpp).
Program program_from(const ProgramParts& parts, const std::string& where);

}  // namespace assay::simkernel
