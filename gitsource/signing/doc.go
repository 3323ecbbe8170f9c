// Package signing verifies the signatures of commits and tags against a folder of keys
// that may sign, and signs commits. Both are done as Git does them: OpenPGP, and SSH with
// the namespace "git". It knows neither repositories nor what a signature is good for.
package signing
