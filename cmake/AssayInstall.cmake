# What `cmake --install BUILD --prefix DIR` puts under a prefix: the program, the chip presets and the digit classifier, found by the program beside
# itself (../share/assay), the headers of the seams for those who write targets, units or tools, and the documentation.
include(GNUInstallDirs)
install(TARGETS assay RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Not CMAKE_INSTALL_DATADIR: the program looks for ../share.
install(DIRECTORY configs/ DESTINATION share/assay/configs FILES_MATCHING PATTERN "*.toml")
install(DIRECTORY workloads/digits/ DESTINATION share/assay/digits)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# Headers include each other from the project's root: add PREFIX/include/assay to the include path.
foreach(folder support simkernel systemc rtl_models workloads golden switchover campaign)
  install(DIRECTORY ${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(FILES "${ASSAY_GENERATED_DIR}/aurum_contract.hpp" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/assay)
