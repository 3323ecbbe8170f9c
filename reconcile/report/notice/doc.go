// Package notice decides what a receiver of notices is told, of what stands and what it was
// told before. It is arithmetic: it sends nothing and has no clock.
package notice
