#!/usr/bin/env python3
"""Assay beside its peers, in one run and on the same files and cores.

  bench/peers.py speed [CASE ...]   seconds.device of `tlm` on aurum-dc (median of warm runs) against ONNX Runtime with one and two threads
  bench/peers.py cycles [CASE ...]  cycles by layer on a 128 x 128 array against SCALE-Sim, which computes no values, and both times
  bench/peers.py compile            time and memory to compile a graph of many nodes and one of large weights

Python with numpy, onnx and onnxruntime (and scalesim for `cycles`); models that `assay workload make` writes, and --models DIR for the rest.
"""
import argparse
import csv
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name: (how the model is made, or its folder, policy)
SPEED = {
    "resnet50-bf16": (["resnet50"], "bf16"),
    "resnet50-int8": (["resnet50", "--dtype", "int8"], "native"),
    "bert-base": (["bert-base"], "bf16"),
    "llama7b-prefill": (["llama-layer", "--seq", "512"], "bf16"),
    "llama7b-decode": (["llama-layer", "--seq", "1", "--past", "512"], "bf16"),
    "gemm512-int8": (["gemm", "--dtype", "int8"], "native"),
    "gemm1024-int8": (["gemm", "--dtype", "int8", "--m", "1024", "--n", "1024", "--k", "1024"], "native"),
    "yolox_nano": ("yolox_nano", "bf16"),
    "ppocrv4_rec": ("ppocrv4_rec", "bf16"),
    "mlsd_tiny_320": ("mlsd_tiny_320", "bf16"),
}
SCALE_SIM_CONFIG = """[general]
run_name = assay
[run_presets]
InterfaceBandwidth = CALC
UseRamulatorTrace = False
[architecture_presets]
ArrayHeight = 128
ArrayWidth = 128
IfmapSramSzkB = 8192
FilterSramSzkB = 8192
OfmapSramSzkB = 4096
IfmapOffset = 0
FilterOffset = 10000000
OfmapOffset = 20000000
Dataflow = ws
Bandwidth = 512
ReadRequestBuffer = 512
WriteRequestBuffer = 512
[layout]
IfmapCustomLayout = False
FilterCustomLayout = False
IfmapSRAMBankBandwidth = 10
IfmapSRAMBankNum = 10
IfmapSRAMBankPort = 2
FilterSRAMBankBandwidth = 10
FilterSRAMBankNum = 10
FilterSRAMBankPort = 2
[sparsity]
SparsitySupport = false
SparseRep = ellpack_block
OptimizedMapping = false
BlockSize = 8
RandomNumberGeneratorSeed = 40
"""
# Median seconds of warm runs in a process of its own: `threads model runs data...`.
ORT = """
import statistics, sys, time
import numpy, onnx, onnxruntime as ort
from onnx import numpy_helper
options = ort.SessionOptions()
options.intra_op_num_threads, options.inter_op_num_threads = int(sys.argv[1]), 1
session = ort.InferenceSession(sys.argv[2], options, providers=["CPUExecutionProvider"])
feeds = {}
for i, wanted in enumerate(session.get_inputs()):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(open(f"{sys.argv[4]}/input_{i}.pb", "rb").read())
    feeds[wanted.name] = numpy_helper.to_array(tensor)
times = []
for _ in range(int(sys.argv[3]) + 1):
    began = time.perf_counter()
    session.run(None, feeds)
    times.append(time.perf_counter() - began)
print(statistics.median(times[1:]))
"""


def measured(command, **more):
    """What the finished process printed, its seconds and its own peak memory in MiB."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, text=True, **more)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        out.seek(0), err.seek(0)
        if status != 0:
            sys.exit(f"{' '.join(map(str, command))}: exit status {os.waitstatus_to_exitcode(status)}\n{err.read()}")
        return out.read(), seconds, usage.ru_maxrss / 1024


def make(options, words, scratch, name):
    folder = scratch / name
    if not folder.exists():
        subprocess.run([options.assay, "workload", "make", *words, "--out", folder], check=True, stdout=subprocess.DEVNULL)
    return folder


def folder_of(options, case, scratch):
    how, _ = SPEED[case]
    if isinstance(how, list):
        return make(options, how, scratch, case)
    folder = options.models / how
    return folder if (folder / "model.onnx").exists() else None


def ort_seconds(folder, threads, runs):
    words = [sys.executable, "-c", ORT, str(threads), str(folder / "model.onnx"), str(runs), str(folder / "test_data_set_0")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS_")}
    return float(subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout)


def speed(options, scratch):
    print(f"{'':<18}{'MAC':>10}{'cycles':>12}{'device ms':>11}{'ORT 1':>9}{'ORT 2':>9}{'ratio':>7}{'compile s':>11}{'total s':>9}{'MiB':>7}")
    for case in options.cases or SPEED:
        folder = folder_of(options, case, scratch)
        if folder is None:
            print(f"{case:<18} not in {options.models}")
            continue
        out, total, _ = measured([options.assay, "run", folder / "model.onnx", "--input", folder / "test_data_set_0", "--target", "tlm", "--chip", "aurum-dc",
                              "--precision", SPEED[case][1], "--measure", str(options.runs), "--json", "-", "--no-progress"])
        verdict = json.loads(out)
        ort = [ort_seconds(folder, threads, options.runs) for threads in (1, 2)]
        device = verdict["seconds"]["device"]
        print(f"{case:<18}{verdict['macs']:>10.3g}{verdict['cycles']:>12}{1e3 * device:>11.1f}{1e3 * ort[0]:>9.1f}{1e3 * ort[1]:>9.1f}{device / min(ort):>7.1f}"
              f"{verdict['seconds']['compile']:>11.2f}{total:>9.1f}{verdict['peak_rss_bytes'] / 2**20:>7.0f}", flush=True)


def topology(model):
    """Convolutions and products of a model with constant weights, as SCALE-Sim's rows: (name, groups, row)."""
    import onnx

    graph = onnx.shape_inference.infer_shapes(onnx.load(model)).graph
    shapes = {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.input, *graph.value_info, *graph.output)}
    shapes.update({i.name: list(i.dims) for i in graph.initializer})
    rows = []
    for node in graph.node:
        if node.op_type == "Conv":
            attributes = {a.name: list(a.ints) or a.i for a in node.attribute}
            x, w, y = shapes[node.input[0]], shapes[node.input[1]], shapes[node.output[0]]
            stride = attributes.get("strides", [1, 1])[0]
            # SCALE-Sim knows no padding: the image is given as large as the outputs need.
            height, width = (y[2] - 1) * stride + w[2], (y[3] - 1) * stride + w[3]
            rows.append((node.name, attributes.get("group", 1), [height, width, w[2], w[3], w[1], w[0], stride]))
        elif node.op_type in ("Gemm", "MatMul") and node.input[1] in {i.name for i in graph.initializer}:
            x, y = shapes[node.input[0]], shapes[node.output[0]]
            m = 1
            for extent in y[:-1]:
                m *= extent
            rows.append((node.name, 1, [m, 1, 1, 1, x[-1], y[-1], 1]))
    return rows


def scale_sim(options, rows, scratch):
    (scratch / "scale.cfg").write_text(SCALE_SIM_CONFIG)
    with open(scratch / "topology.csv", "w") as out:
        out.write("Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n")
        for i, (_, _, row) in enumerate(rows):
            out.write(f"L{i}, " + ", ".join(map(str, row)) + ",\n")
    (scratch / "layout.csv").write_text("Layer name, unused,\n" + "".join(f"L{i}," + " 1," * 18 + "\n" for i in range(len(rows))))
    program = ("from scalesim.scale_sim import scalesim\n"
               f"scalesim(save_disk_space=True, verbose=False, config='{scratch}/scale.cfg', topology='{scratch}/topology.csv',"
               f" layout='{scratch}/layout.csv', input_type_gemm=False).run_scale(top_path='{scratch}/scale')\n")
    _, seconds, mib = measured([options.scalesim_python, "-c", program], cwd=scratch)
    report = next((scratch / "scale").rglob("COMPUTE_REPORT.csv"))
    with open(report) as lines:
        table = list(csv.DictReader(lines, skipinitialspace=True))
    return [float(row["Total Cycles"]) for row in table], seconds, mib


def cycles(options, scratch):
    for case in options.cases or ["resnet50-int8"]:
        folder = folder_of(options, case, scratch)
        if folder is None:
            print(f"{case}: not in {options.models}")
            continue
        common = [options.assay, "run", folder / "model.onnx", "--input", folder / "test_data_set_0", "--target", "tlm", "--chip", "aurum-dc", "--precision",
                  SPEED[case][1], "--json", "-", "--no-progress"]
        timed = json.loads(measured([*common, "--measure", str(options.runs)])[0])
        layers = {layer["name"]: layer for layer in json.loads(measured(common)[0])["layers"]}
        rows = topology(folder / "model.onnx")
        kept = [row for row in rows if row[1] == 1]
        theirs, seconds, mib = scale_sim(options, kept, scratch)
        print(f"\n{case}: {'layer':<34}{'h x w, filter, c -> n /stride':<34}{'Assay':>9}{'SCALE-Sim':>11}{'ratio':>7}  limit       mapping")
        sums = [0, 0]
        for (name, _, row), cycles_there in zip(kept, theirs):
            layer = layers.get(name)
            text = f"{row[0]}x{row[1]}, {row[2]}x{row[3]}, {row[4]} -> {row[5]} /{row[6]}"
            if layer is None:
                print(f"  {name:<44}{text:<34}{'':>9}{cycles_there:>11.0f}")
                continue
            sums[0] += layer["cycles"]
            sums[1] += cycles_there
            print(f"  {name:<44}{text:<34}{layer['cycles']:>9}{cycles_there:>11.0f}{layer['cycles'] / cycles_there:>7.2f}  {layer['roofline']['limit']:<10}  {layer['mapping']}")
        print(f"  {'these layers':<78}{sums[0]:>9}{sums[1]:>11.0f}{sums[0] / sums[1]:>7.2f}")
        device = timed["seconds"]["device"]
        print(f"  host time: Assay, every value and cycle of the whole model, {1e3 * device:.1f} ms; SCALE-Sim, no values, {seconds:.1f} s and {mib:.0f} MiB: "
              f"{seconds / device:.0f} times")
        if len(kept) < len(rows):
            print(f"  {len(rows) - len(kept)} grouped convolutions left out: SCALE-Sim runs them a channel at a time")


def big_graph(path, nodes):
    """A chain of `nodes` small layers with branches: 1 x 1 convolutions, activations and additions."""
    import numpy
    import onnx
    from onnx import helper, numpy_helper

    random, made, weights, last, skip = numpy.random.default_rng(1), [], [], "x", "x"
    for i in range(nodes):
        out = f"t{i}"
        if i % 4 == 0:
            weights.append(numpy_helper.from_array((random.standard_normal((16, 16, 1, 1)) / 4).astype(numpy.float32), f"w{i}"))
            made.append(helper.make_node("Conv", [last, f"w{i}"], [out], name=f"n{i}"))
        elif i % 4 == 3:
            made.append(helper.make_node("Add", [last, skip], [out], name=f"n{i}"))
            skip = out
        else:
            made.append(helper.make_node(["", "Sigmoid", "Relu"][i % 4], [last], [out], name=f"n{i}"))
        last = out
    value = lambda name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1, 16, 8, 8])
    graph = helper.make_graph(made, "many", [value("x")], [value(last)], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def compile_cost(options, scratch):
    big_graph(scratch / "many.onnx", 1000)
    cases = [("1,000 nodes", scratch / "many.onnx", "native"),
             ("0.8 GB (LLaMA-7B layer)", make(options, SPEED["llama7b-decode"][0], scratch, "llama7b-decode") / "model.onnx", "bf16"),
             ("ResNet-50", make(options, SPEED["resnet50-bf16"][0], scratch, "resnet50-bf16") / "model.onnx", "bf16")]
    for name, model, policy in cases:
        size = sum(file.stat().st_size for file in model.parent.iterdir() if file.is_file()) if model.parent != scratch else model.stat().st_size
        _, seconds, mib = measured([options.assay, "compile", model, "--chip", "aurum-dc", "--precision", policy, "-o", scratch / "out.h5"])
        print(f"{name:<26} model {size / 2**20:>7.0f} MiB   compile {seconds:>6.2f} s   peak {mib:>7.0f} MiB   program {(scratch / 'out.h5').stat().st_size / 2**20:>6.0f} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "cycles", "compile"])
    parser.add_argument("cases", nargs="*", metavar="CASE", help=", ".join(SPEED))
    parser.add_argument("--assay", type=pathlib.Path, default=ROOT / "build/release/bin/assay")
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared/models")
    parser.add_argument("--runs", type=int, default=10, help="warm runs")
    parser.add_argument("--scalesim-python", default=sys.executable, help="a Python with scalesim (3.0.0 needs numpy below 2)")
    parser.add_argument("--keep", type=pathlib.Path, help="keep made models here")
    options = parser.parse_args()
    unknown = [case for case in options.cases if case not in SPEED]
    if unknown:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join(SPEED)}")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = options.keep.resolve() if options.keep else pathlib.Path(temporary)
        scratch.mkdir(parents=True, exist_ok=True)
        {"speed": speed, "cycles": cycles, "compile": compile_cost}[options.what](options, scratch)


if __name__ == "__main__":
    main()
