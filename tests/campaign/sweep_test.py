#!/usr/bin/env python3
"""assay sweep, end to end: figures against single runs and formulas, failures as rows, a killed sweep that continues, files that others read.

  sweep_test.py ASSAY SOURCE_DIR
"""
import csv
import html.parser
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import tomllib
import unittest

ASSAY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


def assay(*words, status=0):
    done = subprocess.run([ASSAY, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == status, f"assay {' '.join(map(str, words))}: status {done.returncode}, wanted {status}\n{done.stdout}{done.stderr}"
    return done


class Sweep(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.folder.name)
        assay("workload", "make", "conv", "--image", 14, "--out", cls.root / "conv")
        cls.model, cls.data = cls.root / "conv/model.onnx", cls.root / "conv/test_data_set_0"

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def sweep(self, name, *words, status=0):
        assay("sweep", self.model, "--input", self.data, "--out", self.root / name, *words, status=status)
        return json.loads((self.root / name / "sweep.json").read_text())

    def test_points_are_the_full_factorial_with_the_figures_of_single_runs(self):
        report = self.sweep("full", "--set", "mxu.cols=16,32", "--set", "precision=native,bf16", "--jobs", 2)
        self.assertEqual([p["values"] for p in report["points"]], [["16", "native"], ["16", "bf16"], ["32", "native"], ["32", "bf16"]])
        energies = tomllib.loads((SOURCE / "configs/energy/7nm.toml").read_text())
        for point in report["points"]:
            cols, precision = point["values"]
            verdict = json.loads(assay("run", self.model, "--input", self.data, "--set", f"mxu.cols={cols}", "--precision", precision, "--measure", 1, "--json", "-", "--no-progress").stdout)
            self.assertEqual(point["cycles"], verdict["cycles"])
            self.assertAlmostEqual(point["milliseconds"], verdict["cycles"] / 800e3)  # aurum-edge: 800 MHz
            macs = 14 * 14 * 64 * 64 * 9
            self.assertEqual(point["macs"], macs)
            self.assertAlmostEqual(point["utilisation"], macs / (verdict["cycles"] * 32 * int(cols)))
            work = {engine: counters["work"] for engine, counters in verdict["counters"].items()}
            moved = work["load"] + work["store"]
            self.assertEqual(point["hbm_bytes"], moved)
            # One layer, in bf16 either way: the array's products are all of one type.
            estimate = point["energy_estimate_pj"]
            self.assertAlmostEqual(estimate["matrix"], work["matrix"] * energies["mac"]["bf16_pj"], delta=1e-6 * estimate["matrix"])
            self.assertAlmostEqual(estimate["vector"], work["vector"] * energies["vector"]["element_pj"], delta=1)
            self.assertAlmostEqual(estimate["hbm"], moved * energies["hbm"]["byte_pj"], delta=1)
            sram = moved + work["matrix"] * 2 / int(cols) + work["matrix"] * 8 / 32 + work["vector"] * 12
            self.assertAlmostEqual(estimate["sram"], sram * energies["sram"]["byte_pj"], delta=1e-6 * estimate["sram"])
        cycles = {tuple(p["values"]): p["cycles"] for p in report["points"]}
        self.assertLess(cycles["32", "bf16"], cycles["16", "bf16"])
        self.assertLess(cycles["32", "bf16"], cycles["32", "native"])

    def test_bandwidth_in_gigabytes_is_bytes_a_channel_and_cycle(self):
        # aurum-edge: 2 channels at 800 MHz, so 51.2 GB/s is 32 bytes: its own value.
        by_rate = self.sweep("gbps", "--set", "hbm.gbps=12.8,51.2")["points"]
        by_bytes = self.sweep("bytes", "--set", "hbm.bytes_per_cycle=8,32")["points"]
        self.assertEqual([p["cycles"] for p in by_rate], [p["cycles"] for p in by_bytes])
        self.assertGreater(by_rate[0]["cycles"], by_rate[1]["cycles"])
        refused = assay("sweep", self.model, "--set", "hbm.gbps=50", "--out", self.root / "no", status=2)
        self.assertIn("31.250 bytes a channel and cycle; give a multiple of 1.6", refused.stderr)

    def test_a_point_that_cannot_be_compiled_is_a_row_with_the_reason(self):
        report = self.sweep("rows", "--set", "spm.bytes=4096,1048576")
        self.assertEqual(report["points"][0]["cycles"], 0)
        self.assertIn("spm.bytes = 4096: must hold", report["points"][0]["reason"])
        self.assertEqual(report["points"][1]["verdict"], "MEASURED")
        rows = list(csv.DictReader((self.root / "rows/sweep.csv").read_text().splitlines()))
        self.assertEqual(rows[0]["cycles"], "")
        self.assertIn("must hold", rows[0]["reason"])
        self.assertEqual(int(rows[1]["cycles"]), report["points"][1]["cycles"])
        # What the child says, and nothing measured: status 2.
        bad = self.sweep("target", "--set", "target=nosuch", status=2)
        self.assertIn("nosuch", bad["points"][0]["reason"])

    def test_judged_points_carry_their_verdict(self):
        report = self.sweep("judged", "--set", "mxu.cols=16,32", "--judge")
        self.assertEqual([p["verdict"] for p in report["points"]], ["PASS", "PASS"])

    def test_a_killed_sweep_loses_no_finished_point(self):
        axes = ["--set", "mxu.cols=8,16,32,64", "--set", "queue_depth=2,4,8"]
        words = [ASSAY, "sweep", str(self.model), "--input", str(self.data), "--out", str(self.root / "killed"), *axes]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for _ in range(4):
            self.assertIn("left", process.stderr.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stderr.close()
        self.assertFalse((self.root / "killed/sweep.json").exists())
        finished = {path: path.stat().st_mtime_ns for path in (self.root / "killed/points").glob("*.json") if ".verdict" not in path.name}
        self.assertGreaterEqual(len(finished), 4)
        self.assertLess(len(finished), 12)
        again = assay(*words[1:])
        self.assertIn(f"12 points ({len(finished)} from an earlier sweep)", again.stderr)
        for path, time in finished.items():
            self.assertEqual(path.stat().st_mtime_ns, time, "a finished point ran again")
        self.assertIn(f"sweep: {len(finished) + 1}/12", again.stderr)
        fresh = self.sweep("fresh", *axes)["points"]
        resumed = json.loads((self.root / "killed/sweep.json").read_text())["points"]
        self.assertEqual([(p["values"], p["cycles"]) for p in resumed], [(p["values"], p["cycles"]) for p in fresh])

    def test_records_of_another_model_or_chip_are_not_reused(self):
        assay("workload", "make", "conv", "--image", 14, "--out", self.root / "changing")
        model = self.root / "changing/model.onnx"
        out = ["--out", self.root / "stale", "--set", "mxu.cols=16,32"]
        assay("sweep", model, *out)
        self.assertIn("(2 from an earlier sweep)", assay("sweep", model, *out).stderr)
        self.assertNotIn("earlier", assay("sweep", model, *out, "--chip", "aurum-dc").stderr)
        assay("workload", "make", "conv", "--image", 15, "--out", self.root / "changing")
        self.assertNotIn("earlier", assay("sweep", model, *out).stderr)

    def test_the_page_is_well_formed_and_plots_every_point(self):
        self.sweep("page", "--set", "mxu.cols=32,64", "--set", "queue_depth=4,8", "--set", "spm.bytes=4096,1048576")
        counts, stack = {}, []

        class Reader(html.parser.HTMLParser):
            def handle_starttag(self, tag, attrs):
                counts[tag] = counts.get(tag, 0) + 1
                if tag not in ("meta", "td", "tr", "th", "p", "html"):
                    stack.append(tag)

            def handle_startendtag(self, tag, attrs):
                counts[tag] = counts.get(tag, 0) + 1

            def handle_endtag(self, tag):
                if tag not in ("td", "tr", "th", "p", "html"):
                    assert stack and stack.pop() == tag, f"</{tag}> closes nothing"

        Reader().feed((self.root / "page/sweep.html").read_text())
        self.assertEqual(stack, [])
        self.assertEqual(counts["svg"], 4)
        self.assertEqual(counts["circle"], 4 * 4, "four points have figures, in each of four plots")
        self.assertEqual(counts["path"], 2 * 4, "a line a value of queue_depth; none for the small scratchpad")
        self.assertEqual(counts["tr"], 1 + 8)

    def test_refusals_come_before_anything_runs(self):
        for words, text in [
            (["--set", "mxu.cols"], "not KEY=VALUE"), (["--set", "mxu.cols=8,,9"], "an empty value"), (["--set", "mxu.cols=8,8"], "a value is given twice"),
            (["--set", "mxu.cols=8", "--set", "mxu.cols=9"], "given twice"), (["--set", "nope=3"], "known chip parameter"), (["--set", "mxu.cols=0"], "must be 1 to 1024"),
            (["--set", "chip=none"], "no such preset"), (["--set", "mxu.cols=8", "--energy", "3nm"], "known: 7nm"),
            (["--set", "mxu.cols=" + ",".join(map(str, range(1, 200))), "--set", "mxu.rows=" + ",".join(map(str, range(1, 200)))], "more than 10000 points"),
        ]:
            self.assertIn(text, assay("sweep", self.model, *words, "--out", self.root / "refused", status=2).stderr)
        self.assertFalse((self.root / "refused/sweep.json").exists())


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
