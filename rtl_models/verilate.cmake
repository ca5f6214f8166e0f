# assay_verilate(TARGET PREFIX name TOP module SOURCES a.sv ... [PARAMS Rows=8 ...] [ARGS verilator options ...] [TRACE] [INSTANCE file.cpp]):
# adds to TARGET the Verilated model of TOP as class `name`, in one translation unit. Generated names hold hashes of their contents, so
# the list of files is known only after Verilator ran: amalgamate.py includes them all into one file that CMake knows.
# INSTANCE: a hand-written or configured source of TARGET that includes the generated header.
find_program(ASSAY_VERILATOR verilator REQUIRED)
execute_process(COMMAND "${ASSAY_VERILATOR}" --getenv VERILATOR_ROOT OUTPUT_VARIABLE ASSAY_VERILATOR_ROOT
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(ASSAY_VERILATOR_INCLUDE "${ASSAY_VERILATOR_ROOT}/include" CACHE INTERNAL "Verilator's run-time headers")

# Warnings that mean a slow or wrong model are errors already in lint (-Wall); here they fail the build too.
set(ASSAY_VERILATOR_ARGS --cc -O3 --assert --unroll-count 4 -Werror-LATCH -Werror-COMBDLY -Werror-MULTIDRIVEN -Werror-UNOPTFLAT -Werror-WIDTH
    CACHE INTERNAL "Options of every model. unroll-count 4: loops over columns stay loops, which compile faster and run faster")

function(assay_verilate target)
  cmake_parse_arguments(ARG "TRACE" "PREFIX;TOP;INSTANCE" "SOURCES;PARAMS;ARGS" ${ARGN})
  set(dir "${CMAKE_CURRENT_BINARY_DIR}/${ARG_PREFIX}")
  set(parameters ${ARG_PARAMS})
  list(TRANSFORM parameters PREPEND "-G")
  set(trace_args "")
  set(trace 0)
  if(ARG_TRACE)
    set(trace_args --trace-fst --trace-underscore)
    set(trace 1)
  endif()
  set(all "${dir}/${ARG_PREFIX}_all.cpp")
  add_custom_command(
    OUTPUT "${all}" "${dir}/${ARG_PREFIX}.h"
    COMMAND "${CMAKE_COMMAND}" -E rm -rf "${dir}"
    COMMAND "${ASSAY_VERILATOR}" ${ASSAY_VERILATOR_ARGS} ${ARG_ARGS} ${trace_args} ${parameters} --Mdir "${dir}" --prefix ${ARG_PREFIX}
            --top-module ${ARG_TOP} "-I${ASSAY_RTL_DIR}" "${ASSAY_RTL_DIR}/lint.vlt" ${ARG_SOURCES}
    COMMAND Python3::Interpreter "${ASSAY_RTL_DIR}/amalgamate.py" "${dir}" "${all}"
    DEPENDS ${ARG_SOURCES} "${ASSAY_RTL_DIR}/lint.vlt" "${ASSAY_RTL_DIR}/assay_assert.svh" "${ASSAY_RTL_DIR}/amalgamate.py"
    COMMENT "Verilating ${ARG_PREFIX}")
  target_sources(${target} PRIVATE "${all}")
  set_source_files_properties("${all}" ${ARG_INSTANCE} PROPERTIES
    INCLUDE_DIRECTORIES "${dir}" COMPILE_DEFINITIONS "VM_TRACE=${trace};VM_TRACE_FST=${trace}" OBJECT_DEPENDS "${dir}/${ARG_PREFIX}.h")
  # Optimised in every build type (a debug build of a model is unusably slow), baseline instructions (a binary runs on any x86-64), and no
  # sanitizer: it is not our code, and it is checked against bits.
  set_source_files_properties("${all}" PROPERTIES COMPILE_OPTIONS "-O3;-w;-fno-sanitize=all")
  target_link_libraries(${target} PRIVATE assay_verilated)
endfunction()
