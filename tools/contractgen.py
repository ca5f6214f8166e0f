#!/usr/bin/env python3
"""Generates the C++ header, the SystemVerilog package and the reference page from simkernel/contract/*.toml.

  contractgen.py CONTRACT_DIR --cpp FILE --sv FILE --md FILE      (any subset)

The contract is validated first: overlapping fields, duplicate names, codes or offsets, and values outside their field are errors.
"""
import argparse
import pathlib
import sys
import tomllib


class Bad(Exception):
    pass


def load(directory):
    contract = {}
    for name in ("registers", "descriptors", "errors", "chip"):
        path = directory / f"{name}.toml"
        with open(path, "rb") as file:
            contract[name] = tomllib.load(file)
    check(contract)
    return contract


def unique(rows, key, what):
    seen = {}
    for row in rows:
        if row[key] in seen:
            raise Bad(f"{what}: {key} {row[key]!r} is declared twice ('{seen[row[key]]}' and '{row['name']}')")
        seen[row[key]] = row["name"]


def bits(field):
    """Absolute bit positions that the field covers."""
    covered = []
    for index in range(field.get("count", 1)):
        start = field["word"] * 32 + field["lsb"] + index * field.get("step", field["width"])
        covered.extend(range(start, start + field["width"]))
    return covered


def check_fields(owner, fields, words):
    seen = {}
    for field in fields:
        if not 1 <= field["width"] <= 64:
            raise Bad(f"{owner}: field '{field['name']}' is {field['width']} bits wide; allowed: 1 to 64")
        if field["width"] > 32 and (field["lsb"] or field["width"] != 64):
            raise Bad(f"{owner}: field '{field['name']}' wider than 32 bits must be 64 bits on a word boundary")
        if field["width"] <= 32:
            for index in range(field.get("count", 1)):
                low = field["lsb"] + index * field.get("step", field["width"])
                if low // 32 != (low + field["width"] - 1) // 32:
                    raise Bad(f"{owner}: field '{field['name']}' crosses a word boundary")
        for bit in bits(field):
            if bit >= words * 32:
                raise Bad(f"{owner}: field '{field['name']}' ends past word {words - 1}")
            if bit in seen:
                raise Bad(f"{owner}: fields '{seen[bit]}' and '{field['name']}' both cover bit {bit % 32} of word {bit // 32}")
            seen[bit] = field["name"]


def check(contract):
    descriptors = contract["descriptors"]
    words = descriptors["format"]["words"]
    unique(descriptors["descriptor"], "name", "descriptors")
    unique(descriptors["descriptor"], "opcode", "descriptors")
    for descriptor in descriptors["descriptor"]:
        if descriptor["engine"] not in descriptors["enums"]["engine"]:
            raise Bad(f"descriptor '{descriptor['name']}': unknown engine '{descriptor['engine']}'")
        check_fields(f"descriptor '{descriptor['name']}'", descriptors["common"] + descriptor["fields"], words)
    for record in descriptors["record"]:
        check_fields(f"record '{record['name']}'", record["fields"], record["words"])
    unique(contract["errors"]["error"], "code", "errors")
    unique(contract["errors"]["status"], "code", "statuses")
    registers = contract["registers"]
    unique(registers["register"], "name", "registers")
    unique(registers["register"], "offset", "registers")
    for register in registers["register"]:
        if register["access"] not in ("ro", "rw", "wo", "w1c") or register["offset"] % 4:
            raise Bad(f"register '{register['name']}': bad access or offset")


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def member(key):
    return key.replace(".", "_")


def cpp_type(field):
    wide = field["width"] > 32
    if field.get("signed"):
        return "std::int64_t" if wide else "std::int32_t"
    return "std::uint64_t" if wide else "std::uint32_t"


def word_of(field, index):
    start = field["word"] * 32 + field["lsb"] + index * field.get("step", field["width"])
    return start // 32, start % 32


def cpp_struct(name, text, fields, words):
    out = [f"/// {text}", f"struct {name} {{"]
    for field in fields:
        kind = cpp_type(field)
        if "count" in field:
            out.append(f"    std::array<{kind}, {field['count']}> {field['name']}{{}};  ///< {field['text']}")
        else:
            out.append(f"    {kind} {field['name']} = 0;  ///< {field['text']}")
    out.append(f"    bool operator==(const {name}&) const = default;")
    out.append("};")
    span = f"std::array<std::uint32_t, {words}>"
    out.append(f"inline {name} decode_{snake(name)}(const {span}& w) {{")
    out.append(f"    {name} f;")
    for field in fields:
        for index in range(field.get("count", 1)):
            word, low = word_of(field, index)
            target = f"f.{field['name']}[{index}]" if "count" in field else f"f.{field['name']}"
            if field["width"] == 64:
                value = f"(std::uint64_t{{w[{word}]}} | (std::uint64_t{{w[{word + 1}]}} << 32))"
            elif field["width"] == 32:
                value = f"w[{word}]"
            else:
                value = f"((w[{word}] >> {low}) & {hex((1 << field['width']) - 1)}u)"
            out.append(f"    {target} = static_cast<{cpp_type(field)}>({value});")
    out.append("    return f;")
    out.append("}")
    out.append(f"inline void encode(const {name}& f, {span}& w) {{")
    for field in fields:
        for index in range(field.get("count", 1)):
            word, low = word_of(field, index)
            source = f"f.{field['name']}[{index}]" if "count" in field else f"f.{field['name']}"
            if field["width"] == 64:
                out.append(f"    w[{word}] = static_cast<std::uint32_t>(static_cast<std::uint64_t>({source}));")
                out.append(f"    w[{word + 1}] = static_cast<std::uint32_t>(static_cast<std::uint64_t>({source}) >> 32);")
            elif field["width"] == 32:
                out.append(f"    w[{word}] = static_cast<std::uint32_t>({source});")
            else:
                mask = hex((1 << field["width"]) - 1) + "u"
                out.append(f"    w[{word}] = (w[{word}] & ~({mask} << {low})) | ((static_cast<std::uint32_t>({source}) & {mask}) << {low});")
    out.append("}")
    return out


def snake(name):
    return "".join(("_" + c.lower()) if c.isupper() and i else c.lower() for i, c in enumerate(name))


def reserved_mask(descriptors, descriptor):
    used = [0] * descriptors["format"]["words"]
    for field in descriptors["common"] + descriptor["fields"]:
        for bit in bits(field):
            used[bit // 32] |= 1 << (bit % 32)
    return [~mask & 0xFFFFFFFF for mask in used]


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def generate_cpp(contract):
    d, r, e, c = (contract[k] for k in ("descriptors", "registers", "errors", "chip"))
    words = d["format"]["words"]
    out = [
        "// Generated by tools/contractgen.py from simkernel/contract/*.toml. Do not edit.",
        "#pragma once",
        "#include <array>",
        "#include <cstddef>",
        "#include <cstdint>",
        "#include <string>",
        "#include <string_view>",
        "",
        "namespace assay::simkernel {",
        "",
        f"inline constexpr std::size_t kDescriptorWords = {words};",
        f"inline constexpr std::size_t kDescriptorBytes = {words * 4};",
        f"using DescriptorWords = std::array<std::uint32_t, {words}>;",
        "",
    ]
    for name, values in d["enums"].items():
        out.append(f"enum class {camel(name)} : std::uint32_t {{")
        out += [f"    {key} = {value}," for key, value in values.items()]
        out.append("};")
        out.append(f"inline constexpr std::array<{camel(name)}, {len(values)}> kAll{camel(name)}{{")
        out += [f"    {camel(name)}::{key}," for key in values]
        out.append("};")
        out.append(f"/// Name as in the contract; \"?\" for a value that it does not list.")
        out.append(f"constexpr std::string_view name_of({camel(name)} value) {{")
        out.append("    switch (value) {")
        out += [f"        case {camel(name)}::{key}: return \"{key}\";" for key in values]
        out.append("    }\n    return \"?\";\n}")
    out.append("enum class Opcode : std::uint32_t {")
    out += [f"    {x['name']} = {x['opcode']}," for x in d["descriptor"]]
    out.append("};")
    out.append("constexpr std::string_view name_of(Opcode value) {\n    switch (value) {")
    out += [f"        case Opcode::{x['name']}: return \"{x['name']}\";" for x in d["descriptor"]]
    out.append("    }\n    return \"?\";\n}")
    out.append("struct OpcodeInfo {\n    Opcode opcode;\n    Engine engine;\n    DescriptorWords reserved;  ///< bits that must be zero\n};")
    out.append(f"inline constexpr std::array<OpcodeInfo, {len(d['descriptor'])}> kOpcodes{{{{")
    for x in d["descriptor"]:
        mask = ", ".join(hex(m) + "u" for m in reserved_mask(d, x))
        out.append(f"    {{Opcode::{x['name']}, Engine::{x['engine']}, {{{{{mask}}}}}}},")
    out.append("}};")
    out += cpp_struct("CommonFields", "Words 0 to 8 of every descriptor.", d["common"], words)
    for x in d["descriptor"]:
        if x["fields"]:
            out += cpp_struct(camel(x["name"]) + "Fields", x["text"], x["fields"], words)
    for x in d["record"]:
        out.append(f"inline constexpr std::size_t k{camel(x['name'])}RecordBytes = {x['words'] * 4};")
        out += cpp_struct(camel(x["name"]) + "Record", f"Record written by the chip: {x['name']}.", x["fields"], x["words"])
    for table, kind in (("error", "ErrorCode"), ("status", "JobStatus")):
        out.append(f"enum class {kind} : std::uint32_t {{")
        out += [f"    {x['name']} = {x['code']},  ///< {x['text']}" for x in e[table]]
        out.append("};")
        out.append(f"constexpr std::string_view name_of({kind} value) {{\n    switch (value) {{")
        out += [f"        case {kind}::{x['name']}: return \"{x['name']}\";" for x in e[table]]
        out.append("    }\n    return \"?\";\n}")
        out.append(f"constexpr std::string_view text_of({kind} value) {{\n    switch (value) {{")
        out += [f"        case {kind}::{x['name']}: return {quote(x['text'])};" for x in e[table]]
        out.append("    }\n    return \"?\";\n}")
    out += [
        "enum class Access { ro, rw, wo, w1c };",
        "struct RegisterInfo {",
        "    std::string_view name;",
        "    std::uint32_t offset;",
        "    Access access;",
        "    bool has_reset;       ///< false: the reset value comes from the chip's configuration or its state",
        "    std::uint32_t reset;",
        "    std::string_view text;",
        "};",
        "namespace reg {",
    ]
    out += [f"inline constexpr std::uint32_t {x['name']} = {hex(x['offset'])};" for x in r["register"]]
    block = r["counter_block"][0]
    out.append(f"inline constexpr std::uint32_t {block['name']} = {hex(block['offset'])};")
    out.append(f"inline constexpr std::uint32_t {block['name']}_engine_stride = {hex(block['engine_stride'])};")
    out.append("}  // namespace reg")
    out.append(f"inline constexpr std::uint32_t kRegisterBytes = {r['map']['size_bytes']};")
    out.append("enum class Counter : std::uint32_t {")
    out += [f"    {name} = {i}," for i, name in enumerate(block["counters"])]
    out.append("};")
    out.append(f"inline constexpr std::size_t kCounterCount = {len(block['counters'])};")
    out.append(f"inline constexpr std::array<std::string_view, {len(block['counters'])}> kCounterNames{{")
    out += [f"    \"{name}\"," for name in block["counters"]]
    out.append("};")
    out.append(f"inline constexpr std::array<RegisterInfo, {len(r['register'])}> kRegisters{{{{")
    for x in r["register"]:
        has = "true" if "reset" in x else ("true" if x["access"] in ("rw", "wo", "w1c") else "false")
        out.append(f"    {{\"{x['name']}\", {hex(x['offset'])}, Access::{x['access']}, {has}, {hex(x.get('reset', 0))}u, {quote(x['text'])}}},")
    out.append("}};")
    out.append("namespace region {")
    for x in r["region"]:
        out.append(f"inline constexpr std::uint64_t {x['name']} = {hex(x['base'])};  ///< {x['text']}")
        if "core_stride" in x:
            out.append(f"inline constexpr std::uint64_t {x['name']}_core_stride = {hex(x['core_stride'])};")
    out.append("}  // namespace region")
    out += [
        "/// Parameters of one chip, as loaded from a preset (see load_chip_config).",
        "struct ChipConfig {",
    ]
    for x in c["param"]:
        if x.get("type") == "string":
            out.append(f"    std::string {member(x['key'])};  ///< {x['text']}")
        else:
            out.append(f"    std::int64_t {member(x['key'])} = {x['default']};  ///< {x['text']}")
    out += [
        "    bool operator==(const ChipConfig&) const = default;",
        "};",
        "struct ParamInfo {",
        "    std::string_view key;",
        "    std::int64_t ChipConfig::*member;",
        "    std::int64_t min, max, def;",
        "    bool power_of_two;",
        "    bool functional;  ///< enters config_hash",
        "    std::string_view text;",
        "};",
    ]
    params = [x for x in c["param"] if x.get("type") != "string"]
    out.append(f"inline constexpr std::array<ParamInfo, {len(params)}> kParams{{{{")
    for x in params:
        flags = ", ".join("true" if x.get(k) else "false" for k in ("power_of_two", "functional"))
        out.append(f"    {{\"{x['key']}\", &ChipConfig::{member(x['key'])}, {x['min']}, {x['max']}, {x['default']}, {flags}, {quote(x['text'])}}},")
    out.append("}};")
    out.append("}  // namespace assay::simkernel")
    return "\n".join(out) + "\n"


def generate_sv(contract):
    d, r, e = (contract[k] for k in ("descriptors", "registers", "errors"))
    out = [
        "// Generated by tools/contractgen.py from simkernel/contract/*.toml. Do not edit.",
        "package aurum_pkg;",
        f"  localparam int unsigned DESCRIPTOR_WORDS = {d['format']['words']};",
        f"  localparam int unsigned DESCRIPTOR_BITS = {d['format']['words'] * 32};",
        "  typedef logic [DESCRIPTOR_BITS-1:0] descriptor_t;",
        "  typedef logic signed [7:0] i8_t;",
        "  typedef logic signed [31:0] i32_t;",
        "  typedef logic [15:0] bf16_t;",
        "  typedef logic [31:0] f32_t;",
        "  localparam f32_t F32_CANONICAL_NAN = 32'h7FC0_0000;",
        "  // Bit 31 of a local address selects the accumulator.",
        "  localparam int unsigned LOCAL_ACC_BIT = 31;",
    ]
    for name, values in d["enums"].items():
        width = max(1, max(values.values()).bit_length())
        if name == "dtype":
            width = 4
        out.append(f"  typedef enum logic [{width - 1}:0] {{")
        out.append(",\n".join(f"    {name.upper()}_{key.upper()} = {width}'d{value}" for key, value in values.items()))
        out.append(f"  }} {name}_e;")
    out.append("  typedef enum logic [7:0] {")
    out.append(",\n".join(f"    OP_{x['name'].upper()} = 8'd{x['opcode']}" for x in d["descriptor"]))
    out.append("  } opcode_e;")
    for prefix, fields in [("D", d["common"])] + [(x["name"].upper(), x["fields"]) for x in d["descriptor"]]:
        for f in fields:
            base = f["word"] * 32 + f["lsb"]
            out.append(f"  localparam int unsigned {prefix}_{f['name'].upper()}_LSB = {base};")
            out.append(f"  localparam int unsigned {prefix}_{f['name'].upper()}_W = {f['width']};")
            if "count" in f:
                out.append(f"  localparam int unsigned {prefix}_{f['name'].upper()}_STEP = {f.get('step', f['width'])};")
    for x in e["error"]:
        out.append(f"  localparam logic [31:0] ERR_{x['name'].upper()} = 32'd{x['code']};")
    for x in e["status"]:
        out.append(f"  localparam logic [31:0] STATUS_{x['name'].upper()} = 32'd{x['code']};")
    for x in r["register"]:
        out.append(f"  localparam logic [11:0] REG_{x['name'].upper()} = 12'h{x['offset']:03X};")
    out.append("endpackage")
    return "\n".join(out) + "\n"


def table(header, rows):
    out = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    out += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return out + [""]


def generate_md(contract):
    d, r, e, c = (contract[k] for k in ("descriptors", "registers", "errors", "chip"))
    out = [
        "# The `aurum` chip: reference",
        "",
        "Generated from `simkernel/contract/*.toml` by `tools/contractgen.py`; a test checks that it is current. Edit the data, not this page.",
        "",
        "## Registers (BAR0)",
        "",
    ]
    out += table(["offset", "name", "access", "reset", "meaning"],
                 [(f"`{x['offset']:#05x}`", f"`{x['name']}`", x["access"], f"`{x['reset']:#010x}`" if "reset" in x else "", x["text"]) for x in r["register"]])
    block = r["counter_block"][0]
    out += [f"Counters: `{block['offset']:#x}` + engine × `{block['engine_stride']:#x}` + n × 8. {block['text']}.", ""]
    out += table(["n", "counter"], list(enumerate(f"`{x}`" for x in block["counters"])))
    out += [f"`work`: {block['work_text']}.", "", "## Device address space", ""]
    out += table(["base", "region", "per core", "meaning"],
                 [(f"`{x['base']:#x}`", x["name"], f"`{x['core_stride']:#x}`" if "core_stride" in x else "", x["text"]) for x in r["region"]])
    out += ["## Descriptors", "", f"{d['format']['words']} words of 32 bits. Words 0 to 8 are common.", ""]

    def rows(fields):
        for f in fields:
            where = f"w{f['word']}" + (f"[{f['lsb'] + f['width'] - 1}:{f['lsb']}]" if f["width"] < 32 else "" if f["width"] == 32 else f"–w{f['word'] + 1}")
            yield (where, f"`{f['name']}`" + (f" × {f['count']}" if "count" in f else ""), f["width"], f["text"])

    out += table(["where", "field", "bits", "meaning"], rows(d["common"]))
    for x in d["descriptor"]:
        out += [f"### `{x['name']}` (opcode {x['opcode']}, {x['engine']} engine)", "", x["text"], ""]
        if x["fields"]:
            out += table(["where", "field", "bits", "meaning"], rows(x["fields"]))
    for name, values in d["enums"].items():
        out += [f"### Values of `{name}`", ""] + table(["value", "name"], [(v, f"`{k}`") for k, v in values.items()])
    for x in d["record"]:
        out += [f"### Record `{x['name']}` ({x['words'] * 4} bytes)", ""] + table(["where", "field", "bits", "meaning"], rows(x["fields"]))
    out += ["## Errors", ""] + table(["code", "name", "meaning"], [(x["code"], f"`{x['name']}`", x["text"]) for x in e["error"]])
    out += ["## Job status", ""] + table(["code", "name", "meaning"], [(x["code"], f"`{x['name']}`", x["text"]) for x in e["status"]])
    out += ["## Chip parameters (TOML)", ""]
    out += table(["key", "range", "default", "functional", "meaning"],
                 [(f"`{x['key']}`", f"{x['min']} … {x['max']}" + (", a power of two" if x.get("power_of_two") else "") if "min" in x else "text", x.get("default", ""), "yes" if x.get("functional") else "", x["text"]) for x in c["param"]])
    return "\n".join(out).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("contract", type=pathlib.Path)
    parser.add_argument("--cpp", type=pathlib.Path)
    parser.add_argument("--sv", type=pathlib.Path)
    parser.add_argument("--md", type=pathlib.Path)
    arguments = parser.parse_args()
    try:
        contract = load(arguments.contract)
    except (Bad, KeyError, OSError, tomllib.TOMLDecodeError) as error:
        print(f"contractgen: {arguments.contract}: {error}", file=sys.stderr)
        return 1
    for path, generate in ((arguments.cpp, generate_cpp), (arguments.sv, generate_sv), (arguments.md, generate_md)):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(generate(contract))
    return 0


if __name__ == "__main__":
    sys.exit(main())
