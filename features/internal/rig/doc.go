// Package rig is what tests with real parts are built from: network namespaces that
// stand for machines, programs that run in them, the ingot program built from this
// tree, a simulated rack with QEMU virtual machines, and images for them.
//
// What a test made of it ends with the test, and what an interrupted run left behind
// is swept away by the next: TestMain has to call Main for that. It takes root and
// the programs that .ci/setup installs. Need says what is missing; with
// INGOT_LAB=required, as in continuous integration, that is a failure.
package rig
