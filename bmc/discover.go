package bmc

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stmcginnis/gofish/schemas"

	"ingot/model"
)

// Bounds on what a BMC may list.
const (
	maxMembers = 1024
	maxPages   = 64
	maxOthers  = 16 // systems that are named as no servers
	// maxListed bounds the pages and members of one collection, or of a list of resources, in
	// bytes all in all: a thousand of maxBody would be held at once.
	maxListed = 2 * maxBody
)

// Discover reads what the BMC is and which machines are behind it. Where the
// service expands collections these are four requests, login included. What could
// not be read but is not essential is in the facts' Problems; their MAC address is
// not read, as it costs requests and is known from the lease.
func (p *Pool) Discover(ctx context.Context, t model.BMCTarget) (*model.BMCFacts, error) {
	c, err := p.client(ctx, t)
	if err != nil {
		return nil, err
	}
	p.breaker.learn(c.creds, t.Name, t.Accepted)
	if t.Retry {
		p.breaker.retry(c.creds, t.Name)
	}
	svc, err := c.root(ctx)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	facts := &model.BMCFacts{Name: t.Name, Manufacturer: clip(svc.vendor)}
	facts.UUID, _ = usableUUID(svc.uuid)
	systems, err := c.readSystems(ctx, svc, facts)
	if err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	if err := c.readManager(ctx, svc, systems, facts); err != nil {
		return nil, fmt.Errorf("discover: %w", err)
	}
	if len(systems) > 0 && facts.Manufacturer == "" {
		facts.Manufacturer = clip(systems[0].Manufacturer)
	}
	for i := range systems {
		c.learn(systems[i].ID, func(s *systemState) {
			s.quirk = quirkOf(systems[i].Manufacturer, systems[i].Model, facts.FirmwareVersion)
		})
	}
	if more := len(facts.Problems) - maxProblems; more > 0 {
		facts.Problems = append(facts.Problems[:maxProblems:maxProblems], fmt.Sprintf("and %d more", more))
	}
	facts.Fingerprint = c.pin.fingerprint()
	return facts, nil
}

// readSystems fills in the machines and returns them in the order of their URIs,
// which is the order that servers are named by (B20).
func (c *reader) readSystems(ctx context.Context, svc *service, facts *model.BMCFacts) ([]system, error) {
	if svc.systems == "" {
		facts.Starting = true
		facts.Problems = append(facts.Problems, "the BMC has no collection of systems")
		return nil, nil
	}
	// What is listed and cannot be read may be any machine, so that none is gone for it.
	unread := func(uri string, err error) {
		facts.Problems = append(facts.Problems, fmt.Sprintf("%s: cannot be read: %v", uri, err))
		facts.Systems = append(facts.Systems, model.SystemFact{URI: uri, Power: model.PowerUnknown, Unread: true})
	}
	var machines []system
	others, leftOut := 0, 0
	err := c.eachMember(ctx, svc.systems, 1, func(m member, err error) bool {
		if why := unusableURI(m.uri); why != "" {
			leftOut++
			facts.Problems = append(facts.Problems, fmt.Sprintf("the system %s is left out: its URI %s", printable(m.uri, 64), why))
			return true
		}
		if err != nil {
			unread(m.uri, err)
			return true
		}
		sys, odd, err := decode[system](m.raw)
		switch {
		case err != nil:
			unread(m.uri, errors.New(c.detail(err.Error())))
			return true
		}
		if why := sys.noServer(); why != "" {
			others++
			facts.Starting = facts.Starting || why == noReset
			if len(facts.Others) < maxOthers {
				facts.Others = append(facts.Others, printable(m.uri, maxText)+" is no server: "+why)
			}
			return true
		}
		sys.ID = m.uri
		if len(odd) > 0 {
			facts.Problems = append(facts.Problems, oddProblem(m.uri, odd))
		}
		machines = append(machines, sys)
		isNew := !c.state(m.uri).known
		c.learnSystem(m.uri, cmp.Or(m.etag, sys.ETag), &sys)
		if isNew {
			c.learn(m.uri, func(s *systemState) { s.first = &discovered{sys, odd} })
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(facts.Others)
	switch {
	case len(facts.Systems)+len(machines) > 0:
	case others+leftOut == 0:
		facts.Problems = append(facts.Problems, "the BMC shows no system")
	case others > 0:
		facts.Problems = append(facts.Problems, "none of the systems that the BMC shows is a server: "+strings.Join(facts.Others, "; "))
	}
	facts.Starting = facts.Starting || len(machines) == 0 || len(facts.Systems) > 0
	slices.SortFunc(machines, func(a, b system) int { return strings.Compare(a.ID, b.ID) })
	for _, sys := range machines {
		uuid, problem := usableUUID(sys.UUID)
		if problem != "" {
			facts.Problems = append(facts.Problems, sys.ID+" "+problem)
		}
		seen := model.SystemFact{URI: sys.ID, UUID: uuid, Power: powerOf(sys.PowerState)}
		if uuid == "" {
			facts.Starting = true
			seen.Board = sys.shown().Board
		}
		facts.Systems = append(facts.Systems, seen)
	}
	slices.SortFunc(facts.Systems, func(a, b model.SystemFact) int { return strings.Compare(a.URI, b.URI) })
	return machines, nil
}

// unusableURI returns why a system's URI cannot be recorded and shown, "" if it can.
func unusableURI(uri string) string {
	switch {
	case len(uri) > maxText:
		return fmt.Sprintf("has %d bytes, allowed are %d", len(uri), maxText)
	case !utf8.ValidString(uri) || strings.ContainsFunc(uri, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "has characters that cannot be shown"
	}
	return ""
}

// readManager fills in what the manager says. A BMC without a manager is no error.
func (c *reader) readManager(ctx context.Context, svc *service, systems []system, facts *model.BMCFacts) error {
	m, problems, err := c.manager(ctx, svc, systems)
	if err != nil {
		if final(err) {
			return err
		}
		problems = append(problems, fmt.Sprintf("managers: %v", err))
	}
	facts.Problems = append(facts.Problems, problems...)
	if m == nil {
		return nil
	}
	if m.Status.State == schemas.UpdatingState {
		return &Error{BMC: c.name, Method: http.MethodGet, URI: path(m.ODataID), Kind: ErrUpdating, Detail: "the manager is Updating"}
	}
	if uuid, _ := usableUUID(m.UUID); uuid != "" {
		facts.UUID = uuid
	}
	if m.Manufacturer != "" {
		facts.Manufacturer = clip(m.Manufacturer)
	}
	facts.Model = clip(m.Model)
	facts.SKU = clip(m.PartNumber)
	facts.SerialNumber = clip(m.SerialNumber)
	facts.FirmwareVersion = clip(m.FirmwareVersion)
	if m.PowerState != "" {
		facts.Power = powerOf(string(m.PowerState))
	}
	if at, err := time.Parse(time.RFC3339, m.LastResetTime); err == nil {
		facts.LastResetTime = at.UTC()
	}
	return nil
}

// manager reads the manager that is the BMC. A collection that is not expanded is
// read no further than to the first that will do.
func (c *reader) manager(ctx context.Context, svc *service, systems []system) (*schemas.Manager, []string, error) {
	var problems []string
	var best *schemas.Manager
	consider := func(m member) bool {
		mgr, odd, err := decode[schemas.Manager](m.raw)
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: cannot be read: %s", printable(m.uri, maxText), c.detail(err.Error())))
			return false
		}
		if len(odd) > 0 {
			problems = append(problems, oddProblem(m.uri, odd))
		}
		if best == nil || fitness(&mgr, svc.uuid) > fitness(best, svc.uuid) {
			best = &mgr
		}
		return fitness(best, svc.uuid) >= fit
	}
	oneByOne := svc.query(1) == ""
	if oneByOne && len(systems) > 0 {
		for _, l := range systems[0].Links.ManagedBy {
			m, err := c.member(ctx, path(l.ID))
			if err != nil && final(err) {
				return nil, problems, err
			}
			if err == nil && consider(m) {
				return best, problems, nil
			}
		}
	}
	if best != nil || svc.managers == "" {
		return best, problems, nil
	}
	err := c.eachMember(ctx, svc.managers, 1, func(m member, err error) bool {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", m.uri, err))
			return true
		}
		return !consider(m) || !oneByOne
	})
	return best, problems, err
}

// fit is the fitness of a manager that is not worth further requests.
const fit = 3

// fitness says how likely the manager is the BMC of the machines, and not of an
// enclosure or a part (B22).
func fitness(m *schemas.Manager, serviceUUID string) int {
	n := 0
	if m.ManagerType == schemas.BMCManagerType || m.ManagerType == "" {
		n += 2
	}
	if m.GraphicalConsole.ServiceEnabled || len(m.GraphicalConsole.ConnectTypesSupported) > 0 {
		n++
	}
	if serviceUUID != "" && strings.EqualFold(m.UUID, serviceUUID) {
		n += 2
	}
	return n
}

type member struct {
	uri  string
	etag string
	raw  json.RawMessage
}

// members returns the resources of a collection, and as problems those that could
// not be read.
func (c *reader) members(ctx context.Context, uri string, levels int) (all []member, problems []string, err error) {
	err = c.eachMember(ctx, uri, levels, func(m member, err error) bool {
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %v", m.uri, err))
		} else {
			all = append(all, m)
		}
		return true
	})
	return all, problems, err
}

// eachMember calls use with each resource of a collection, or with why it could
// not be read, until use returns false. Where the service expands collections,
// one request brings them all, and levels of what they link to. Members that are
// gone since the collection was read are passed over (B26). A collection that lacks
// members is an error, after use has had those that it shows.
func (c *reader) eachMember(ctx context.Context, uri string, levels int, use func(member, error) bool) error {
	list, left, short := c.listed(ctx, uri, levels)
	if short != nil && (list == nil || left < 0) {
		return short
	}
	seen := make(map[string]bool)
	for _, raw := range list {
		if err := ctx.Err(); err != nil { // to use them takes time, too
			return err
		}
		m, whole := asMember(raw)
		if m.uri == "" || seen[m.uri] || len(seen) >= maxMembers {
			continue
		}
		seen[m.uri] = true
		var err error
		if !whole {
			at := m.uri
			if m, err = c.member(ctx, at); err != nil {
				m.uri = at
			}
			if left -= len(m.raw); left < 0 {
				return c.tooMuch(uri)
			}
		}
		if statusOf(err) == http.StatusNotFound {
			continue
		}
		if err != nil && final(err) {
			return err
		}
		if !use(m, err) {
			return nil
		}
	}
	return short
}

// listed returns what a collection has on all its pages. A BMC that is busy or starting
// shows fewer members than it says that there are: then there is an error, too. left is what
// remains of maxListed.
func (c *reader) listed(ctx context.Context, uri string, levels int) (all []json.RawMessage, left int, err error) {
	left = maxListed
	named, count := 0, 0
	asked := make(map[string]bool)
	for next := uri; next != "" && !asked[next] && len(asked) < maxPages && len(all) < maxMembers; {
		asked[next] = true
		list, err := c.collection(ctx, next, levels)
		if err != nil {
			return all, left, err
		}
		if left -= list.size; left < 0 {
			return all, left, c.tooMuch(uri)
		}
		for _, raw := range list.Members {
			if m, _ := asMember(raw); m.uri != "" {
				named++
			}
		}
		all, next = append(all, list.Members...), path(list.Next)
		if list.Count != nil {
			count = *list.Count
		}
	}
	if named == 0 && count > 0 && len(asked) == 1 && c.expandsNothing(uri) {
		return c.listed(ctx, uri, levels)
	}
	if named < min(count, maxMembers) {
		return all, left, c.halfAnswer(uri, fmt.Sprintf("the collection shows %d of %d members", named, count))
	}
	return all, left, nil
}

// plainFor is how long a collection that is empty where it is expanded is asked for without that.
const plainFor = time.Hour

// expandsNothing notes that a collection is empty where it is expanded, and reports whether that is new.
func (c *reader) expandsNothing(uri string) bool {
	svc, now := c.service.Load(), c.opts.Clock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if svc == nil || svc.expand == "" || now.Before(c.plain[uri]) {
		return false
	}
	if len(c.plain) >= maxSystems {
		clear(c.plain)
	}
	c.plain[uri] = now.Add(plainFor)
	return true
}

func (c *reader) isPlain(uri string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opts.Clock().Before(c.plain[uri])
}

// tooMuch is the error for a collection, or what has a list of resources, that is larger than
// maxListed.
func (c *reader) tooMuch(uri string) error {
	return c.halfAnswer(uri, fmt.Sprintf("what is listed has more than %d bytes", maxListed))
}

func (c *reader) collection(ctx context.Context, uri string, levels int) (*collection, error) {
	svc, err := c.root(ctx)
	if err != nil {
		return nil, err
	}
	query := svc.query(levels)
	if strings.Contains(uri, "?") || c.isPlain(uri) { // a further page knows what was asked for
		query = ""
	}
	list, err := c.page(ctx, uri+query)
	switch {
	case query == "":
	case err == nil:
		svc.expands.Store(true)
	case svc.expands.Load() && (errors.Is(err, ErrNotFound) || asError(err) != nil && asError(err).says("ResourceMissingAtURI")): // it is the collection
	case ctx.Err() == nil && refusesQuery(err):
		plain, again := c.page(ctx, uri)
		if again == nil && (!svc.expands.Load() || errors.Is(err, errTooSlow)) {
			// It does not keep what its root promises.
			c.service.CompareAndSwap(svc, svc.withoutExpand(c.opts.Clock().Add(lacking)))
		}
		return plain, again
	}
	return list, err
}

// page reads what is at a URI as a collection. One without members is none, unless it says
// that there are none.
func (c *reader) page(ctx context.Context, uri string) (*collection, error) {
	a, err := c.get(ctx, uri)
	if err != nil {
		return nil, err
	}
	list, _, err := decode[collection](a.body)
	switch {
	case err != nil:
		return nil, c.unreadable(uri, err)
	case list.Members == nil && !list.saysNone():
		return nil, c.halfAnswer(uri, "a collection with no Members")
	}
	list.size = len(a.body)
	return &list, nil
}

// refusesQuery reports whether a collection might be had without a query. A service may
// answer one that it does not know with anything, or not at all.
func refusesQuery(err error) bool {
	switch statusOf(err) {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusPreconditionFailed,
		http.StatusInternalServerError, http.StatusNotImplemented:
		return !errors.Is(err, ErrBusy)
	case http.StatusOK, 0:
		return errors.Is(err, ErrHalfAnswer) || errors.Is(err, ErrUnsupported) || errors.Is(err, errTooSlow)
	}
	return false
}

func (s *service) withoutExpand(until time.Time) *service {
	plain := *s
	plain.expand, plain.until = "", until
	return &plain
}

func (c *reader) member(ctx context.Context, uri string) (member, error) {
	a, err := c.get(ctx, uri)
	if err != nil {
		return member{uri: uri}, err
	}
	return member{uri: uri, etag: a.header.Get("ETag"), raw: a.body}, nil
}

// asMember returns the member of a collection and whether it is the resource and
// not only a link to it.
func asMember(raw json.RawMessage) (m member, whole bool) {
	var head struct {
		ID   string `json:"@odata.id"`
		ETag string `json:"@odata.etag"`
		Name json.RawMessage
		Type string `json:"@odata.type"`
	}
	if json.Unmarshal(raw, &head) != nil {
		l, _, err := decode[link](raw)
		if err != nil {
			return member{}, false
		}
		head.ID = l.ID
	}
	// Every resource has a type and a name (DSP0266 §9.5), a link neither.
	return member{uri: path(head.ID), etag: head.ETag, raw: raw}, head.Type != "" || head.Name != nil
}

// oddProblem says which properties were left out.
func oddProblem(uri string, odd []string) string {
	const most = 5
	if len(odd) > most {
		odd = append(slices.Clip(odd[:most]), "…")
	}
	return printable(fmt.Sprintf("%s: left out, as not in the schema's form: %s", uri, strings.Join(odd, ", ")), maxDetail)
}

// maxText bounds a text that is kept of a resource, in bytes.
const maxText = 256

// clip returns a text as it may be kept: serial numbers come with blanks around
// them and with what their memory happened to hold behind them.
func clip(s string) string { return printable(s, maxText) }
