# Options, third parties and the two helpers that every folder uses. Nothing is downloaded.
option(ASSAY_TESTS "Build the tests" ON)
option(ASSAY_BENCH "Build the benchmarks" OFF)
option(ASSAY_FUZZ "Build the libFuzzer targets (clang only)" OFF)
option(ASSAY_ASAN "AddressSanitizer and UndefinedBehaviorSanitizer on all C++ of ours" OFF)
set(ASSAY_RTL_CONFIGS "8x8;32x32" CACHE STRING "MXU geometries (ROWSxCOLS) whose RTL is Verilated")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_program(ASSAY_CCACHE ccache)
if(ASSAY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${ASSAY_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${ASSAY_CCACHE}")
endif()

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(Boost 1.74 REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)
find_package(nlohmann_json REQUIRED)
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5)
pkg_check_modules(TOMLPP REQUIRED IMPORTED_TARGET tomlplusplus)
pkg_check_modules(HWY REQUIRED IMPORTED_TARGET libhwy)
pkg_check_modules(SYSTEMC REQUIRED IMPORTED_TARGET systemc)

# libonnx_proto of Debian: the schema's generated protobuf classes.
find_library(ASSAY_ONNX_LIBRARY onnx_proto REQUIRED)
add_library(assay_onnx INTERFACE)
target_link_libraries(assay_onnx INTERFACE ${ASSAY_ONNX_LIBRARY} protobuf::libprotobuf)
target_compile_definitions(assay_onnx INTERFACE ONNX_ML=1 ONNX_NAMESPACE=onnx)

# SystemC of Debian is built as C++17; C++20 code must name that ABI.
add_library(assay_systemc_lib INTERFACE)
target_link_libraries(assay_systemc_lib INTERFACE PkgConfig::SYSTEMC Threads::Threads)
target_compile_definitions(assay_systemc_lib INTERFACE SC_CPLUSPLUS=201703L SC_INCLUDE_DYNAMIC_PROCESSES)

# Warnings and floating-point rules of all code of ours. Contraction is off: every fma is written.
add_library(assay_options INTERFACE)
target_compile_options(assay_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow
                       -Wno-psabi -ffp-contract=off -fno-math-errno)
target_include_directories(assay_options INTERFACE "${PROJECT_SOURCE_DIR}")
if(ASSAY_ASAN)
  target_compile_options(assay_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                         -fno-omit-frame-pointer)
  target_link_options(assay_options INTERFACE -fsanitize=address,undefined)
endif()

# assay_library(NAME SOURCES a.cpp ... PUBLIC lib ... PRIVATE lib ...): target assay_NAME with alias assay::NAME.
# PUBLIC holds exactly the design's arrows; third parties are PRIVATE unless a public header needs them.
function(assay_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  add_library(assay_${name} STATIC ${ARG_SOURCES})
  add_library(assay::${name} ALIAS assay_${name})
  target_link_libraries(assay_${name} PUBLIC ${ARG_PUBLIC} PRIVATE assay_options ${ARG_PRIVATE})
  target_include_directories(assay_${name} PUBLIC "${PROJECT_SOURCE_DIR}")
endfunction()
