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
// BenchmarkRequests counts what is asked of each BMC, from the first request to a claimed server that is Booted, for
// the simulator's personalities and for the recordings of BMCs in the folder INGOT_MOCKUPS. The daemon has the shipped
// intervals, and the claims are in Git from the start.
//
//	go test ./features/bench -run '^$' -bench Requests -benchtime 1x
//
// FLEET_BENCH_PROGRAM names another build to measure, such as one with a profiler.
package bench
