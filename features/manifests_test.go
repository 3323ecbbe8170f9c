package features

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/cucumber/godog"
	"sigs.k8s.io/yaml"

	"ingot/model"
)

func rows(table *godog.Table) []map[string]string {
	var all []map[string]string
	for _, row := range table.Rows[1:] {
		r := make(map[string]string)
		for i, cell := range row.Cells {
			r[table.Rows[0].Cells[i].Value] = cell.Value
		}
		all = append(all, r)
	}
	return all
}

// known refuses a column that no step looks at: it would be believed in.
func known(table *godog.Table, columns ...string) error {
	for _, c := range table.Rows[0].Cells {
		if !slices.Contains(columns, c.Value) {
			return fmt.Errorf("column %s is not known here; there are %s", c.Value, strings.Join(columns, ", "))
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func object(kind model.Kind, name string, labels map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": model.APIVersion, "kind": string(kind),
		"metadata": map[string]any{"name": name, "labels": labels, "annotations": map[string]any{}}, "spec": map[string]any{},
	}
}

const burnInLabel = "burn-in.example.com/passed"

func spec(o map[string]any) map[string]any { return o["spec"].(map[string]any) }

func annotations(o map[string]any) map[string]any {
	return o["metadata"].(map[string]any)["annotations"].(map[string]any)
}

func text(objects ...map[string]any) string {
	var parts []string
	for _, o := range objects {
		data, err := yaml.Marshal(o)
		if err != nil {
			panic(err) // made of maps, strings and numbers
		}
		parts = append(parts, string(data))
	}
	return strings.Join(parts, "---\n")
}

func (w *site) bmcFile(name string, labels map[string]any) string {
	b := w.bmcs[name]
	host, port, _ := net.SplitHostPort(b.Addr())
	number, _ := strconv.Atoi(port)
	o := object(model.KindBMC, name, labels)
	s := spec(o)
	s["access"] = map[string]any{"ip": host, "macAddress": b.MAC()}
	s["bmcSecretRef"] = map[string]any{"name": name}
	s["protocol"] = map[string]any{"name": "Redfish", "scheme": "https", "port": number}
	if w.sealed != "" || w.outside {
		return text(o)
	}
	return text(o, secretOf(name))
}

func secretOf(bmc string) map[string]any {
	secret := object(model.KindBMCSecret, bmc, nil)
	delete(secret, "spec")
	secret["stringData"] = map[string]any{"username": "admin", "password": bmcPassword}
	return secret
}

func (w *site) describe(row map[string]string) error {
	name := row["SERVER"]
	m, err := w.machine(name)
	if err != nil {
		return err
	}
	o := w.servers[name]
	if o == nil {
		o = object(model.KindServer, name, map[string]any{})
		spec(o)["systemUUID"] = m.UUID()
		w.servers[name] = o
	}
	for column, value := range row {
		switch column {
		case "RACK", "SHELF", "LOCATION":
			o["metadata"].(map[string]any)["labels"].(map[string]any)[strings.ToLower(column)] = value
		case "BURN-IN":
			labels := o["metadata"].(map[string]any)["labels"].(map[string]any)
			delete(labels, burnInLabel)
			if value != "" {
				labels[burnInLabel] = value
			}
		case "CORDONED":
			spec(o)["unclaimable"] = value == "yes"
		case "INDICATOR":
			spec(o)["indicatorLED"] = value
		case "BOOTS FIRST":
			spec(o)["bootOrder"] = []any{map[string]any{"name": "first", "priority": 1, "device": value}}
		case "RECLAIM":
			spec(o)["reclaimPolicy"] = cmp.Or(value, string(model.ReclaimRecycle))
		case "TAINT":
			delete(spec(o), "taints")
			if value != "" {
				spec(o)["taints"] = []any{map[string]any{"key": value}}
			}
		case "OPERATION":
			annotate(o, model.AnnotationOperation, value)
		case "DISKS":
			annotate(o, model.AnnotationDisksAccepted, value)
		case "MACS":
			if value == "its own" {
				value = m.MAC(0)
			}
			annotate(o, model.AnnotationMACAddresses, value)
		case "BEHIND":
			delete(spec(o), "bmcRef")
			if value != "" {
				spec(o)["bmcRef"] = map[string]any{"name": value}
			}
		case "UUID":
			spec(o)["systemUUID"] = cmp.Or(value, m.UUID())
		case "DISCOVER":
			annotate(o, model.AnnotationDiscover, value)
		}
	}
	return nil
}

func annotate(o map[string]any, key, value string) {
	delete(annotations(o), key)
	if value != "" {
		annotations(o)[key] = value
	}
}

// claimName is the name of a claim in full: a scenario leaves out the namespace default.
func claimName(name string) model.ClaimName {
	if !strings.Contains(name, "/") {
		name = "default/" + name
	}
	return model.ClaimName(name)
}

func (w *site) claim(row map[string]string) error {
	name := row["CLAIM"]
	o := w.claims[name]
	if o == nil {
		namespace, short := model.SplitName(claimName(name))
		o = object(model.KindServerClaim, short, nil)
		o["metadata"].(map[string]any)["namespace"] = namespace
		spec(o)["power"], spec(o)["image"] = "On", w.image["linux"]
		spec(o)["ignitionSecretRef"] = map[string]any{"name": short}
		w.claims[name] = o
	}
	for column, value := range row {
		if value == "" {
			continue
		}
		switch column {
		case "SERVER":
			spec(o)["serverRef"] = map[string]any{"name": w.called(value)}
		case "RACK":
			spec(o)["serverSelector"] = map[string]any{"matchLabels": map[string]any{"rack": value}}
		case "TOLERATES":
			spec(o)["tolerations"] = []any{map[string]any{"key": value, "operator": "Exists"}}
		case "POWER":
			spec(o)["power"] = value
		case "PRIORITY":
			annotate(o, model.AnnotationPriority, value)
		case "REPROVISION":
			annotate(o, model.AnnotationReprovision, value)
		case "APPROVES": // maintenance of a server
			annotate(o, model.AnnotationMaintenanceApproved, "of-"+value)
		case "CLEANUP":
			annotate(o, model.AnnotationCleanup, value)
		case "BOOT":
			annotate(o, model.AnnotationBoot, value)
		case "BOOTED":
			annotate(o, model.AnnotationBooted, value)
		case "ROOT DEVICE":
			hint, err := w.rootDevice(row["SERVER"], value)
			if err != nil {
				return err
			}
			annotate(o, model.AnnotationRootDevice, hint)
		case "SSH KEYS":
			annotate(o, model.AnnotationSSHKeys, strings.Join(sshKeys(value), "\n")+"\n")
		case "CONFIGURED BY":
			if value == "nothing" {
				delete(spec(o), "ignitionSecretRef")
				continue
			}
			if value == "Ignition 2" {
				w.ignition[name] = `{"ignition":{"version":"2.3.0"},"passwd":{"users":[{"name":"core","sshAuthorizedKeys":["ssh-ed25519 AAAA"]}]}}`
				continue
			}
			key := map[string]string{"cloud-init": "stringData", "cloud-init in gzip": "data", "cloud-init in base64 twice": "data"}[value]
			if key == "" {
				return fmt.Errorf("a claim is configured by cloud-init, or by Ignition where nothing is said, and not by %s", value)
			}
			userData := "#cloud-config\nruncmd: [[echo, " + claimSecret + "]]\n"
			switch value {
			case "cloud-init in gzip":
				userData = base64.StdEncoding.EncodeToString(gzipped(userData))
			case "cloud-init in base64 twice":
				userData = base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte(userData))))
			}
			w.byCloud[name] = map[string]any{key: map[string]any{"user-data": userData}}
		case "OVERWRITE":
			annotate(o, model.AnnotationOverwrite, value)
		case "IMAGE":
			spec(o)["image"] = cmp.Or(w.image[value], value)
		}
	}
	return nil
}

func (w *site) ignitionOf(claim string) map[string]any {
	namespace, short := model.SplitName(claimName(claim))
	o := object("Secret", short, nil)
	o["apiVersion"] = "v1"
	o["metadata"].(map[string]any)["namespace"] = namespace
	delete(o, "spec")
	if values := w.byCloud[claim]; values != nil {
		maps.Copy(o, values)
		return o
	}
	o["stringData"] = map[string]any{"ignition": cmp.Or(w.ignition[claim], fmt.Sprintf(
		`{"ignition":{"version":"3.4.0"},"storage":{"files":[`+
			`{"path":"/etc/motd","contents":{"source":"data:,%s-%s"}}]}}`, claim, claimSecret))}
	return o
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.Bytes()
}

func claimPath(name string) string { return "claims/" + name + ".yaml" }

func (w *site) claimFile(name string) string {
	if spec(w.claims[name])["ignitionSecretRef"] == nil {
		return text(w.claims[name])
	}
	return text(w.claims[name], w.ignitionOf(name))
}
