#!/usr/bin/env python3
"""Writes the node tests of an installed onnx package in the layout of Debian's libonnx-testdata, for `assay conformance onnx DIR`.

  export_node_vectors.py DIR [OPERATOR ...]     needs a Python with onnx; without operators, every node test

DIR/<test>/model.onnx and DIR/<test>/test_data_set_<n>/{input,output}_<i>.pb. Debian's data ends with ONNX 1.12 (opset 17); operators that came
later have vectors only in the package. Inputs that a test leaves out get no file, as in ONNX's own exporter. Exit status 1 when an
operator has no test or nothing was written.
"""
import pathlib
import sys
import warnings

import numpy
import onnx
from onnx import numpy_helper


def cases(operator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the tests' own arithmetic on infinities
        from onnx.backend.test.case import node
        return node.collect_testcases(operator)


def proto_of(value, info):
    """A test's value as the model's input or output declares it; None when it is no tensor of numbers."""
    if isinstance(value, onnx.TensorProto):
        tensor = onnx.TensorProto()
        tensor.CopyFrom(value)
    elif isinstance(value, (numpy.ndarray, numpy.generic)):
        tensor = numpy_helper.from_array(numpy.asarray(value))
    else:
        return None
    tensor.name = info.name
    return tensor


def export(case, directory):
    """True when the case was written; sequences, optionals and maps are not."""
    sets = []
    for inputs, outputs in case.data_sets:
        named = []
        for kind, values, infos in (("input", inputs, case.model.graph.input), ("output", outputs, case.model.graph.output)):
            for i, (value, info) in enumerate(zip(values, infos)):
                tensor = proto_of(value, info)
                if tensor is None:
                    return False
                named.append((f"{kind}_{i}.pb", tensor))
        sets.append(named)
    folder = directory / case.name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(case.model.SerializeToString(deterministic=True))
    for n, named in enumerate(sets):
        data = folder / f"test_data_set_{n}"
        data.mkdir(exist_ok=True)
        for name, tensor in named:
            (data / name).write_bytes(tensor.SerializeToString(deterministic=True))
    return True


def main(arguments):
    if not arguments or arguments[0].startswith("-"):
        print(__doc__, file=sys.stderr)
        return 2
    directory = pathlib.Path(arguments[0])
    written, left, missing = 0, 0, []
    everything = cases(None)
    for operator in arguments[1:] or [None]:
        # The package's own filter compares names of modules; here the model's nodes decide.
        own = [c for c in everything if operator is None or any(n.op_type == operator for n in c.model.graph.node)]
        if not own:
            missing.append(operator)
        for case in own:
            if export(case, directory):
                written += 1
            else:
                left += 1
    print(f"onnx {onnx.__version__}: {written} vectors in {directory}, {left} left out (sequences, optionals or maps)")
    if missing:
        print(f"no test of: {', '.join(missing)}", file=sys.stderr)
    return 1 if missing or written == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
