package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/model/must"
	"ingot/reconcile/report"
)

var exampleCard = explanation{Card: &report.Card{
	MAC: "02:00:00:00:00:01", Server: "s1", Limited: "DHCPv4 over rateLimit.client: since 07:59:50Z 3 times", Since: ago(2 * time.Hour),
	Events: []model.CardEvent{
		{At: ago(25 * time.Hour), Protocol: model.CardDHCPv4, Asked: "DISCOVER by pxe", From: "rack1, relay 10.0.0.1 port eth7", Result: model.CardAnswered, Answer: "OFFER 10.0.0.7, boots undionly.kpxe"},
		{At: ago(3 * time.Minute), Protocol: model.CardTFTP, Asked: "undionly.kpxe", From: "10.0.0.7", Result: model.CardServed, Bytes: 71_680, Seconds: 0.4},
		{At: ago(2 * time.Minute), Last: ago(time.Minute), Times: 12, Protocol: model.CardHTTP, Asked: "boot script", From: "10.0.0.7", Result: model.CardRefused, Answer: "no\x1b[2J"},
		{At: ago(10 * time.Second), Protocol: model.CardHTTP, Asked: "kernel", Result: model.CardServed, Bytes: 5 << 20, Seconds: 1.5},
		{At: ago(9 * time.Second), Protocol: model.CardHTTP, Asked: "report", Result: model.CardServed, Bytes: 1023, Seconds: 0.001},
	},
}}

const exampleCardExplained = `endpoint 02:00:00:00:00:01
  network card of server: s1
  limited: DHCPv4 over rateLimit.client: since 07:59:50Z 3 times
  network card log since the daemon started 2h00m ago (older entries are dropped):
    TIME                  BY      ASKED            RESULT    ANSWER
    2026-11-20T07:00:00Z  DHCPv4  DISCOVER by pxe  answered  OFFER 10.0.0.7, boots undionly.kpxe; from rack1, relay 10.0.0.1 port eth7
    07:57:00Z             TFTP    undionly.kpxe    served    70 KiB in 400ms; from 10.0.0.7
    07:58:00Z             HTTP    boot script      refused   no�[2J; from 10.0.0.7; ×12 until 07:59:00Z
    07:59:50Z             HTTP    kernel           served    5.0 MiB in 1.5s
    07:59:51Z             HTTP    report           served    1023 B in 1ms
`

func TestCardLog(t *testing.T) {
	var out bytes.Buffer
	printExplanation(&console{out: &out}, exampleCard, exampleNow)
	if diff := cmp.Diff(exampleCardExplained, out.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	out.Reset()
	printExplanation(&console{out: &out}, explanation{Card: &report.Card{MAC: "02:00:00:00:00:02", Since: ago(time.Minute)}}, exampleNow)
	if want := "no DHCP, TFTP or HTTP requests since the daemon started 1m ago\n"; !strings.Contains(out.String(), want) {
		t.Errorf("got %s, want %s", out.String(), want)
	}
}

func TestExplainCard(t *testing.T) {
	d := newFakeDaemon(t)
	d.card = *exampleCard.Card
	for format, want := range map[string]string{"text": "70 KiB in 400ms", "json": `"asked": "undionly.kpxe"`} {
		stdout, stderr, code := command(t, "-o", format, "explain", "endpoint", "02:00:00:00:00:01", "--address", d.server.URL)
		if code != exitFine || !strings.Contains(stdout, want) || stderr != "" {
			t.Errorf("exit code %d, %s%s", code, stdout, stderr)
		}
	}
}

func TestStatusBranchHasNoCardLog(t *testing.T) {
	repo := must.Get(gitserver.New(t.TempDir(), "fleet"))(t)
	must.Get(repo.CommitTo("status", map[string]string{
		"fleet.yaml":           "fence: 1\n",
		"endpoints/oob-1.yaml": "kind: Endpoint\nmetadata: {name: oob-1}\nspec: {macAddress: \"A0:36:9F:01:02:FF\"}\nstatus: {network: oob}\n",
	}, "oob-1: plugged in"))(t)
	for _, name := range []string{"oob-1", "a0:36:9f:01:02:ff"} {
		stdout, stderr, code := command(t, "explain", "--git", repo.Dir, "endpoint", name)
		if code != exitFine || !strings.HasPrefix(stdout, "endpoint oob-1\n") || !strings.Contains(stderr, "only available from a running daemon") {
			t.Errorf("%s: exit code %d, %s%s", name, code, stdout, stderr)
		}
	}
	_, stderr, code := command(t, "explain", "--git", repo.Dir, "endpoint", "a0:36:9f:01:02:00")
	if code != exitFailed || !strings.Contains(stderr, "endpoint a0:36:9f:01:02:00 is not known") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
