package features

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/cucumber/godog"

	"ingot/model"
)

// tenant is one who has a folder.
type tenant struct{ name, namespace, rack string }

func (t tenant) folder() string { return "claims/" + t.name }

func theTenants(ctx context.Context, restart string, table *godog.Table) error {
	w := siteOf(ctx)
	if err := known(table, "TENANT", "NAMESPACE", "RACK"); err != nil {
		return err
	}
	w.tenants = nil
	for _, row := range rows(table) {
		w.tenants = append(w.tenants, tenant{row["TENANT"], cmp.Or(row["NAMESPACE"], row["TENANT"]), row["RACK"]})
	}
	if restart != "" {
		return restartIngot(ctx)
	}
	return nil
}

func (w *site) tenantSettings() string {
	if len(w.tenants) == 0 {
		return ""
	}
	settings := `, tenants: [{path: ".", kinds: ["*"], namespaces: ["*"]}`
	for _, t := range w.tenants {
		settings += fmt.Sprintf(", {path: %q, namespaces: [%q]", t.folder(), t.namespace)
		if t.rack != "" {
			settings += fmt.Sprintf(", servers: {matchLabels: {rack: %q}}", t.rack)
		}
		settings += "}"
	}
	return settings + "]"
}

// registrySettings are the hosts of images that have to be named: all of them where there are
// tenants, and those on this machine where URLs lead.
func (w *site) registrySettings() string {
	switch {
	case w.publish != nil:
		return fmt.Sprintf(", allowedRegistries: [%q, %q]", w.imagesSeen.host(), w.publish.host())
	case len(w.tenants) > 0:
		return fmt.Sprintf(", allowedRegistries: [%q]", w.imagesSeen.host())
	}
	return ""
}

func (w *site) folders() map[string]string {
	folders := make(map[string]string)
	for _, t := range w.tenants {
		folders[t.folder()] = t.namespace
	}
	return folders
}

func commitClaimBelow(ctx context.Context, claim, tenant string) error {
	w := siteOf(ctx)
	if err := w.claim(map[string]string{"CLAIM": claim}); err != nil {
		return err
	}
	return w.commit(map[string]string{"claims/" + tenant + "/taken.yaml": w.claimFile(claim)}, "take "+claim)
}

func commitBMCBelow(ctx context.Context, name, tenant, secret string) error {
	w := siteOf(ctx)
	at := w.stranger.Addr().(*net.TCPAddr)
	file := "claims/" + tenant + "/" + name + ".yaml"
	bmc := strangersBMC(name, "https", at.IP.String(), at.Port, secret)
	return w.commit(map[string]string{file: text(bmc)}, "add a BMC")
}

func commitUnreadableBelow(ctx context.Context, tenant string) error {
	files := map[string]string{"claims/" + tenant + "/broken.yaml": "kind: ServerClaim\nmetadata: [\n"}
	return siteOf(ctx).commit(files, "break a file")
}

func strangersBMC(name, scheme, host string, port int, secret string) map[string]any {
	o := object(model.KindBMC, name, nil)
	s := spec(o)
	s["access"] = map[string]any{"ip": host}
	s["bmcSecretRef"] = map[string]any{"name": secret}
	s["protocol"] = map[string]any{"name": "Redfish", "scheme": scheme, "port": port}
	return o
}

func bmcsAreIn(ctx context.Context, network string) error {
	siteOf(ctx).bmcNetworks = fmt.Sprintf("networks: [%q], ", network)
	return nil
}

func bmcsAnywhere(ctx context.Context) error {
	siteOf(ctx).bmcNetworks = ""
	return nil
}

// stranger is a host that is none of the fleet's, and notes who connects.
type stranger struct {
	net.Listener
	calls atomic.Int64
}

func strangerListens(ctx context.Context, host string) error {
	w := siteOf(ctx)
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return err
	}
	s := &stranger{Listener: l}
	w.stranger = s
	w.clients = append(w.clients, func() { _ = s.Close() })
	go func() {
		for {
			conn, err := s.Accept()
			if err != nil {
				return
			}
			s.calls.Add(1)
			_ = conn.Close() // it has heard enough
		}
	}()
	return nil
}

// commitLeadingAway commits a BMC with the password of another: at the stranger's port.
func commitLeadingAway(ctx context.Context, name, scheme, host, secret string) error {
	w := siteOf(ctx)
	port := w.stranger.Addr().(*net.TCPAddr).Port
	return w.commit(map[string]string{bmcPath(name): text(strangersBMC(name, scheme, host, port, secret))}, "add BMC "+name)
}

func imageAtStranger(ctx context.Context, name string) error {
	w := siteOf(ctx)
	w.image[name] = w.stranger.Addr().String() + "/images/" + name + ":1"
	return nil
}

// toldStrangerNothing waits until Ingot has spoken with its BMCs, and with nobody else.
func toldStrangerNothing(ctx context.Context) error {
	w := siteOf(ctx)
	spoken := slices.DeleteFunc(sortedKeys(w.bmcs), func(b string) bool { return w.bmcs[b].Requests() == 0 })
	if err := w.lookedAt(spoken...); err != nil {
		return err
	}
	if n := w.stranger.calls.Load(); n > 0 {
		return fmt.Errorf("the stranger was called %d times", n)
	}
	if strings.Contains(w.log.text(), bmcPassword) {
		return errors.New("the log holds the password")
	}
	return nil
}
