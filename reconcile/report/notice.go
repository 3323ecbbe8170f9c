package report

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"ingot/model"
)

// NoticeKind is a kind of what people want to be told of, wherever they are.
type NoticeKind string

// The kinds of notices. All but ClaimBooted are trouble, which ends some time.
const (
	NoticeServerError   NoticeKind = "ServerError"
	NoticeCleanupFailed NoticeKind = "CleanupFailed"
	NoticeGuardHeld     NoticeKind = "GuardHeld"
	NoticeTicketRefused NoticeKind = "TicketRefused"
	NoticeBMCLost       NoticeKind = "BMCLost"
	NoticeClaimWaiting  NoticeKind = "ClaimWaiting"
	NoticeClaimBooted   NoticeKind = "ClaimBooted"
)

// NoticeKinds are all kinds, what matters most first.
func NoticeKinds() []NoticeKind {
	return []NoticeKind{
		NoticeTicketRefused, NoticeCleanupFailed, NoticeServerError, NoticeGuardHeld, NoticeBMCLost, NoticeClaimWaiting, NoticeClaimBooted,
	}
}

// IsTrouble reports whether somebody has to act, and it is news when that ends.
func (k NoticeKind) IsTrouble() bool { return k != NoticeClaimBooted }

// Notice is something that stands and that people want to be told of, once.
type Notice struct {
	// ID tells it from any other: the same trouble has it for as long as it lasts, before and
	// after a restart, and trouble that comes back has another.
	ID      string     `json:"id"`
	Kind    NoticeKind `json:"kind"`
	Object  string     `json:"object"` // server, claim, boot-configuration, bmc or guard
	Name    string     `json:"name"`
	Reason  string     `json:"reason"`
	Since   time.Time  `json:"since"`
	Message string     `json:"message,omitempty"`
}

// NoticePolicy says how long some things have to be so before they are news.
type NoticePolicy struct {
	ClaimWaiting time.Duration // a claim whose server has not booted
	BMCLost      time.Duration // a BMC that cannot be used
}

// NoticesOf returns what stands now that people want to be told of: what matters most
// first, and then in the order of names.
func NoticesOf(r *model.Report, p NoticePolicy, now time.Time) []Notice {
	var all []Notice
	for path, doc := range r.Documents {
		switch {
		case path == model.ReportRevision:
			all = append(all, guardNotices(doc.Object.(*Revision))...)
		case strings.HasPrefix(path, serverFolder):
			all = append(all, serverNotices(objectOf(doc))...)
		case strings.HasPrefix(path, "bmcs/"):
			all = append(all, bmcNotices(objectOf(doc), p, now)...)
		case strings.HasPrefix(path, claimFolder), strings.HasPrefix(path, bootConfigurationFolder):
			all = append(all, claimNotices(objectOf(doc), p, now)...)
		}
	}
	order := make(map[NoticeKind]int)
	for i, k := range NoticeKinds() {
		order[k] = i
	}
	slices.SortFunc(all, func(a, b Notice) int {
		return cmp.Or(cmp.Compare(order[a.Kind], order[b.Kind]), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// identified returns n with its ID, which says what n is and since when, but not what is
// said of it: that may change. More is what else tells it from others.
func identified(n Notice, more string) Notice {
	n.Since = n.Since.UTC().Truncate(time.Second)
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %d %q", n.Kind, n.Object, n.Name, n.Reason, n.Since.Unix(), more))
	n.ID = hex.EncodeToString(sum[:16])
	return n
}

func guardNotices(r *Revision) (all []Notice) {
	for i, hold := range r.Record.Holds {
		text := ""
		if i < len(r.Guard) {
			text = r.Guard[i].Message + "; in a commit message this line approves it: " + r.Guard[i].Approve
		}
		all = append(all, identified(Notice{
			Kind: NoticeGuardHeld, Object: "guard", Name: cmp.Or(hold.Scope, "fleet"), Reason: model.ReasonGuardHeld, Since: hold.Since, Message: text,
		}, hold.Token))
	}
	return all
}

// serverNotices go by the server's record: what its condition Ready says may be of its BMC
// for a while.
func serverNotices(d *Document) (all []Notice) {
	status, _ := d.Status.(ServerStatus)
	rec, _ := d.Record.(*model.ServerRecord)
	ready := conditions(status.Conditions).of(typeReady)
	if rec != nil && rec.State == model.StateError {
		n := Notice{
			Kind: NoticeServerError, Object: "server", Name: d.Metadata.Name, Reason: cmp.Or(rec.Reason, string(model.StateError)), Since: rec.Since,
			Message: shownText(rec.Message),
		}
		if n.Reason == ready.Reason {
			n.Message = ready.Message // which says what to do, too
		}
		switch n.Reason {
		case model.ReasonCleanupFailed:
			n.Kind = NoticeCleanupFailed
		case model.ReasonTicketStolen:
			n.Kind = NoticeTicketRefused
		}
		all = append(all, identified(n, ""))
	}
	if c := conditions(status.Conditions).of(typeTicketRefused); c.Status == metav1.ConditionTrue {
		all = append(all, noticeOf(NoticeTicketRefused, "server", d.Metadata.Name, c))
	}
	return all
}

func bmcNotices(d *Document, p NoticePolicy, now time.Time) []Notice {
	status, _ := d.Status.(BMCStatus)
	c := conditions(status.Conditions).of(typeReady)
	if status.State != BMCError || c.Reason == model.ReasonIgnored || now.Sub(c.LastTransitionTime.Time) < p.BMCLost {
		return nil
	}
	return []Notice{noticeOf(NoticeBMCLost, "bmc", d.Metadata.Name, c)}
}

func claimNotices(d *Document, p NoticePolicy, now time.Time) (all []Notice) {
	object := "claim"
	status, ok := d.Status.(ClaimStatus)
	if of, isConfiguration := d.Status.(BootConfigurationStatus); isConfiguration {
		object = "boot-configuration"
		status, ok = requested(d, of)
	}
	if !ok {
		return nil
	}
	conds := conditions(status.Conditions)
	name := d.Metadata.fullName()
	if c := conds.of(typeSecretExposed); c.Status == metav1.ConditionTrue {
		all = append(all, noticeOf(NoticeTicketRefused, object, name, c))
	}
	c := conds.of(typeBound)
	if c.Status == metav1.ConditionTrue {
		c = conds.of(typeReady)
	}
	switch {
	case c.Status == metav1.ConditionTrue && c.Reason == string(ClaimBooted):
		n := noticeOf(NoticeClaimBooted, object, name, c)
		n.Message = "on server " + string(status.Server)
		all = append(all, n)
	case c.Status == metav1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) >= p.ClaimWaiting:
		n := Notice{Kind: NoticeClaimWaiting, Object: object, Name: name, Reason: "Waiting", Since: c.LastTransitionTime.Time, Message: saying(c)}
		all = append(all, identified(n, ""))
	}
	return all
}

// noticeOf makes a notice of a condition.
func noticeOf(kind NoticeKind, object, name string, c metav1.Condition) Notice {
	return identified(Notice{
		Kind: kind, Object: object, Name: name, Reason: c.Reason, Since: c.LastTransitionTime.Time, Message: c.Message,
	}, "")
}
