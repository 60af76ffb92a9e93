#!/bin/sh
# Runs a program of tests for `go test -exec`, and adds to the file CPU_TIMES how many seconds of processor time it and all that it
# started took, and the package.
"$@"
status=$?
times >"$CPU_TIMES.$$"
awk -v package="$PWD" 'NR == 2 { gsub(/[ms]/, " "); printf "%.1f %s\n", 60 * ($1 + $3) + $2 + $4, package }' "$CPU_TIMES.$$" >>"$CPU_TIMES"
rm "$CPU_TIMES.$$"
exit $status
