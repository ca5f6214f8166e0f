#!/usr/bin/env python3
"""Trains the digit classifier of workloads/digits and writes everything committed there.

    train_digits.py             rebuild workloads/digits (about half a minute on one core)
    train_digits.py --check     rebuild in memory, compare bytes with the committed files, exit 1 on a difference
    train_digits.py --dev       five-fold cross-validation inside the training images; this, and never the held-out set,
                                is how the hyperparameters below were chosen
    --no-expected               leave out what needs ONNX Runtime (expected outputs, RESULTS.md)

Why the bits do not depend on the machine: BLAS libraries sum in an order that changes with CPU, version and thread count.
Here the operands of every matrix product are first rounded to a binary grid so coarse that each product and each partial
sum is an exact fp64 number. Sums of exact numbers have no order, so any BLAS gives the same bits. What is left is
add, multiply, divide, square root and rint, which IEEE 754-2019 rounds correctly everywhere, and MT19937, whose stream
numpy has frozen (NEP 19). No libm function takes part.
"""
import argparse
import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read by BLAS when numpy loads
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FOLDER = Path(__file__).resolve().parent.parent / "workloads" / "digits"

# SHA-256 of the 1797 x 65 bytes (64 pixels, then the label) in the order of the UCI file optdigits.tes.
DATA_SHA256 = "68aea062d35a127749050fa0e52dca09d6569ac08092c925610e0954e172dde2"
SPLIT_SEED = 20240601
TRAIN_SEED = 1
HELD_OUT_PER_CLASS = 36  # 360 images, about a fifth; equal classes make accuracy the mean of the class accuracies
TEST_BATCH = 16

# Chosen with --dev.
EPOCHS = 100
BATCH = 32
LEARNING_RATE = 2e-3  # falls linearly to 0 over the run
WEIGHT_DECAY = 0.1    # decoupled (AdamW), weights only
BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8

# Fraction bits of the grids. matmul() proves for each product that no partial sum needs more than 53 bits.
ACT_BITS, WEIGHT_BITS, GRAD_BITS = 12, 16, 18


# ---- data ------------------------------------------------------------------------------------------------------------

def load_split():
    """(train images, train labels, held-out images, held-out labels); images fp64 [n,1,8,8] = pixel/16, exact."""
    from sklearn.datasets import load_digits
    digits = load_digits()
    rows = np.concatenate([digits.data, digits.target[:, None]], axis=1).astype(np.uint8)
    got = hashlib.sha256(rows.tobytes()).hexdigest()
    if got != DATA_SHA256:
        sys.exit(f"load_digits: SHA-256 {got} but the recipe was made with {DATA_SHA256}; another edition of the data set")
    rng = np.random.RandomState(SPLIT_SEED)
    train, held_out = [], []
    for digit in range(10):
        members = np.flatnonzero(rows[:, 64] == digit)
        rng.shuffle(members)
        train.append(members[:-HELD_OUT_PER_CLASS])
        held_out.append(members[-HELD_OUT_PER_CLASS:])
    train, held_out = np.concatenate(train), np.concatenate(held_out)
    rng.shuffle(train)
    rng.shuffle(held_out)
    images = rows[:, :64].reshape(-1, 1, 8, 8) / 16.0
    labels = rows[:, 64].astype(np.int64)
    return images[train], labels[train], images[held_out], labels[held_out]


def shifted(images, rng):
    """Each image moved along each axis by -1, 0, 0 or +1 pixels, equally likely; zeros enter."""
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    moves = np.array([0, 1, 1, 2])[rng.randint(0, 4, size=(len(images), 2))]
    return np.stack([p[:, y:y + 8, x:x + 8] for p, (y, x) in zip(padded, moves)])


# ---- arithmetic with one possible result -----------------------------------------------------------------------------

def grid(x, bits):
    return np.rint(x * 2.0**bits) * 2.0**-bits


def matmul(a, a_bits, b, b_bits):
    """a @ b for operands on grids of a_bits and b_bits fraction bits: exact, so independent of the order of summation."""
    largest = np.abs(a).max() * np.abs(b).max() * a.shape[-1] * 2.0**(a_bits + b_bits)
    if not largest < 2.0**53:
        raise ArithmeticError(f"matmul {a.shape} x {b.shape}: sums up to {largest:.3g} grid units, allowed 2^53; coarsen a grid")
    return a @ b


def exp_nonpositive(x):
    """exp(x) for x <= 0 from exact primitives: Taylor at x/64, then six squarings. Relative error below 1e-13 on [-40, 0];
    anything smaller counts as -40, far below the gradient grid. libm's exp differs between CPUs and versions."""
    r = np.maximum(x, -40.0) / 64.0
    y = np.ones_like(r)
    for n in range(16, 0, -1):
        y = 1.0 + y * r / n
    for _ in range(6):
        y = y * y
    return y


def softmax(logits):
    e = grid(exp_nonpositive(logits - logits.max(axis=1, keepdims=True)), 40)
    return e / e.sum(axis=1, keepdims=True)


# ---- the network -----------------------------------------------------------------------------------------------------

CONVS = {"conv1": 1, "conv2": 2}  # name -> stride; all 3x3, pad 1
SHAPES = {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "fc1": (64, 512), "fc2": (10, 64)}


def initial_parameters(rng):
    parameters = {}
    for name, shape in SHAPES.items():
        bound = np.sqrt(6.0 / np.prod(shape[1:]))  # He et al. 2015, uniform
        parameters[name + ".weight"] = (2.0 * rng.random_sample(shape) - 1.0) * bound
        parameters[name + ".bias"] = np.zeros(shape[0])
    return parameters


def patches(x, stride):
    """[n,c,h,w] -> [n*oh*ow, c*9], the rows that a 3x3 pad 1 convolution multiplies; c*9 ordered as OIHW weights."""
    n, c, h, w = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))[:, :, ::stride, ::stride]
    return windows.transpose(0, 2, 3, 1, 4, 5).reshape(-1, c * 9)


def unpatch(rows, shape, stride):
    """Adjoint of patches(): adds every row back to where its elements came from."""
    n, c, h, w = shape
    oh, ow = h // stride, w // stride
    rows = rows.reshape(n, oh, ow, c, 3, 3).transpose(0, 3, 4, 5, 1, 2)
    padded = np.zeros((n, c, h + 2, w + 2))
    for y in range(3):
        for x in range(3):
            padded[:, :, y:y + stride * oh:stride, x:x + stride * ow:stride] += rows[:, :, y, x]
    return padded[:, :, 1:-1, 1:-1]


def forward(parameters, images):
    """Logits [n,10], and per layer (input rows, weight matrix, activations on their grid)."""
    tape, x = {}, images
    for name, shape in SHAPES.items():
        w = grid(parameters[name + ".weight"].reshape(shape[0], -1), WEIGHT_BITS)
        rows = patches(x, CONVS[name]) if name in CONVS else x.reshape(len(x), -1)
        y = matmul(rows, ACT_BITS, w.T, WEIGHT_BITS) + parameters[name + ".bias"]
        if name in CONVS:
            side = x.shape[2] // CONVS[name]
            y = y.reshape(len(x), side, side, shape[0]).transpose(0, 3, 1, 2)
        x = y if name == "fc2" else grid(np.maximum(y, 0.0), ACT_BITS)
        tape[name] = (rows, w, x)
    return x, tape


def gradients(parameters, images, labels):
    """Gradient of the mean cross entropy of the batch."""
    logits, tape = forward(parameters, images)
    upstream = softmax(logits)
    upstream[np.arange(len(labels)), labels] -= 1.0
    result, names = {}, list(SHAPES)
    for i in range(len(names) - 1, -1, -1):
        name = names[i]
        rows, w, _ = tape[name]
        if name in CONVS:
            upstream = upstream.transpose(0, 2, 3, 1).reshape(-1, w.shape[0])
        g = grid(upstream, GRAD_BITS)
        result[name + ".weight"] = matmul(g.T, GRAD_BITS, rows, ACT_BITS).reshape(SHAPES[name]) / len(labels)
        result[name + ".bias"] = g.sum(axis=0) / len(labels)
        if i > 0:
            back = matmul(g, GRAD_BITS, w, WEIGHT_BITS)
            below = tape[names[i - 1]][2]
            if name in CONVS:
                back = unpatch(grid(back, GRAD_BITS), below.shape, CONVS[name])
            upstream = back.reshape(below.shape) * (below > 0.0)
    return result


def train(images, labels, seed):
    rng = np.random.RandomState(seed)
    parameters = initial_parameters(rng)
    moments = {k: [np.zeros_like(v), np.zeros_like(v)] for k, v in parameters.items()}
    steps = EPOCHS * (len(images) // BATCH)
    step, decay1, decay2 = 0, 1.0, 1.0
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):  # the odd rest of an epoch is left out
            batch = order[start:start + BATCH]
            found = gradients(parameters, shifted(images[batch], rng), labels[batch])
            rate = LEARNING_RATE * (steps - step) / steps
            step, decay1, decay2 = step + 1, decay1 * BETA1, decay2 * BETA2
            for key, g in found.items():
                m, v = moments[key]
                m[...] = BETA1 * m + (1.0 - BETA1) * g
                v[...] = BETA2 * v + (1.0 - BETA2) * (g * g)
                if key.endswith(".weight"):
                    parameters[key] = parameters[key] * (1.0 - rate * WEIGHT_DECAY)
                parameters[key] = parameters[key] - rate * (m / (1.0 - decay1)) / (np.sqrt(v / (1.0 - decay2)) + EPSILON)
    return {k: v.astype(np.float32) for k, v in parameters.items()}


# ---- quantisation ----------------------------------------------------------------------------------------------------

QUANTISED = ("image", "conv1_relu_out", "conv2_relu_out", "fc1_relu_out", "logits")  # flatten_out shares conv2_relu_out's


def calibrate(parameters, images):
    """Tensor -> (scale fp32, zero point int8): asymmetric, per tensor, from the extremes over the training images."""
    logits, tape = forward(parameters, images)
    tensors = [images] + [tape[name][2] for name in SHAPES]
    result = {}
    for name, x in zip(QUANTISED, tensors):
        low, high = min(x.min(), 0.0), max(x.max(), 0.0)  # 0 must be exact: it is the padding
        scale = np.float32((high - low) / 255.0)
        result[name] = (scale, np.int8(np.clip(np.rint(-128.0 - low / float(scale)), -128, 127)))
    result["flatten_out"] = result["conv2_relu_out"]
    return result


def quantised_weights(parameters, name, input_scale):
    """(weight int8, scale fp32 [out], bias int32, bias scale fp32 [out]); symmetric, a scale for each output channel."""
    w, b = (parameters[name + suffix].astype(np.float64) for suffix in (".weight", ".bias"))
    scale = (np.abs(w).reshape(len(w), -1).max(axis=1) / 127.0).astype(np.float32)
    per_channel = scale.astype(np.float64).reshape((-1,) + (1,) * (w.ndim - 1))
    bias_scale = input_scale * scale
    return (np.clip(np.rint(w / per_channel), -127, 127).astype(np.int8), scale,
            np.rint(b / bias_scale.astype(np.float64)).astype(np.int32), bias_scale)


LAYER_INPUT = {"conv1": "image", "conv2": "conv1_relu_out", "fc1": "flatten_out", "fc2": "fc1_relu_out"}
LAYER_OUTPUT = {"conv1": "conv1_relu_out", "conv2": "conv2_relu_out", "fc1": "fc1_relu_out", "fc2": "logits"}


def integer_logits(parameters, scales, images):
    """int8 logits of the QDQ graph by integer sums (exact, held in fp64): what ONNX Runtime's are checked against."""
    scale, zero = scales["image"]
    q = np.clip(np.rint(images.astype(np.float32) / scale) + zero, -128, 127).astype(np.float64)
    for name in SHAPES:
        scale, zero = scales[LAYER_INPUT[name]]
        w, _, b, bias_scale = quantised_weights(parameters, name, scale)
        x = q - zero  # the zero point becomes 0, which is also what padding adds
        rows = patches(x, CONVS[name]) if name in CONVS else x.reshape(len(x), -1)
        y = (matmul(rows, 0, w.reshape(len(w), -1).T.astype(np.float64), 0) + b) * bias_scale.astype(np.float64)
        if name in CONVS:
            side = x.shape[2] // CONVS[name]
            y = y.reshape(len(x), side, side, -1).transpose(0, 3, 1, 2)
        scale, zero = scales[LAYER_OUTPUT[name]]
        q = np.clip(np.rint((y if name == "fc2" else np.maximum(y, 0.0)) / float(scale)) + zero, -128, 127)
    return q.astype(np.int8)


# ---- ONNX ------------------------------------------------------------------------------------------------------------

def build_model(parameters, scales=None):
    """Serialized model: fp32, or QDQ int8 if `scales` are given. Opset 13, IR 7: ONNX 1.8 and later read it."""
    nodes, initializers = [], []

    def constant(name, value):
        initializers.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(op, name, inputs, output, **attributes):
        nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def through_int8(tensor, prefix):
        """Appends Q and DQ after `tensor`; the identity in the fp32 model."""
        if scales is None:
            return tensor
        pair = [constant(tensor + "_scale", scales[tensor][0]), constant(tensor + "_zero_point", scales[tensor][1])]
        q = node("QuantizeLinear", prefix + "_quantize", [tensor] + pair, tensor + "_quantized")
        return node("DequantizeLinear", prefix + "_dequantize", [q] + pair, tensor + "_dequantized")

    def layer_constants(name):
        if scales is None:
            return [constant(name + s, parameters[name + s]) for s in (".weight", ".bias")]
        w, w_scale, b, b_scale = quantised_weights(parameters, name, scales[LAYER_INPUT[name]][0])
        w_zero = np.zeros(len(w), np.int8)
        result = []
        for suffix, value, more in ((".weight", w, {"scale": w_scale, "zero_point": w_zero}), (".bias", b, {"scale": b_scale})):
            inputs = [constant(name + suffix + "_quantized", value)]
            inputs += [constant(f"{name}{suffix}_{k}", v) for k, v in more.items()]
            result.append(node("DequantizeLinear", f"{name}_{suffix[1:]}_dequantize", inputs, name + suffix, axis=0))
        return result

    x = through_int8("image", "image")
    for name, stride in CONVS.items():
        x = node("Conv", name, [x] + layer_constants(name), name + "_out", dilations=[1, 1], group=1, kernel_shape=[3, 3],
                 pads=[1, 1, 1, 1], strides=[stride, stride])
        x = through_int8(node("Relu", name + "_relu", [x], name + "_relu_out"), name + "_relu")
    x = through_int8(node("Flatten", "flatten", [x], "flatten_out", axis=1), "flatten")
    x = node("Gemm", "fc1", [x] + layer_constants("fc1"), "fc1_out", transB=1)
    x = through_int8(node("Relu", "fc1_relu", [x], "fc1_relu_out"), "fc1_relu")
    x = through_int8(node("Gemm", "fc2", [x] + layer_constants("fc2"), "logits", transB=1), "logits")
    node("Softmax", "softmax", [x], "probabilities", axis=1)

    graph = helper.make_graph(nodes, "digits_fp32" if scales is None else "digits_int8",
                              [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 1, 8, 8])],
                              [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, ["N", 10])], initializers)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], producer_name="assay tools/train_digits.py")
    model.ir_version = 7
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString(deterministic=True)


def run_onnxruntime(model, images, output="probabilities", optimise=False):
    """Value of the tensor `output`, on one thread. Without graph rewriting, QDQ means what the ONNX operators say. With it,
    Q/DQ and Conv fuse into int8 kernels whose 16-bit sums saturate (vpmaddubsw) on x86 CPUs without VNNI."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    levels = onnxruntime.GraphOptimizationLevel
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if optimise else levels.ORT_DISABLE_ALL
    loaded = onnx.load_from_string(model)
    if output != "probabilities":
        loaded.graph.output.append(helper.make_tensor_value_info(output, TensorProto.INT8, ["N", 10]))
    session = onnxruntime.InferenceSession(loaded.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run([output], {"image": images.astype(np.float32)})[0]


# ---- files -----------------------------------------------------------------------------------------------------------

def tensor_file(name, value):
    return numpy_helper.from_array(value, name).SerializeToString(deterministic=True)


def npy_file(value):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.ascontiguousarray(value), version=(1, 0))
    return buffer.getvalue()


def npz_file(**arrays):
    """As numpy.savez, but with nothing of the clock, the operating system or zlib in it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name, value in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy", (1980, 1, 1, 0, 0, 0))
            entry.create_system = 3
            archive.writestr(entry, npy_file(value))
    return buffer.getvalue()


def score(title, predicted, labels):
    """Markdown: accuracy with its 95 % Wilson interval, confusion matrix, and the images it gets wrong."""
    n, right, z = len(labels), int((predicted == labels).sum()), 1.96
    p = right / n
    middle, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = ((middle + s * half) / (1 + z * z / n) for s in (-1, 1))
    confusion = np.zeros((10, 10), int)
    np.add.at(confusion, (labels, predicted), 1)
    lines = [f"## {title}: {right} of {n} right, {100 * p:.2f} % (95 % Wilson interval {100 * low:.1f} to {100 * high:.1f} %)", "",
             "| label \\ said | " + " | ".join(map(str, range(10))) + " |", "|---" * 11 + "|"]
    lines += [f"| **{d}** | " + " | ".join(str(c) if c else "." for c in row) + " |" for d, row in enumerate(confusion)]
    wrong = [f"image {i} ({labels[i]} taken for {predicted[i]})" for i in np.flatnonzero(predicted != labels)]
    return lines + ["", "Wrong: " + (", ".join(wrong) or "none") + ".", ""]


def results_page(files, models, images, labels, reference):
    import onnxruntime
    logits = run_onnxruntime(models["int8"], images, "logits_quantized").astype(int)
    fused = run_onnxruntime(models["int8"], images, "logits_quantized", optimise=True).astype(int)
    if not np.array_equal(logits[:TEST_BATCH], reference[:TEST_BATCH]):
        sys.exit("onnxruntime: int8 logits of the test batch differ from the integer reference; refusing to write them as expected")
    off = np.abs(logits - reference)
    off_fused = np.abs(fused - reference)
    fused_right = int((fused.argmax(axis=1) == labels).sum())
    lines = ["# Results on the 360 held-out images", "",
             f"Written by `tools/train_digits.py`. ONNX Runtime {onnxruntime.__version__}, CPU, one thread, graph optimisation off.", ""]
    for kind, model in models.items():
        lines += score(kind, run_onnxruntime(model, images).argmax(axis=1), labels)
    lines += ["## ONNX Runtime against exact integers (int8 logits)", "",
              f"- graph optimisation off: {int((off > 0).sum())} of {off.size} logits differ, by at most {off.max()} LSB;"
              f" none of those in `test_data_set_0`.",
              f"- all optimisations, on the machine that wrote this page: {int((off_fused > 0).sum())} of {off.size} differ, by at most"
              f" {off_fused.max()} LSB; {fused_right} of {len(labels)} right.", "",
              "## Files", "", "| file | bytes | SHA-256 |", "|---|---|---|"]
    lines += [f"| `{name}` | {len(data)} | `{hashlib.sha256(data).hexdigest()}` |" for name, data in sorted(files.items())]
    return "\n".join(lines + [""]).encode()


def build(expected):
    """Relative path -> bytes of every generated file."""
    train_images, train_labels, images, labels = load_split()
    parameters = train(train_images, train_labels, TRAIN_SEED)
    scales = calibrate(parameters, train_images)
    models = {"fp32": build_model(parameters), "int8": build_model(parameters, scales)}
    held_out = images.astype(np.float32)
    files = {"heldout/images.npz": npz_file(image=held_out), "heldout/labels.npy": npy_file(labels)}
    for kind, model in models.items():
        files[f"{kind}/model.onnx"] = model
        files[f"{kind}/test_data_set_0/input_0.pb"] = tensor_file("image", held_out[:TEST_BATCH])
        if expected:
            files[f"{kind}/test_data_set_0/output_0.pb"] = tensor_file("probabilities", run_onnxruntime(model, held_out[:TEST_BATCH]))
    if expected:
        files["RESULTS.md"] = results_page(files, models, images, labels, integer_logits(parameters, scales, images))
    return files


def cross_validate():
    images, labels, _, _ = load_split()
    right = 0
    for fold in range(5):
        out = np.arange(len(images)) % 5 == fold
        logits, _ = forward(train(images[~out], labels[~out], TRAIN_SEED), images[out])
        right += int((logits.argmax(axis=1) == labels[out]).sum())
    print(f"{right} of {len(images)} right, {100 * right / len(images):.2f} %")


def check(files):
    """Compares with the committed files; the number that differ."""
    different = 0
    for name, data in sorted(files.items()):
        path = FOLDER / name
        same = path.exists() and path.read_bytes() == data
        different += not same
        print(f"{'same     ' if same else 'DIFFERENT'} {name}")
    return different


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--dev", action="store_true")
    parser.add_argument("--no-expected", action="store_true")
    options = parser.parse_args()
    if options.dev:
        return cross_validate()
    files = build(expected=not options.no_expected)
    if options.check:
        sys.exit(1 if check(files) else 0)
    for name, data in files.items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        print(f"{len(data):7} {path}")


if __name__ == "__main__":
    main()
