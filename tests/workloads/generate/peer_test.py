#!/usr/bin/env python3
"""Generated models before other judges: onnx.checker, strict shape inference, and a run in ONNX Runtime whose outputs must be finite and of order 1.

  peer_test.py ASSAY PEER_PYTHON     exit status 77 (skip) when PEER_PYTHON has no onnx and onnxruntime
"""
import array
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

# Small but not degenerate sizes. Every kind has a row.
SMALL = {
    "resnet18": "--image 64", "resnet50": "--image 64", "resnet101": "--image 64 --width 0.5", "mobilenet": "--image 96", "mobilenet-v3": "--image 96",
    "efficientnet-lite0": "--image 96", "vgg16": "--image 64 --width 0.25 --hidden 256", "densenet121": "--image 64", "googlenet": "--image 96",
    "unet": "--image 64 --hidden 8", "decoder": "--image 32 --channels 16", "bert-base": "--layers 2 --hidden 128 --heads 4 --ffn 256 --vocab 500 --seq 32 --batch 2",
    "gpt2": "--layers 2 --hidden 128 --heads 4 --ffn 256 --vocab 500 --seq 16", "vit-b": "--layers 2 --hidden 128 --heads 4 --ffn 256 --image 64",
    "llama-layer": "--hidden 128 --heads 4 --kv-heads 2 --head-dim 32 --ffn 256 --seq 16", "llama": "--layers 2 --hidden 128 --heads 4 --kv-heads 2 --head-dim 32 --ffn 256 --vocab 500 --seq 16",
    "moe-layer": "--hidden 64 --ffn 64 --experts 8 --seq 16", "lstm": "--layers 2 --hidden 64 --seq 20", "gru": "--layers 2 --hidden 64 --seq 20", "tcn": "--layers 3 --hidden 32 --seq 64",
    "dlrm": "--vocab 100 --tables 4", "gemm": "--m 64", "conv": "--image 20", "attention": "--heads 4 --kv-heads 2 --head-dim 32 --seq 40",
}
# What has a second form: decoding, other operator sets, batch normalisation as nodes.
MORE = [
    ("gpt2", SMALL["gpt2"].replace("--seq 16", "--past 12")), ("llama", SMALL["llama"].replace("--seq 16", "--past 12")), ("resnet50", "--image 64 --bn nodes"),
    ("moe-layer", "--hidden 64 --ffn 64 --experts 8 --top-k 2 --seq 2"), ("attention", "--heads 4 --kv-heads 1 --head-dim 32 --past 40"), ("bert-base", SMALL["bert-base"] + " --dtype float16"),
]
for kind in ("resnet18", "mobilenet", "googlenet", "tcn", "vgg16", "densenet121"):
    MORE.append((kind, f"{SMALL[kind]} --dtype int8"))
for kind in ("bert-base", "llama-layer", "llama", "vit-b", "gpt2", "moe-layer", "conv", "gemm", "dlrm", "unet", "decoder", "mobilenet-v3"):
    MORE.append((kind, f"{SMALL[kind]} --dtype int8 --calibrate analytic"))
for opset in (13, 18, 20, 23, 24):
    MORE += [(kind, f"{SMALL[kind]} --opset {opset}") for kind in ("bert-base", "gpt2", "llama-layer", "moe-layer", "mobilenet-v3", "unet", "lstm")]
    MORE.append(("llama-layer", SMALL["llama-layer"].replace("--seq 16", "--past 12") + f" --opset {opset}"))


def judge(folder):
    """Runs under the peer's Python. Prints JSON: {output: [finite, root mean square, elements]} or {"error": text}."""
    import numpy
    import onnx
    import onnxruntime
    from onnx import numpy_helper

    path = str(folder / "model.onnx")
    onnx.checker.check_model(path, full_check=True)
    model = onnx.load(path)
    # Strict inference fails where a declared shape is not the inferred one; every value must be declared.
    inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    declared = {v.name for v in list(model.graph.value_info) + list(model.graph.output)}
    made = {name for node in model.graph.node for name in node.output if name}
    if made != declared:
        raise ValueError(f"values without a declared shape: {sorted(made ^ declared)[:5]}")
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in list(inferred.graph.value_info) + list(inferred.graph.output)}
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {}
    for i, value in enumerate(model.graph.input):
        tensor = onnx.load_tensor(str(folder / f"test_data_set_0/input_{i}.pb"))
        if tensor.name != value.name:
            raise ValueError(f"input {i} is {value.name}, its data is {tensor.name}")
        feed[value.name] = numpy_helper.to_array(tensor)
    result = {}
    for output, value in zip(session.get_outputs(), session.run(None, feed)):
        wide = value.astype(numpy.float64)
        if list(value.shape) != shapes[output.name]:
            raise ValueError(f"{output.name} is {value.shape}, declared {shapes[output.name]}")
        wide.tofile(folder / f"{output.name}.bin")
        result[output.name] = [bool(numpy.isfinite(wide).all()), float(wide.std()) if wide.size > 4 else float(abs(wide).max()), int(value.size)]
    return result


def far_from_float(assay, kind, options, folder, peer, result):
    """An int8 model's outputs beside those of the float32 model of the same seed: problems, a line each."""
    plain = options.replace(" --dtype int8", "").replace(" --calibrate analytic", "")
    beside = pathlib.Path(f"{folder}-float")
    subprocess.run([assay, "workload", "make", kind, "--out", str(beside), *plain.split()], check=True, capture_output=True)
    print(beside, file=peer.stdin, flush=True)
    expected = json.loads(peer.stdout.readline())
    if "error" in expected:
        return [f"{kind} {plain}: {expected['error']}"]
    problems = []
    for name in result:
        wanted, got = (array.array("d", (where / f"{name}.bin").read_bytes()) for where in (beside, folder))
        signal = sum(w * w for w in wanted)
        noise = sum((g - w) ** 2 for g, w in zip(got, wanted))
        # Eight bits with ranges from one input: random networks amplify noise, up to 0.15 of the power; a wrong scale gives more than 1.
        limit = 0.35 if "analytic" in options else 0.25
        if len(got) != len(wanted) or not noise < limit * signal:
            problems.append(f"{kind} {options}: output {name} is {noise / signal:.3g} of its power away from float32; wanted below {limit}")
        elif noise == 0 and "present" not in name:
            problems.append(f"{kind} {options}: output {name} equals float32 to the bit: nothing was quantised")
    return problems


def main():
    if sys.argv[1] == "--judge":
        for line in sys.stdin:
            try:
                print(json.dumps(judge(pathlib.Path(line.strip()))), flush=True)
            except Exception as error:  # the parent reports it as a failure of this model
                print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return 0
    assay, python = sys.argv[1:3]
    if not os.path.exists(python) or subprocess.run([python, "-c", "import onnx, onnxruntime"], capture_output=True).returncode != 0:
        print("skipped: no Python with onnx and onnxruntime (ASSAY_PEER_PYTHON)")
        return 77
    listed = {row["kind"] for row in json.loads(subprocess.run([assay, "workload", "list", "--json"], check=True, capture_output=True, text=True).stdout)}
    failures = [f"{kind}: in `workload list`, not in this test (or the reverse)" for kind in listed ^ set(SMALL)]
    peer = subprocess.Popen([python, "-B", __file__, "--judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    checked = 0
    with tempfile.TemporaryDirectory() as temporary:
        for number, (kind, options) in enumerate(list(SMALL.items()) + MORE):
            folder = pathlib.Path(temporary) / str(number)
            made = subprocess.run([assay, "workload", "make", kind, "--out", str(folder), *options.split()], capture_output=True, text=True)
            if made.returncode != 0:
                failures.append(f"{kind} {options}: {made.stderr.strip()}")
                continue
            print(folder, file=peer.stdin, flush=True)
            result = json.loads(peer.stdout.readline())
            if "int8" in options and "error" not in result:
                failures += far_from_float(assay, kind, options, folder, peer, result)
            if "error" in result:
                failures.append(f"{kind} {options}: {result['error']}")
                continue
            for name, (finite, spread, size) in result.items():
                checked += 1
                # Probabilities and images in (-1, 1) are narrower than logits, none is constant or exploding.
                if not finite or not 0.02 < spread < 20 or not math.isfinite(spread):
                    failures.append(f"{kind} {options}: output {name} of {size} elements: finite {finite}, spread {spread:.3g}; wanted 0.02 to 20")
    peer.stdin.close()
    peer.wait()
    for failure in failures:
        print("FAILED", failure)
    print(f"{checked} outputs of {len(SMALL) + len(MORE)} models checked, {len(failures)} failures")
    return 1 if failures or checked == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
