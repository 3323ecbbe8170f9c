// Package conversation remembers what network cards asked of this process, and what became of
// it: DHCP, TFTP, boot files by HTTP and reports, in one order for each card.
//
// It is an observation for people who look for why a machine does not boot. Nothing is decided
// by it, and it ends with the process. Its memory is bounded whatever the network sends, and
// cards that were served something are not forgotten for the sake of those that never were.
package conversation
