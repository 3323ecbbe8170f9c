package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ingot/cmd/ingot/dhcpimport"
	"ingot/model"
	"ingot/model/text"
)

type importDHCPCommand struct {
	From      dhcpimport.Server `required:"" enum:"kea,dnsmasq,dhcpd" placeholder:"SERVER" help:"Whose files they are: kea, dnsmasq or dhcpd."`
	Into      string            `type:"path" default:"endpoints" placeholder:"DIR" help:"The folder for the manifests; created if it does not exist. Default: ${default}."`
	Overwrite bool              `help:"Overwrite manifests of the same names that differ."`
	Paths     []string          `arg:"" name:"path" type:"existingpath" help:"Configuration and lease files; for a folder, all files in it."`
}

// Help implements kong.HelpProvider.
func (importDHCPCommand) Help() string {
	return `Creates an Endpoint for each reservation and each lease that has not expired, so that Ingot gives each device the address that it has now and gives that address to nobody else. What is left out is listed with the reason. Commit the folder before Ingot serves the network. See docs/networks.md.

Kea: kea-dhcp4.conf (comments allowed), kea-dhcp6.conf, kea-leases4.csv and kea-leases6.csv with their .1 and .2, and the answers to config-get, reservation-get-all, lease4-get-all, lease6-get-all and their -get-page. dnsmasq: dnsmasq.conf, the files of conf-dir and dhcp-hostsfile, dnsmasq.leases. dhcpd: dhcpd.conf, dhcpd.leases and dhcpd6.leases.

Examples:

  ingot import dhcp --from kea /etc/kea/kea-dhcp4.conf /var/lib/kea/kea-leases4.csv*
  ingot import dhcp --from dnsmasq /etc/dnsmasq.conf /etc/dnsmasq.d /var/lib/misc/dnsmasq.leases --into fleet/endpoints
  ingot -o json import dhcp --from dhcpd /etc/dhcp/dhcpd.conf /var/lib/dhcp/dhcpd.leases | jq .leftOut`
}

// importedDHCP is what became of the files of a DHCP server, for programs.
type importedDHCP struct {
	Dir       string               `json:"dir"`
	Reserved  int                  `json:"reserved"`
	Leased    int                  `json:"leased"`
	Written   []string             `json:"written"`
	Unchanged []string             `json:"unchanged"`
	LeftOut   []dhcpimport.LeftOut `json:"leftOut"`
	Notes     []string             `json:"notes"`
}

// Run makes manifests of the files of a DHCP server.
func (i importDHCPCommand) Run(c *console) error {
	there, err := i.there()
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	r, err := dhcpimport.Convert(i.From, i.Paths, there, time.Now())
	if err != nil {
		return fmt.Errorf("nothing was written: %w", err)
	}
	if len(r.Files)+len(r.Same) == 0 {
		if !c.json() {
			i.printLeftOut(c, r.LeftOut)
		}
		return errors.New("nothing was written: there is no reservation and no lease in it that Ingot has a use for")
	}
	done, err := i.write(r.Files)
	if err != nil {
		return err
	}
	done.Dir, done.Reserved, done.Leased = i.Into, r.Reserved, r.Leased
	done.Unchanged = append(done.Unchanged, r.Same...)
	done.LeftOut = append([]dhcpimport.LeftOut{}, r.LeftOut...)
	done.Notes = append([]string{}, contradictions(i.files(r.Files))...)
	if c.json() {
		return c.printJSON(done)
	}
	i.print(c, done)
	return nil
}

// there are the Endpoints in the folder.
func (i importDHCPCommand) there() (all []model.Object, err error) {
	files, err := filepath.Glob(filepath.Join(i.Into, "*.yaml"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		objects, _ := model.Decode(file, data, model.DecodeOptions{}) // what is wrong, ingot validate says
		all = append(all, objects...)
	}
	return all, err
}

// files are manifests by their paths.
func (i importDHCPCommand) files(files map[string]string) map[string]string {
	all := make(map[string]string, len(files))
	for name, data := range files {
		all[filepath.Join(i.Into, name)] = data
	}
	return all
}

// write writes manifests. None is written if one that is there would be overwritten and may not.
func (i importDHCPCommand) write(files map[string]string) (done importedDHCP, err error) {
	done.Written, done.Unchanged = []string{}, []string{}
	var there []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(i.Into, name)
		is, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			done.Written = append(done.Written, name)
		case err != nil:
			return done, err
		case bytes.Equal(is, []byte(files[name])):
			done.Unchanged = append(done.Unchanged, name)
		default:
			there, done.Written = append(there, path), append(done.Written, name)
		}
	}
	if len(there) > 0 && !i.Overwrite {
		return done, fmt.Errorf("nothing was written: these are there already, and are otherwise. Look at them, and say --overwrite:\n%s", strings.Join(there, "\n"))
	}
	for _, name := range done.Written {
		path := filepath.Join(i.Into, name)
		if slices.Contains(there, path) {
			if err := os.Remove(path); err != nil { // of a link, what it leads to stays
				return done, err
			}
		}
		if err := writeNewFile(path, files[name]); err != nil {
			return done, err
		}
	}
	return done, nil
}

func (i importDHCPCommand) print(c *console, done importedDHCP) {
	c.printf("%s written to %s, of %s and %s; %d are there already.\n", text.Plural(len(done.Written), "Endpoint"),
		i.Into, text.Plural(done.Reserved, "reservation"), text.Plural(done.Leased, "lease"), len(done.Unchanged))
	i.printLeftOut(c, done.LeftOut)
	printList(c, "Look at this before you commit them:", len(done.Notes), func(n int) string { return done.Notes[n] })
	c.printf("\nNext: ingot validate, commit and push. Ingot reserves the addresses once it has read the commit.\n")
}

// maxShown bounds what is printed of what is left out; -o json has all.
const maxShown = 100

// printLeftOut says what no manifest was made of, and why.
func (i importDHCPCommand) printLeftOut(c *console, all []dhcpimport.LeftOut) {
	title := fmt.Sprintf("Left out (%d):", len(all))
	printList(c, title, min(len(all), maxShown), func(n int) string { return all[n].Where + ": " + all[n].What + ": " + all[n].Why })
	if len(all) > maxShown {
		c.printf("  and %d more: -o json has all\n", len(all)-maxShown)
	}
}
