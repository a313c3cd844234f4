# SPDX-License-Identifier: GPL-2.0-only
#
# Included before project(): what was compiled before, in any checkout, is not compiled
# again. ccache keeps it where it always does (ccache --show-config); without ccache, or
# with a launcher given by -D, nothing changes.
find_program(CCACHE ccache)
if(CCACHE)
	get_filename_component(CHECKOUT ${CMAKE_CURRENT_LIST_DIR}/.. ABSOLUTE)
	foreach(LANGUAGE C CXX)
		set(CMAKE_${LANGUAGE}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
			CCACHE_BASEDIR=${CHECKOUT} CCACHE_NOHASHDIR=1 ${CCACHE}
			CACHE STRING "runs the compiler")
	endforeach()
endif()
