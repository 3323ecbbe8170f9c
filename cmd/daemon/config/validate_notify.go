package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"ingot/cmd/daemon/notify"
	"ingot/reconcile/report"
)

// maxWebhooks bounds those that are told.
const maxWebhooks = 20

// webhookName matches the name of a webhook, which is that of a file and of metrics.
var webhookName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?$`)

// notify checks who is told of what. It repeats no address, which may be a secret.
func (c *checks) notify(n *Notify) {
	c.lasts("notify.claimWaiting", n.ClaimWaiting, time.Second)
	if len(n.Webhooks) > maxWebhooks {
		c.wrong("notify.webhooks", "there are %d, at most %d are allowed", len(n.Webhooks), maxWebhooks)
	}
	taken := make(map[string]bool)
	for i := range n.Webhooks {
		w := &n.Webhooks[i]
		key := fmt.Sprintf("notify.webhooks[%d].", i)
		if !webhookName.MatchString(w.Name) {
			c.wrong(key+"name", "%q is not allowed: must be a name of lower case letters, digits and -, such as on-call", w.Name)
		} else if taken[w.Name] {
			c.wrong(key+"name", "%q is the name of two webhooks; give one of them another", w.Name)
		}
		taken[w.Name] = true
		c.webhookAddress(key, w)
		if w.Format != "" && !slices.Contains(notify.Formats(), w.Format) {
			c.wrong(key+"format", "%q is not allowed: must be one of %s", w.Format, strings.Join(notify.Formats(), ", "))
		}
		c.kinds(key, w.On)
	}
}

func (c *checks) webhookAddress(key string, w *NotifyWebhook) {
	switch {
	case w.URL == "" && w.URLFile == "":
		c.wrong(key+"urlFile", "is empty, and so is url: name the file that holds the address of the webhook")
	case w.URL != "" && w.URLFile != "":
		c.wrong(key+"url", "is set, and urlFile too: keep one of them; an address that is a secret, as Slack's are, belongs into a file")
	case w.URL != "" && !isHTTPURL(w.URL):
		c.wrong(key+"url", "is not allowed: must be http:// or https:// with a host, without user, password and query; "+
			"put an address with any of those into a file, and name that in urlFile")
	}
}

func (c *checks) kinds(key string, on []string) {
	var known []string
	for _, k := range report.NoticeKinds() {
		known = append(known, string(k))
	}
	for i, k := range on {
		if !slices.Contains(known, k) {
			c.wrong(fmt.Sprintf("%son[%d]", key, i), "%q is not allowed: must be one of %s%s", k, strings.Join(known, ", "), didYouMean(k, known))
		}
	}
}

// Targets are the webhooks as they are told.
func (n *Notify) Targets() (all []notify.Webhook) {
	for _, w := range n.Webhooks {
		t := notify.Webhook{
			Name: w.Name, URL: w.URL, URLFile: w.URLFile, Format: w.Format, Header: w.HeaderFile, CAFile: w.CAFile, Resolved: w.Resolved,
		}
		for _, k := range w.On {
			t.On = append(t.On, report.NoticeKind(k))
		}
		all = append(all, t)
	}
	return all
}
