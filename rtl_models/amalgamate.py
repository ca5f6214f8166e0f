#!/usr/bin/env python3
"""Writes one C++ file that includes every file that Verilator generated in a folder: amalgamate.py FOLDER OUTPUT"""
import pathlib
import sys

folder, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
parts = sorted(path.name for path in folder.glob("*.cpp") if path != output)
if not parts:
    sys.exit(f"amalgamate.py: {folder}: no generated C++ in it")
output.write_text("".join(f'#include "{name}"\n' for name in parts))
