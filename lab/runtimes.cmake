# Contestants that are other languages' runtimes: a program each, and one worker that starts them. What isn't
# installed is left out with a word.
set(runtimes "${CMAKE_CURRENT_BINARY_DIR}/runtimes")
set(programs "    \"python\": [sys.executable, \"${CMAKE_CURRENT_SOURCE_DIR}/worker/runtimes/events.py\"],\n")
set(built "")

# lab_runtime(LANGUAGE PACKAGE NEEDED SOURCE RESULT COMMAND START): compiles a program, if the NEEDED programs are
# there, and has the worker START it.
function(lab_runtime language package needed source result command start)
    foreach(program IN LISTS needed)
        find_program(lab_program_${program} ${program})
        if(NOT lab_program_${program})
            message(STATUS "Lab: ${language} is left out: needs ${package}")
            return()
        endif()
    endforeach()
    add_custom_command(OUTPUT "${runtimes}/${result}"
        COMMAND ${command} WORKING_DIRECTORY "${runtimes}" DEPENDS "worker/runtimes/${source}"
        COMMENT "Building the runtime contestant of ${language}" VERBATIM)
    list(JOIN start "\", \"" words)
    set(programs "${programs}    \"${language}\": [\"${words}\"],\n" PARENT_SCOPE)
    set(built ${built} "${runtimes}/${result}" PARENT_SCOPE)
endfunction()

file(MAKE_DIRECTORY "${runtimes}")
set(source_folder "${CMAKE_CURRENT_SOURCE_DIR}/worker/runtimes")
lab_runtime(go golang-go go events.go go_events
    "go;build;-o;go_events;${source_folder}/events.go" "${runtimes}/go_events")
lab_runtime(java default-jdk-headless "java;javac" Events.java Events.class
    "javac;-d;.;${source_folder}/Events.java" "java;-XX:+UseSerialGC;-cp;${runtimes};Events")
lab_runtime(mono "mono-mcs and mono-runtime" "mono;mcs" events.cs events.exe
    "mcs;-optimize+;-out:events.exe;${source_folder}/events.cs" "mono;${runtimes}/events.exe")
add_custom_target(tocsin_lab_runtimes ALL DEPENDS ${built})

set(runtimes_worker "${CMAKE_CURRENT_BINARY_DIR}/tocsin_lab_worker_runtimes")
file(CONFIGURE OUTPUT "${runtimes_worker}" @ONLY CONTENT "#!@Python3_EXECUTABLE@
# Made by runtimes.cmake: what is installed here.
import sys

sys.path.insert(0, \"@source_folder@\")
import worker

sys.exit(worker.main({
@programs@}, sys.argv[1:]))
")
file(CHMOD "${runtimes_worker}" PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ WORLD_READ)
