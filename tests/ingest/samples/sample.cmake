# The shop.
cmake_minimum_required(VERSION 3.20)
project(Shop LANGUAGES C)
include(cmake/Helpers.cmake)
add_subdirectory(src)
set(SOURCES main.c item.c)
option(WITH_TESTS "Build tests" ON)

# Adds a part.
function(add_part NAME)
  add_library(${NAME} STATIC ${ARGN})
  set(local_one 1)
  set(seen_outside 1 PARENT_SCOPE)
endfunction()

macro(with_flags)
  add_compile_options(-Wall)
  set(flags_added ON)
endmacro()

add_part(item item.c)
add_executable(shop ${SOURCES})
target_link_libraries(shop PRIVATE item)
add_custom_target(docs COMMAND doxygen)
