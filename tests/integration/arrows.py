#!/usr/bin/env python3
"""Checks that the parts of the project see only what DESIGN section 2 lets them see.

  arrows.py ROOT        exit status 1 and one line for each broken arrow

Two things are read: every #include of every source, and every library that a folder's CMakeLists.txt links. Each area may see itself
and what ALLOWED lists, nothing else; a new folder or library that no rule knows is an error too, so that nothing slips past.
"""
import pathlib
import posixpath
import re
import sys

# Area (longest matching path prefix) -> areas or single headers that it may include. An area always sees itself.
ALLOWED = {
    "support": [],
    "simkernel": ["support"],
    "systemc": ["simkernel", "support"],
    "rtl_models": ["simkernel", "support", "systemc/unit.hpp"],
    # What judges shares no code with what it judges: no compiler, no numerics, no chip.
    "golden/reference": ["support", "golden/emulation"],
    "golden/emulation": ["support", "golden/reference"],
    "golden/store": ["support", "golden/reference", "golden/emulation"],
    "golden": ["support", "golden/reference", "golden/emulation", "golden/store", "simkernel/program.hpp", "simkernel/types.hpp"],
    # The host fallback sees neither the compiler around it nor the chip: a program's step runs without both.
    "workloads/host": ["support"],
    "workloads": ["workloads/host", "simkernel", "support"],
    "switchover": ["simkernel", "support"],
    # The one place that sees the chip models.
    "switchover/backends": ["switchover", "simkernel", "support", "systemc", "rtl_models"],
    "campaign": ["golden", "golden/reference", "golden/emulation", "golden/store", "workloads", "workloads/host", "switchover", "simkernel", "support"],
    "cli": ["campaign", "golden", "golden/reference", "golden/emulation", "golden/store", "workloads", "workloads/host", "switchover", "simkernel", "support"],
}
# Folders whose code may see everything, and which nothing else may include.
FREE = ["tests", "bench"]

# First component of a third party's header -> areas that may include it.
THIRD_PARTY = {
    "systemc": ["systemc"], "systemc.h": ["systemc"], "sysc": ["systemc"], "tlm": ["systemc"], "tlm.h": ["systemc"], "tlm_utils": ["systemc"],
    "verilated.h": ["rtl_models"], "verilated_fst_c.h": ["rtl_models"], "verilated_cov.h": ["rtl_models"], "svdpi.h": ["rtl_models"],
    "onnx": ["support", "workloads", "workloads/host", "golden/reference", "campaign"], "google": ["support", "workloads", "workloads/host", "golden/reference"],
    "boost": ["workloads", "simkernel"], "Eigen": ["golden/reference", "workloads/host"], "hdf5.h": ["support"], "H5Cpp.h": ["support"], "CLI": ["cli"],
    "sqlite3.h": ["campaign"],
}

# CMake library (without assay_ or assay::) -> the area whose code it holds.
LIBRARY_AREA = {
    "support": "support", "onnxfile": "support", "contract": "simkernel", "numerics": "simkernel", "simkernel": "simkernel",
    "systemc": "systemc", "rtl_models": "rtl_models", "golden_reference": "golden/reference", "golden_store": "golden/store",
    "golden": "golden", "hostops": "workloads/host", "workloads": "workloads", "generate": "workloads", "switchover": "switchover", "backends": "switchover/backends", "campaign": "campaign",
}
# Third parties as CMake names them -> areas that may link them.
LIBRARY_THIRD_PARTY = {
    "assay_systemc_lib": ["systemc"], "assay_verilated": ["rtl_models"],
    "assay_onnx": ["support", "workloads", "workloads/host", "golden/reference", "campaign"], "Eigen3::Eigen": ["golden/reference", "workloads/host"],
    "Boost::headers": ["workloads", "simkernel"], "Boost::graph": ["workloads"], "PkgConfig::HDF5": ["support"],
}
# Libraries that name no part: options, and what any part may use.
LIBRARY_FREE = {"assay_options"}
# The program registers its targets by linking them; its code includes none of their headers.
LINK_ONLY = {("campaign", "switchover/backends"), ("cli", "switchover/backends"), ("golden", "simkernel")}

GENERATED = {"aurum_contract.hpp": "simkernel"}
SOURCES = {".cpp", ".hpp", ".h", ".cc", ".inc", ".in", ".c"}
INCLUDE = re.compile(r"^\s*#\s*include\s*(?:<([^>]+)>|\"([^\"]+)\"|(\S+))")


def area_of(path):
    """Area of a path relative to the root; None when no rule knows it."""
    parts = pathlib.PurePosixPath(path).parts
    for length in range(len(parts), 0, -1):
        prefix = "/".join(parts[:length])
        if prefix in ALLOWED or prefix in FREE:
            return prefix
    return None


def may_see(area, target_path):
    target_area = area_of(target_path)
    return target_area == area or target_area in ALLOWED[area] or target_path in ALLOWED[area]


def check_include(root, file, number, match):
    """The problem with one #include line of a file that is not free, or None."""
    where = f"{file}:{number}"
    area = area_of(file)
    angle, quoted, macro = match.groups()
    if macro:
        return f"{where}: #include {macro}: a computed include cannot be checked"
    if angle:
        first = angle.split("/")[0]
        if (root / angle).is_file():
            quoted = angle
        elif first in THIRD_PARTY and area not in THIRD_PARTY[first]:
            return f"{where}: <{angle}> belongs to {', '.join(THIRD_PARTY[first])}, not to {area}"
        else:
            return None
    if quoted in GENERATED:
        owner = GENERATED[quoted]
        return None if owner == area or owner in ALLOWED[area] else f"{where}: {area} must not include {quoted} of {owner}"
    if area == "rtl_models" and re.fullmatch(r"(V\w+|@\w+@)(___024root)?\.h", quoted):
        return None  # written by Verilator
    target = posixpath.normpath(quoted)
    if not (root / target).is_file():
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(file), quoted))
        if not (root / beside).is_file():
            first = quoted.split("/")[0]
            if first in THIRD_PARTY and area in THIRD_PARTY[first]:
                return None
            return f"{where}: \"{quoted}\" is no file of the project; third parties are included with <>"
        target = beside
    return None if may_see(area, target) else f"{where}: {area} must not include {target}"


def check_includes(root):
    problems = []
    files = 0
    folders = {name.split("/")[0] for name in ALLOWED}
    for folder in sorted(folders):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            files += 1
            file = path.relative_to(root).as_posix()
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                match = INCLUDE.match(line)
                problem = match and check_include(root, file, number, match)
                if problem:
                    problems.append(problem)
    for path in root.iterdir():
        known = path.name in folders or path.name in FREE
        if path.is_dir() and not known and (path / "CMakeLists.txt").exists():
            problems.append(f"{path.name}/: no rule of tests/integration/arrows.py knows this folder")
    return problems, files


def commands(text):
    """(name, arguments) of each CMake command; comments are dropped."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in re.finditer(r"(\w+)\s*\(([^()]*)\)", text):
        yield match.group(1), match.group(2).split()


def library(name):
    """assay::x and assay_x are x."""
    for prefix in ("assay::", "assay_"):
        if name.startswith(prefix):
            return name[len(prefix):]
    return name


def check_link(file, target, area, item):
    if item in LIBRARY_THIRD_PARTY:
        return None if area in LIBRARY_THIRD_PARTY[item] else f"{file}: {target} must not link {item}"
    if item in LIBRARY_FREE or not item.startswith("assay"):
        return None
    other = LIBRARY_AREA.get(library(item))
    if other is None:
        return f"{file}: {target} links {item}, which no rule of tests/integration/arrows.py knows"
    if other == area or other in ALLOWED[area] or (area, other) in LINK_ONLY:
        return None
    return f"{file}: {target} ({area}) must not link {item} ({other})"


def check_links(root):
    problems = []
    links = 0
    for folder in sorted({name.split("/")[0] for name in ALLOWED}):
        for path in sorted((root / folder).rglob("CMakeLists.txt")):
            file = path.relative_to(root).as_posix()
            for name, arguments in commands(path.read_text(encoding="utf-8")):
                if name not in ("assay_library", "target_link_libraries") or not arguments:
                    continue
                target = arguments[0]
                items = arguments[1:]
                if name == "assay_library":
                    # Sources are not links.
                    visibility = [i for i, a in enumerate(items) if a in ("PUBLIC", "PRIVATE", "INTERFACE")]
                    items = items[visibility[0]:] if visibility else []
                area = LIBRARY_AREA.get(library(target), folder)
                if name == "assay_library" and library(target) not in LIBRARY_AREA:
                    problems.append(f"{file}: library {target}: no rule of tests/integration/arrows.py knows it")
                if target in LIBRARY_THIRD_PARTY:
                    continue
                for item in items:
                    links += 1
                    problem = check_link(file, target, area, item)
                    if problem:
                        problems.append(problem)
    return problems, links


def check(root):
    """(problems, sources read, links read)."""
    root = pathlib.Path(root)
    includes, files = check_includes(root)
    links, count = check_links(root)
    return includes + links, files, count


def main():
    problems, files, links = check(sys.argv[1])
    for problem in problems:
        print(problem)
    print(f"{files} sources and {links} links, {len(problems)} broken arrows")
    if files == 0 or links == 0:
        print("nothing was checked: is this the project's root?")
        return 1
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
