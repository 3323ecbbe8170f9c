package features

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/cucumber/godog"

	"ingot/features/internal/rig"
)

func (w *site) databaseFile() string { return filepath.Join(w.dir, "mac-prefixes.yaml") }

// wrongPassword begins all passwords that no BMC takes. They are secrets, too: they
// may open the BMC of somebody else.
const wrongPassword = "open-sesame"

// bmcPorts numbers BMCs' ports: sites share addresses, and the kernel gives ports from 32768 on.
var bmcPorts atomic.Int32

func theDatabase(ctx context.Context, table *godog.Table) error {
	if err := known(table, "PREFIX", "PASSWORDS"); err != nil {
		return err
	}
	w := siteOf(ctx)
	w.bmcPort = strconv.Itoa(20000 + int(bmcPorts.Add(1)))
	text := "macPrefixes:\n"
	for _, row := range rows(table) {
		text += fmt.Sprintf("- {macPrefix: %q, manufacturer: Ingot, protocol: Redfish, protocolScheme: https, port: %s, "+
			"type: bmc, defaultCredentials: [", row["PREFIX"], w.bmcPort)
		for i, p := range names(row["PASSWORDS"]) {
			password, ok := map[string]string{"right": bmcPassword, "wrong": fmt.Sprintf("%s-%s-%d", wrongPassword, row["PREFIX"], i)}[p]
			if !ok {
				return fmt.Errorf("a password is right or wrong, not %q", p)
			}
			text += fmt.Sprintf("{username: admin, password: %q}, ", password)
		}
		text += "]}\n"
	}
	return os.WriteFile(w.databaseFile(), []byte(text), 0o600)
}

func withoutDatabase(ctx context.Context) error {
	if err := os.Remove(siteOf(ctx).databaseFile()); err != nil {
		return err
	}
	return restartIngot(ctx)
}

func (w *site) prefixes() string {
	if _, err := os.Stat(w.databaseFile()); err != nil {
		return ""
	}
	return w.databaseFile()
}

func passwordsRefused(ctx context.Context, number, name string) error {
	want := map[string]int{"no": 0, "one": 1}[number]
	if n, err := strconv.Atoi(number); err == nil {
		want = n
	}
	return rig.Within(patience, func() error {
		x, err := explain(ctx, "endpoint", siteOf(ctx).called(name))
		if err != nil {
			return err
		}
		_, rest, _ := strings.Cut(x, "credentials refused: ")
		if got := cmp.Or(strings.SplitN(rest, "\n", 2)[0], "0"); got != strconv.Itoa(want) {
			return fmt.Errorf("%s passwords were refused, not %d:\n%s", got, want, x)
		}
		return nil
	})
}
