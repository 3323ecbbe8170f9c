//go:build !race

package testtool

// RaceDetector is set in tests that run with the race detector.
const RaceDetector = false
