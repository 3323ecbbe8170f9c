// Package bench measures what a whole fleet costs: the real daemon in a process of
// its own, against a simulated rack in this one.
//
//	go test ./features/bench -run '^$' -bench Fleet -benchtime 1x
//
// Each figure stands beside its goal, and beside what the same work costs at the
// least, measured in the same run: a bare HTTP client that asks such a rack for the
// same facts. The machines differ, so the ratio tells more than the figure. A goal
// that is missed is marked and fails nothing.
//
// FLEET_BENCH_PROGRAM names another build to measure, such as one with a profiler.
package bench
