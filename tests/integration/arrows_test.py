#!/usr/bin/env python3
"""The arrows of DESIGN section 2 hold, and the checker finds each kind of broken one when it is planted in a copy of the tree."""
import pathlib
import shutil
import sys
import tempfile
import unittest

import arrows

ROOT = pathlib.Path(__file__).resolve().parents[2]

# (file to append to, line, part of the expected problem)
BAD_INCLUDES = [
    ("support/tensor.cpp", '#include "simkernel/types.hpp"', "support must not include simkernel/types.hpp"),
    ("simkernel/program.cpp", "#include <onnx/onnx_pb.h>", "<onnx/onnx_pb.h> belongs to"),
    ("simkernel/program.cpp", "#include <systemc>", "<systemc> belongs to systemc"),
    ("simkernel/program.cpp", "#  include <verilated.h>", "<verilated.h> belongs to rtl_models"),
    ("simkernel/exec/decode.cpp", '#include "workloads/compile.hpp"', "simkernel must not include workloads/"),
    ("simkernel/exec/decode.cpp", '#include "../../golden/emulation/chain.hpp"', "simkernel must not include golden/emulation/chain.hpp"),
    ("support/tensor.cpp", '#include "support/../golden/emulation/chain.hpp"', "support must not include golden/"),
    ("support/tensor.cpp", "#include <golden/emulation/chain.hpp>", "support must not include golden/"),
    ("simkernel/exec/decode.cpp", '#include "switchover/target.hpp"', "simkernel must not include switchover/"),
    ("systemc/chip.cpp", '#include "switchover/target.hpp"', "systemc must not include switchover/"),
    ("systemc/chip.cpp", '#include "rtl_models/rtl_units.hpp"', "systemc must not include rtl_models/"),
    ("rtl_models/rtl_mxu.cpp", '#include "systemc/chip.hpp"', "rtl_models must not include systemc/chip.hpp"),
    ("golden/reference/value.cpp", '#include "simkernel/numerics/formats.hpp"', "golden/reference must not include simkernel/"),
    ("golden/reference/value.cpp", '#include "aurum_contract.hpp"', "golden/reference must not include aurum_contract.hpp"),
    ("golden/emulation/chain.cpp", '#include "simkernel/exec/semantics.hpp"', "golden/emulation must not include simkernel/"),
    ("golden/emulation/chain.cpp", '#include "workloads/compile.hpp"', "golden/emulation must not include workloads/"),
    ("golden/reference/value.cpp", '#include "golden/judge/verdict.hpp"', "golden/reference must not include golden/judge/"),
    ("golden/judge/verdict.cpp", '#include "simkernel/numerics/formats.hpp"', "golden must not include simkernel/numerics/"),
    ("workloads/compile.cpp", '#include "golden/reference/reference.hpp"', "workloads must not include golden/"),
    ("switchover/runtime.cpp", '#include "systemc/chip.hpp"', "switchover must not include systemc/"),
    ("switchover/runtime.cpp", '#include "switchover/backends/chip_target.hpp"', "switchover must not include switchover/backends/"),
    ("campaign/session.cpp", '#include "switchover/backends/chip_target.hpp"', "campaign must not include switchover/backends/"),
    ("cli/main.cpp", '#include "systemc/chip.hpp"', "cli must not include systemc/"),
    ("cli/main.cpp", "#include MODEL_HEADER", "a computed include cannot be checked"),
    ("support/tensor.cpp", '#include "tests/support/temp_folder.hpp"', "support must not include tests/"),
    ("support/tensor.cpp", '#include "nowhere.hpp"', "is no file of the project"),
]

BAD_LINKS = [
    ("support/CMakeLists.txt", "target_link_libraries(assay_support PUBLIC assay::simkernel)", "assay_support (support) must not link assay::simkernel"),
    ("golden/CMakeLists.txt", "target_link_libraries(assay_golden_reference PRIVATE assay::numerics)", "must not link assay::numerics"),
    ("golden/CMakeLists.txt", "target_link_libraries(assay_golden PRIVATE assay::workloads)", "must not link assay::workloads"),
    ("simkernel/CMakeLists.txt", "target_link_libraries(assay_simkernel\n  PRIVATE\n  assay_systemc_lib)", "must not link assay_systemc_lib"),
    ("switchover/CMakeLists.txt", "target_link_libraries(assay_switchover PRIVATE assay::systemc)", "must not link assay::systemc"),
    ("workloads/CMakeLists.txt", "target_link_libraries(assay_workloads PRIVATE assay::golden)", "must not link assay::golden"),
    ("workloads/CMakeLists.txt", "assay_library(stray SOURCES x.cpp)", "library stray: no rule"),
    ("workloads/CMakeLists.txt", "target_link_libraries(assay_workloads PRIVATE assay::unheard)", "which no rule"),
]


class Arrows(unittest.TestCase):
    def test_every_arrow_of_the_tree_holds(self):
        problems, files, links = arrows.check(ROOT)
        self.assertEqual(problems, [])
        self.assertGreater(files, 100, "too few sources were read for this to be the project")
        self.assertGreater(links, 20)

    def test_each_planted_breach_is_found_and_nothing_else(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            for name in {area.split("/")[0] for area in arrows.ALLOWED} | {"tests"}:
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("*.npz", "*.onnx", "*.pb", "__pycache__"))
            for file, line, expected in BAD_INCLUDES + BAD_LINKS:
                with self.subTest(file=file, line=line):
                    path = tree / file
                    before = path.read_text(encoding="utf-8")
                    path.write_text(before + "\n" + line + "\n", encoding="utf-8")
                    problems = arrows.check(tree)[0]
                    path.write_text(before, encoding="utf-8")
                    self.assertEqual(len(problems), 1, problems)
                    self.assertIn(expected, problems[0])

    def test_a_folder_that_no_rule_knows_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = pathlib.Path(folder)
            (tree / "novel").mkdir()
            (tree / "novel" / "CMakeLists.txt").write_text("assay_library(novel)\n")
            self.assertIn("novel/: no rule", arrows.check(tree)[0][0])

    def test_commented_cmake_is_not_a_link(self):
        self.assertEqual(list(arrows.commands("# target_link_libraries(a b)\n")), [])


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
