package config

import "regexp"

// removed lists the keys that were dropped, with what to do instead. The index of a list is [].
var removed = map[string]string{
	"dhcp[].rateLimit":            limitRemoved,
	"dhcp[].routerAdvertisements": "was removed: run radvd or corerad on the link, see docs/networks.md, \"Router advertisements\"",
	"events":                      "was removed: remove the key; BMCs are polled every minute",
	"notify":                      "was removed: use the alert rules in examples/monitoring with Alertmanager, or a client that reads /api/v1/events",
	"tftp.maxTransfers":           limitRemoved,
	"tftp.maxTransfersPerAddress": limitRemoved,
	"webhook.repository":          "was removed: each signed announcement triggers a poll; remove the key",
}

const limitRemoved = "was removed: the limit is fixed, see docs/networks.md, \"Limits\"; remove the key"

// listIndex matches the number of an entry in a path.
var listIndex = regexp.MustCompile(`\[\d+\]`)

// removedKey returns what to do about the key at path, "" if it was not removed.
func removedKey(path string) string { return removed[listIndex.ReplaceAllString(path, "[]")] }

// removedVariable returns what to do about the variable of a removed key, "" for any other variable.
func removedVariable(variable string) string {
	for path, text := range removed {
		if variableOf(path) == variable {
			return text
		}
	}
	return ""
}
