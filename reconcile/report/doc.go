// Package report says what is so: what the status branch shows, and with it `ingot
// status`, `ingot explain` and the API. It is a function of what was planned for and what
// was planned, decides nothing, and reads back what it wrote.
package report
