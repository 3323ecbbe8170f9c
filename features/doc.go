// Package features is what Ingot promises, in the words of the people who use
// it, and the steps that hold the real program to it.
//
// Each scenario has a site of its own: a simulated rack (bmc/sim), a Git
// repository, an OCI registry, a store, and the ingot program, built from this
// tree and run as a child process, which scenarios kill and start again. Between
// the machines and Ingot stands a gate with an address that does not change, as
// a load balancer or a service address would be; it refuses machines while Ingot is
// down, and sees what they are served. After each scenario an independent bookkeeper
// says what was done to machines that no commit named, see package ledger.
//
// The whole suite runs twice, with the embedded store and with redis-server. To
// work on one scenario, name it in the environment, and repeat what was left to
// chance by the seed that its failure showed:
//
//	FEATURES=crash.feature FEATURES_SEED=42 go test ./features -run Redis
//
// Scenarios tagged @long are variants of others. On the embedded store they run only
// with FEATURES_LONG=1, as "make test-long" does.
//
// Two proofs are beside the scenarios. Kill points: the program kills itself at each
// effect and save of a claim's life, a sample of them unless all are asked for. The
// walk: whatever may be done to the program, in an order left to chance.
//
//	KILLPOINTS=all go test ./features -run KillPoints
//	WALK=200 go test -timeout 25m ./features -run Walk
//	WALK=1 WALK_SEED=42 go test ./features -run Walk
package features
