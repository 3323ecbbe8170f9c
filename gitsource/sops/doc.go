// Package sops opens files that SOPS encrypted for age, in memory.
//
// SOPS leaves names in the clear and encrypts values one by one, each bound to the names
// that lead to it; a code over all values (mac) shows whether anything else was changed. What
// is read is what the program sops writes since version 3, for age recipients: no key groups,
// no other kinds of keys, and no files that leave clear-text values out of the code.
package sops
