// Package gpt reads and writes partition tables: GUID partition tables (UEFI specification 2.10
// §5.3) and master boot records (§5.2.1). It works on bytes, and asks no device anything.
package gpt
