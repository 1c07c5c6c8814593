# What `cmake --install` leaves: lib/libhidet_runtime.so, lib/libhidet.so and, beside them, the plugins that they open at run
# time; bin/hidet; include/hidet of every layer; lib/cmake/hidet for find_package(hidet CONFIG).
# Needs: all targets declared (the top CMakeLists.txt includes this last).
include(CMakePackageConfigHelpers)

set(libraries hidet_runtime)
set(layers runtime)
if(TARGET hidet)
  list(APPEND libraries hidet)
  get_property(upper_layers GLOBAL PROPERTY HIDET_LAYERS)
  list(APPEND layers ${upper_layers})
  target_compile_features(hidet INTERFACE cxx_std_20)
  set_target_properties(hidet PROPERTIES EXPORT_NAME hidet)
endif()
set_target_properties(hidet_runtime PROPERTIES EXPORT_NAME runtime)
set_target_properties(${libraries} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
install(TARGETS ${libraries} EXPORT hidetTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

get_property(plugins GLOBAL PROPERTY HIDET_PLUGINS)
if(plugins)
  install(TARGETS ${plugins} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
get_property(programs GLOBAL PROPERTY HIDET_PROGRAMS)
if(programs)
  install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

list(REMOVE_DUPLICATES layers)
foreach(layer ${layers})
  if(EXISTS ${CMAKE_SOURCE_DIR}/${layer}/include)
    install(DIRECTORY ${layer}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
            FILES_MATCHING PATTERN "*.h" PATTERN "*.inc")
  endif()
endforeach()

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/hidet)
install(EXPORT hidetTargets NAMESPACE hidet:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/hidetConfig.cmake.in ${CMAKE_BINARY_DIR}/hidetConfig.cmake
                              INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hidetConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hidetConfig.cmake ${CMAKE_BINARY_DIR}/hidetConfigVersion.cmake
        DESTINATION ${package_folder})
