// Package reconcile decides what happens to every server, and has it done.
//
// Plan is arithmetic on two snapshots and a time: what Git asks for, what is
// known of the world, and now. It returns at most one Move a server, and has no
// I/O, no clock and no chance in it. Loop is thin: it plans, carries the moves
// out, saves what became of them, and plans again. Status projects the same
// input onto what the status branch shows. Nothing but Plan decides.
package reconcile
