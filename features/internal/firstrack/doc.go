// Package firstrack does what docs/first-rack.md says, as a person does who reads it: the
// commands of the page as they stand there, one after the other and nothing else, on a
// machine of its own with one QEMU virtual machine.
//
// That machine is this one as far as its files go, but what is written there is thrown away,
// and its network is a namespace without a way out. So packages have to be installed here,
// as .ci/setup does; apt-get, which the page begins with, then finds nothing to fetch.
package firstrack
