// Package lease knows who has which address or delegated prefix. It decides, in memory,
// what a client is given (Table), and makes what was decided durable (Committer). It
// knows no packet: package dhcp reads what clients ask, and tells them the answer.
//
// A lease is promised only once it is durable. Leases are stored in groups (see
// Committer), so that a store that takes milliseconds serves thousands of clients a
// second. While the store is away, what was promised before is prolonged from memory,
// and nothing new is promised.
//
// A lease belongs to a MAC address, not to a client identifier or DUID: firmware,
// iPXE and the operating system of one machine each show another. It ends early when
// all identity associations of the client that asked last have given it back.
package lease
