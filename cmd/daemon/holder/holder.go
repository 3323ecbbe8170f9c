// Package holder finds out whether the Ingot that wrote the status branch last may be alive.
//
// A second Ingot with a store of its own must not begin while the first acts. At most starts
// there is no second one: the process was restarted, or the machine lost power. The
// first is identified by its published values (its ID, its machine, the machine's boot and
// its network namespace) and by a name that each Ingot holds for as long as it lives.
package holder

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"

	"ingot/model"
)

// Where Linux tells what an Ingot publishes of itself.
const (
	machineFile   = "/etc/machine-id"
	bootFile      = "/proc/sys/kernel/random/boot_id"
	namespaceFile = "/proc/self/ns/net"
)

// maxIdentity bounds what is read of such a file.
const maxIdentity = 256

// ThisHolder describes this process, with a new random ID.
func ThisHolder() (model.Holder, error) {
	host, err := os.Hostname()
	if err != nil {
		return model.Holder{}, fmt.Errorf("name of this machine: %w", err)
	}
	namespace, err := os.Readlink(namespaceFile)
	if err != nil {
		namespace = ""
	}
	return model.Holder{
		ID: strings.ToLower(rand.Text()), Host: host,
		Machine: digest("machine", read(machineFile)), Boot: digest("boot", read(bootFile)), Namespace: digest("namespace", namespace),
	}, nil
}

// read returns what a file says, "" if it cannot be read.
func read(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxIdentity))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// digest makes text fit to be published: a machine ID is not to be shown, see
// machine-id(5). Without text it is "".
func digest(what, text string) string {
	if text == "" || text == "uninitialized" { // machine-id(5), "First boot semantics"
		return ""
	}
	sum := sha256.Sum256([]byte("ingot " + what + "\x00" + text))
	return hex.EncodeToString(sum[:16])
}
