// Package lab holds Ingot to its word with real parts: the ingot program, built
// from this tree, gives leases to the DHCP clients of Debian, through its relays,
// and boots QEMU virtual machines, all of it in network namespaces.
//
// A test builds its world from namespaces, which stand for machines: one for the
// server, one for each client, one for a relay between two links. Interfaces are
// joined by veth and bridges. What the world is made of ends with the test, and
// what an interrupted run left behind is swept away by the next.
//
// The lab needs root and the programs that .ci/setup installs. Without them its
// tests are skipped and say what to install; with INGOT_LAB=required, as in
// continuous integration, they fail instead.
//
// A failure may be the lab's own fault. Run the lease tests against Kea in place
// of Ingot to see:
//
//	INGOT_LAB_SERVER=kea go test ./features/lab -run Lease -v
package lab
