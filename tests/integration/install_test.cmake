# Installs BUILD under a fresh PREFIX and uses what is there: the program finds its presets and its classifier beside itself, and the headers compile.
file(REMOVE_RECURSE "${PREFIX}")
execute_process(COMMAND "${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${PREFIX}" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)

foreach(file bin/assay share/assay/configs/aurum-nano.toml share/assay/configs/aurum-edge.toml share/assay/configs/aurum-dc.toml
        share/assay/digits/int8/model.onnx share/assay/digits/fp32/model.onnx share/assay/digits/heldout/images.npz
        include/assay/switchover/target.hpp include/assay/systemc/unit.hpp include/assay/simkernel/program.hpp include/assay/aurum_contract.hpp)
  if(NOT EXISTS "${PREFIX}/${file}")
    message(FATAL_ERROR "${file} was not installed")
  endif()
endforeach()

# A preset that only the prefix has: the source tree, which the program also knows, cannot stand in for it.
file(READ "${PREFIX}/share/assay/configs/aurum-nano.toml" preset)
string(REPLACE "aurum-nano" "only-installed" preset "${preset}")
file(WRITE "${PREFIX}/share/assay/configs/only-installed.toml" "${preset}")
set(digits "${PREFIX}/share/assay/digits/int8")
execute_process(COMMAND "${PREFIX}/bin/assay" run "${digits}/model.onnx" --input "${digits}/test_data_set_0" --chip only-installed --json "${PREFIX}/verdict.json"
                WORKING_DIRECTORY "${PREFIX}" COMMAND_ERROR_IS_FATAL ANY)
file(READ "${PREFIX}/verdict.json" verdict)
string(JSON value GET "${verdict}" verdict)
string(JSON chip GET "${verdict}" chip)
if(NOT value STREQUAL "PASS" OR NOT chip STREQUAL "only-installed")
  message(FATAL_ERROR "the installed program said ${value} on ${chip}")
endif()

file(WRITE "${PREFIX}/user.cpp" "#include \"switchover/runtime.hpp\"\n#include \"systemc/unit.hpp\"\n#include \"workloads/compile.hpp\"\nint main() {}\n")
execute_process(COMMAND "${CXX}" -std=c++20 -fsyntax-only "-I${PREFIX}/include/assay" "${PREFIX}/user.cpp" COMMAND_ERROR_IS_FATAL ANY)
file(REMOVE_RECURSE "${PREFIX}")
