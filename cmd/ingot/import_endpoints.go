package main

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/model"
	"ingot/model/text"
)

type importEndpointsCommand struct {
	File      string `arg:"" help:"CSV file with the columns mac,ip,name; - is standard input."`
	Into      string `type:"path" default:"endpoints" placeholder:"DIR" help:"The folder for the manifests; created if it does not exist. Default: ${default}."`
	Overwrite bool   `help:"Overwrite manifests of the same names that differ."`
}

// Help implements kong.HelpProvider.
func (importEndpointsCommand) Help() string {
	return `Creates an Endpoint for each line of a CSV file, so that Ingot reserves the address for the device with this MAC address. The line mac,ip,name at the top is optional, lines that begin with # are ignored, and a name may be empty: it is then made from the address. An error in any line is reported with its number, and nothing is written. A MAC address may have several lines, one for each subnet. docs/networks.md has the commands that make the file from Kea, dnsmasq and ISC dhcpd.

Examples:

  echo 02:00:00:00:00:01,192.0.2.11,switch | ingot import endpoints -
  ingot import endpoints leases.csv --into fleet/endpoints`
}

// importedEndpoints is the result of an import, for programs.
type importedEndpoints struct {
	Dir       string   `json:"dir"`
	Written   []string `json:"written"`
	Unchanged []string `json:"unchanged"`
}

// Run writes a manifest for each line of the CSV file.
func (i importEndpointsCommand) Run(c *console) error {
	in := c.in
	if i.File != "-" {
		f, err := os.Open(i.File)
		if err != nil {
			return err
		}
		defer f.Close() // read only: nothing is lost
		in = f
	}
	files, err := endpointsOf(displayName(i.File), in)
	if err != nil {
		return fmt.Errorf("nothing was written:\n%w", err)
	}
	done, err := i.write(files)
	if err != nil {
		return err
	}
	if c.json() {
		return c.printJSON(done)
	}
	c.printf("%s written to %s; %d unchanged.\n", text.Plural(len(done.Written), "Endpoint"), i.Into, len(done.Unchanged))
	c.printf("\nNext: ingot validate, commit and push. Ingot reserves the addresses once it has read the commit.\n")
	return nil
}

// endpointsOf returns a manifest for each line of a CSV file, by file name.
func endpointsOf(file string, in io.Reader) (map[string]string, error) {
	t := endpointTable{file: file, manifests: make(map[string]string), lines: make(map[string]int)}
	r := csv.NewReader(in)
	r.FieldsPerRecord, r.Comment, r.TrimLeadingSpace = 3, '#', true
	for {
		row, err := r.Read()
		var syntax *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if len(t.lines) == 0 && len(t.problems) == 0 {
				t.wrong(0, "", "no line with mac,ip,name")
			}
			return t.manifests, model.JoinErrors(t.problems)
		case errors.As(err, &syntax):
			t.wrong(syntax.Line, "", syntax.Err.Error()+", want mac,ip,name")
		case err != nil:
			return nil, err
		case !strings.EqualFold(row[0], "mac"): // the header, also of a file that was appended
			line, _ := r.FieldPos(0)
			t.add(line, strings.TrimSpace(row[0]), strings.TrimSpace(row[1]), strings.ToLower(strings.TrimSpace(row[2])))
		}
	}
}

// endpointTable collects the Endpoints of a CSV file.
type endpointTable struct {
	file      string
	manifests map[string]string // by file name
	lines     map[string]int    // of each IP address and name
	problems  []model.Problem
}

func (t *endpointTable) wrong(line int, field, message string) {
	t.problems = append(t.problems, model.Problem{Severity: model.SeverityError, File: t.file, Line: line, Field: field, Message: message})
}

// add adds the Endpoint of a line. The rules for its fields are those for manifests.
func (t *endpointTable) add(line int, mac, ip, name string) {
	if name == "" {
		name = "dhcp-" + strings.Trim(strings.NewReplacer(".", "-", ":", "-").Replace(strings.ToLower(ip)), "-")
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": model.APIVersion, "kind": model.KindEndpoint, "metadata": map[string]any{"name": name},
		"spec": map[string]any{"ip": ip, "macAddress": mac},
	})
	if err != nil {
		t.wrong(line, "", err.Error())
		return
	}
	objects, problems := model.Decode(t.file, data, model.DecodeOptions{})
	for _, p := range problems {
		t.wrong(line, p.Field[strings.LastIndexByte(p.Field, '.')+1:], p.Message)
	}
	if len(objects) == 0 {
		return
	}
	e := objects[0].(*model.Endpoint)
	for _, value := range []string{e.Spec.IP, e.Name} {
		if before, twice := t.lines[value]; twice {
			t.wrong(line, "", fmt.Sprintf("%q is already in line %d", value, before))
		}
		t.lines[value] = line
	}
	t.manifests[e.Name+".yaml"] = string(data)
}

// write writes manifests. Without Overwrite it writes none if a file of the same name differs.
func (i importEndpointsCommand) write(files map[string]string) (done importedEndpoints, err error) {
	done = importedEndpoints{Dir: i.Into, Written: []string{}, Unchanged: []string{}}
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := filepath.Join(i.Into, name)
		old, err := os.ReadFile(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			done.Written = append(done.Written, name)
		case err != nil:
			return done, err
		case bytes.Equal(old, []byte(files[name])):
			done.Unchanged = append(done.Unchanged, name)
		default:
			differ, done.Written = append(differ, path), append(done.Written, name)
		}
	}
	if len(differ) > 0 && !i.Overwrite {
		return done, fmt.Errorf("nothing was written: these files exist and differ; check them, and use --overwrite to replace them:\n%s", strings.Join(differ, "\n"))
	}
	for _, path := range differ {
		if err := os.Remove(path); err != nil { // a link is replaced, not its target
			return done, err
		}
	}
	for _, name := range done.Written {
		if err := writeNewFile(filepath.Join(i.Into, name), files[name]); err != nil {
			return done, err
		}
	}
	return done, nil
}
