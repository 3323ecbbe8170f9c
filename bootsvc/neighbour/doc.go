// Package neighbour says which Ethernet address answers for an IP address on a link of
// this machine, as the kernel's neighbour table has it, and which others did a little
// while ago.
//
// Nobody has to lease an address for that, and no client can say anything of it by the
// way: the answer to its request goes to that Ethernet address. But the table believes
// every ARP reply and neighbour advertisement (RFC 826, RFC 4861), so a client can be
// taken for another for a moment. Table receives each change, and reports what an address
// was within Memory.
package neighbour
