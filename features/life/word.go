package life

// WitnessFile is the file of a claim's Ignition that says where the witness is.
const WitnessFile = "/etc/witness"

// HostnameFile is the file of a claim's Ignition with the machine's name.
const HostnameFile = "/etc/hostname"

// A Word is what a machine tells the witness, again and again while its system runs.
// The answer is an order, "" for none.
type Word struct {
	UUID         string // of the machine
	Hostname     string
	From         string // FromNetwork or FromDisk
	Installation string // the ID of what it runs
	Boot         string // another one after each start
	RootBytes    int64  // of its root filesystem; 0 = it does not say
}

// Where a system was started from.
const (
	FromNetwork = "network"
	FromDisk    = "disk"
)

// OrderRestart has a system restart its machine, as a person in it might.
const OrderRestart = "restart"
