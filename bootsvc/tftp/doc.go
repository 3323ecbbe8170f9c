// Package tftp serves boot loaders to firmware by TFTP (RFC 1350), to read only and
// on one port, with the options of RFC 2347: blksize (RFC 2348), tsize (RFC 2349) and
// windowsize (RFC 7440).
//
// One goroutine reads the socket, by calls that block and take all packets that wait. A
// transfer is known by its client's address and port, and an acknowledgement is answered with
// the next block by the goroutine that read it, together with the others that it read: to
// wake another one for each block takes longer than all the rest.
// What may block or panic is left to a goroutine of each transfer, which opens the file
// and reads it ahead, some blocks at a time: a slow disk holds up nobody else, and no
// more of a file is in memory than its client is about to ask for. A file that is in memory
// anyway is sent from there.
// A ticker sends again what is not acknowledged in time, and gives clients up.
//
// A source address can be forged, so one that has acknowledged nothing is sent one
// packet for each that came from it, and no more. The option timeout (RFC 2349) is not
// granted: a client may ask for minutes, for which a forged request would take a place.
package tftp
