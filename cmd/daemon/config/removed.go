package config

import "regexp"

// removed lists the keys that were dropped, with what to do instead. The index of a list is [].
var removed = map[string]string{
	"admin.hosts":                 "was removed: write the names as URLs in admin.url, with commas between",
	"bmc.maxInFlight":             "was removed: each BMC gets at most 2 requests at the same time; remove the key",
	"bmc.pollInterval":            "was removed: the power state is read every minute; remove the key",
	"cleanup.image":               "was removed: discovery.image wipes servers too; remove the key",
	"dhcp[].rateLimit":            limitRemoved,
	"dhcp[].routerAdvertisements": "was removed: run radvd or corerad on the link, see docs/networks.md, \"Router advertisements\"",
	"dhcp[].subnets[].range":      "was removed: write ranges: [FIRST-LAST]",
	"discovery.attempts":          "was removed: a server is in Error after 3 attempts; remove the key",
	"events":                      "was removed: the power state is read every minute; remove the key",
	"git.auth.githubApp.url":      "was removed: the API of the host in git.url is used; remove the key",
	"git.commit":                  "was removed: put a tag on the commit and set git.tag",
	"git.commitStatus.context":    "was removed: the status is named ingot; remove the key",
	"git.commitStatus.project":    "was removed: the project follows from git.url; if that is a mirror, set git.webURL to the repository's page",
	"git.proxy":                   "was removed: set HTTPS_PROXY in the environment, and git.url to https://…, because SSH uses no proxy",
	"git.strict":                  "was removed: a file with errors keeps its last good version; run ingot validate in CI to refuse errors before the merge",
	"git.webStyle":                "was removed: set git.commitStatus.provider",
	"guard.maxConcurrentInstalls": "was removed: at most 50 disk images are written at the same time; remove the key",
	"notify":                      "was removed: use the alert rules in examples/monitoring with Alertmanager, or a client that reads /api/v1/events",
	"resync":                      "was removed: everything is evaluated again every 2 minutes; remove the key",
	"status.archive":              "was removed: a clone that fetches the status branch keeps its old commits; remove the key",
	"status.authorEmail":          "was removed: set status.author to NAME <EMAIL>",
	"status.authorName":           "was removed: set status.author to NAME <EMAIL>",
	"status.interval":             "was removed: the status branch gets at most one commit every 30 seconds, unless a decision waits for it; remove the key",
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
