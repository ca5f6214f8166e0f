# Runs libFuzzer for SECONDS from the target's own seeds. A crash leaves its input in FOLDER.
file(REMOVE_RECURSE "${FOLDER}")
execute_process(COMMAND "${SEEDS}" --write-seeds "${FOLDER}/seeds" COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY "${FOLDER}/corpus")
# Timeout and memory of one input; ASan itself takes about twice what the code under test allocates.
execute_process(COMMAND "${FUZZER}" "${FOLDER}/corpus" "${FOLDER}/seeds" -max_total_time=${SECONDS} -timeout=20 -rss_limit_mb=4096
                        -artifact_prefix=${FOLDER}/ -print_final_stats=1 -verbosity=1
                COMMAND_ERROR_IS_FATAL ANY)
