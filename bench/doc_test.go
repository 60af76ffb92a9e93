// Package bench_test has the benchmarks of more than one package: the host, the program as a
// process, and the tasks that other programs were timed on. bench/results/appendix-benchmarks.md has the
// results; the benchmarks of single packages are in those packages.
package bench_test
