package preview

import (
	"fmt"
	"strings"

	"ingot/model"
	"ingot/model/text"
)

// counted are the kinds of effects as a summary counts them, the worst first.
var counted = []struct {
	kind      Kind
	one, many string // after the number
}{
	{Release, "server is released", "servers are released"},
	{Retain, "server is taken from its claim and kept as it is", "servers are taken from their claims and kept as they are"},
	{Wipe, "kept server is wiped", "kept servers are wiped"},
	{Reprovision, "server is installed again", "servers are installed again"},
	{Maintain, "server goes out of service", "servers go out of service"},
	{PowerOff, "server is powered off", "servers are powered off"},
	{Operation, "operation is asked for", "operations are asked for"},
	{Forget, "server is forgotten", "servers are forgotten"},
	{Install, "install begins anew", "installs begin anew"},
	{Touch, "server is asked for another power state", "servers are asked for another power state"},
	{Bind, "claim gets a server", "claims get a server"},
	{Adopt, "claim gets a server as it runs", "claims get servers as they run"},
	{Rename, "server goes on under another claim's name", "servers go on under another claim's name"},
	{Keep, "server stays with its claim", "servers stay with their claims"},
	{Return, "server comes back into service", "servers come back into service"},
	{PowerOn, "server is powered on", "servers are powered on"},
	{Discover, "server is discovered", "servers are discovered"},
	{Setting, "setting is changed", "settings are changed"},
	{Boot, "server boots from elsewhere", "servers boot from elsewhere"},
	{Cleanup, "server has its disks treated otherwise at its release", "servers have their disks treated otherwise at their release"},
	{NoLonger, "thing that waited happens no more", "things that waited happen no more"},
	{Pending, "change waits to be asked for", "changes wait to be asked for"},
	{Wait, "claim waits", "claims wait"},
	{Withdraw, "claim that had no server is gone", "claims that had no server are gone"},
	{Hold, "server is left alone", "servers are left alone"},
	{BMCAdded, "BMC is new", "BMCs are new"},
	{BMCChanged, "BMC is changed", "BMCs are changed"},
	{BMCRemoved, "BMC is gone", "BMCs are gone"},
}

// Summary is what all comes to, in a sentence.
func (p *Preview) Summary() string {
	var says []string
	if n := p.errors(); n > 0 {
		says = append(says, text.Plural(n, "new error")+" in manifests")
	}
	held := 0
	for _, h := range p.Held {
		held += len(h.Steps)
	}
	for _, c := range counted {
		n := 0
		for i := range p.Effects {
			if p.Effects[i].Kind == c.kind {
				n++
			}
		}
		if n > 0 {
			says = append(says, count(n, c.one, c.many))
		}
	}
	if held > 0 {
		says = append(says, "the guard holds "+text.Plural(held, "step")+" back")
	}
	if len(says) == 0 {
		return "Nothing happens to any machine"
	}
	first := map[Verdict]string{Changes: "Nothing that runs is disturbed", Destructive: "Something that runs is disturbed", Wrong: "The manifests have errors"}
	return first[p.Verdict] + ": " + strings.Join(says, ", ")
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// errors counts the problems that are errors.
func (p *Preview) errors() int {
	n := 0
	for _, problem := range p.Problems {
		if problem.Severity == model.SeverityError {
			n++
		}
	}
	return n
}

// Step says what is merged into what.
func (p *Preview) Step() string { return "merging " + p.commit() + " into " + string(p.Base.Short()) }

// commit is the commit that is merged, by the beginning of its hash.
func (p *Preview) commit() string {
	_, commit, _ := strings.Cut(p.Head.Short(), "@")
	return commit
}

// WrongTitle stands above the problems of a preview.
const WrongTitle = "What is wrong in the manifests with this, and was not before (what was in force of it stays as it was)"

// What says what an effect is of: a server, a BMC, or a claim that has none.
func (e *Effect) What() string {
	switch {
	case e.Server != "":
		return "server " + string(e.Server)
	case e.BMC != "":
		return "BMC " + string(e.BMC)
	}
	return "claim " + string(e.Claim)
}

// Next says how a list that the guard holds back is let happen.
func (h *Held) Next() string {
	says := "it waits for approval by a commit whose message ends with " + h.Approve
	if h.Approve == "" {
		says = "once merged, Ingot lists it with the line that approves it (ingot status, or " + model.ReportRevision +
			" on the status branch): push a commit whose message ends with that line, Ingot-Approve: and the token"
	}
	if !h.Until.IsZero() {
		says += "; or wait until " + text.Time(h.Until)
	}
	return says
}

// Limits says which limit a list exceeds.
func (h *Held) Limits() string {
	of := "of the fleet"
	if h.Namespace != "" {
		of = "of namespace " + h.Namespace
	}
	return fmt.Sprintf("%s, for the limit %s is %s within its window", text.Plural(len(h.Steps), "step"), of, text.Plural(h.Limit, "server"))
}
