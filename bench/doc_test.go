// Package bench_test times what no single package can: the host, the program as a
// process, and the tasks that other programs were timed on. docs/benchmarks.md has the
// results; the benchmarks of single packages stand beside their code.
package bench_test
