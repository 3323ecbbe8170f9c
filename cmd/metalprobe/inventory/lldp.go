package inventory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"time"

	"ingot/model"
)

// lldpctl asks the LLDP daemon. The format json0 is the regular one; a daemon
// too old for it has json.
func lldpctl(ctx context.Context) ([]byte, error) {
	path, err := exec.LookPath("lldpctl")
	if err != nil {
		return nil, ErrNoLLDP
	}
	out, err := output(ctx, path, "-f", "json0")
	if err != nil {
		out, err = output(ctx, path, "-f", "json")
	}
	return out, err
}

// output runs a program that must end soon and may print some megabytes.
func output(ctx context.Context, path string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var out, stderr bounded
	c := exec.CommandContext(ctx, path, args...)
	c.Stdout, c.Stderr = &out, &stderr
	c.WaitDelay = time.Second
	if err := c.Run(); err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", path, err, clean(stderr.String()))
	}
	return out.Bytes(), nil
}

// bounded keeps the first maxFile bytes of what is written and drops the rest.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), maxFile-b.Len())])
	return len(p), nil
}

// Neighbors returns the LLDP neighbours seen at present.
func (h *Host) Neighbors(ctx context.Context) ([]model.ProbeLLDP, error) {
	out, err := h.LLDP(ctx)
	if err != nil {
		return nil, err
	}
	return parseNeighbors(out)
}

// parseNeighbors reads lldpctl's JSON. Its two formats differ, and within one of
// them a thing is an object, a list of objects or a bare string depending on how
// many there are and which fields they have.
func parseNeighbors(out []byte) ([]model.ProbeLLDP, error) {
	var document any
	if err := json.Unmarshal(out, &document); err != nil {
		return nil, fmt.Errorf("read lldpctl's answer: %w", err)
	}
	lldp := node{document}.get("lldp")
	if lldp.value == nil {
		return nil, errors.New("read lldpctl's answer: it has no lldp object")
	}
	byName := make(map[string][]model.ProbeNeighbor)
	for _, p := range lldp.ports() {
		byName[p.name] = append(byName[p.name], p.neighbor())
	}
	list := []model.ProbeLLDP{}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, model.ProbeLLDP{Name: name, Neighbors: byName[name]})
	}
	return list, nil
}

// node is a JSON value that may be one thing or a list of things.
type node struct{ value any }

// all returns the things of a list, or the one thing.
func (n node) all() []node {
	switch v := n.value.(type) {
	case nil:
		return nil
	case []any:
		var all []node
		for _, one := range v[:min(len(v), maxEntries)] {
			all = append(all, node{one})
		}
		return all
	default:
		return []node{n}
	}
}

// get returns a field of the first thing that has it.
func (n node) get(key string) node {
	for _, one := range n.all() {
		if object, ok := one.value.(map[string]any); ok && object[key] != nil {
			return node{object[key]}
		}
	}
	return node{}
}

// text returns a string as it stands, bare or as the value of an object.
func (n node) text() string {
	switch v := n.value.(type) {
	case string:
		return clean(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		for _, one := range n.all() {
			if s := one.text(); s != "" {
				return s
			}
		}
	case map[string]any:
		return node{v["value"]}.text()
	}
	return ""
}

// port is what lldpctl reports of one interface and one neighbour there.
type port struct {
	name string
	node
}

// ports lists the neighbours by interface. The format json0 names the interface in a
// field, json has it as the key.
func (n node) ports() []port {
	var list []port
	for _, i := range n.get("interface").all() {
		object, ok := i.value.(map[string]any)
		if !ok {
			continue
		}
		if name, ok := object["name"].(string); ok {
			list = append(list, port{clean(name), i})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(object)) {
			for _, one := range (node{object[name]}).all() {
				list = append(list, port{clean(name), one})
			}
		}
	}
	return list[:min(len(list), maxEntries)]
}

func (p port) neighbor() model.ProbeNeighbor {
	name, chassis := p.chassis()
	return model.ProbeNeighbor{
		ChassisID:         chassis.get("id").text(),
		PortID:            p.get("port").get("id").text(),
		PortDescription:   p.get("port").get("descr").text(),
		SystemName:        name,
		SystemDescription: chassis.get("descr").text(),
	}
}

// chassis returns the neighbour and its name, which json has as a key when the
// neighbour has one.
func (p port) chassis() (string, node) {
	chassis := p.get("chassis")
	object, ok := chassis.value.(map[string]any)
	if ok && len(object) == 1 {
		for name, inner := range object {
			if _, named := inner.(map[string]any); named && name != "id" {
				return clean(name), node{inner}
			}
		}
	}
	return chassis.get("name").text(), chassis
}
