package sim

import (
	"crypto/rand"
	"crypto/subtle"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"ingot/model"
)

// sessionRules are how many sessions a BMC keeps open, and how long one lives unused.
type sessionRules struct {
	limit int
	idle  time.Duration
}

// sessionRules are those of the personality, and of the options before it.
func (r *Rack) sessionRules() sessionRules {
	return sessionRules{limit: orDefault(r.opts.SessionLimit, r.kind.sessions), idle: r.kind.idle}
}

// maxAccounts is how many accounts a BMC keeps.
const maxAccounts = 16

// sessions are the open sessions of a BMC.
type sessions struct {
	mu      sync.Mutex
	byToken map[string]*session // by token
	last    int
}

type session struct {
	id       string
	user     string
	idle     time.Duration // after which it is closed
	created  time.Time
	usedAt   time.Time
	requests int
}

// add opens a session and returns its token, or false at the limit.
func (s *sessions) add(user string, rules sessionRules, now time.Time) (string, session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if len(s.byToken) >= rules.limit {
		return "", session{}, false
	}
	if s.byToken == nil {
		s.byToken = make(map[string]*session)
	}
	s.last++
	token := rand.Text()
	added := &session{id: strconv.Itoa(s.last), user: user, idle: rules.idle, created: now, usedAt: now}
	s.byToken[token] = added
	return token, *added, true
}

// expire closes sessions that were not used for long.
func (s *sessions) expire(now time.Time) {
	for token, e := range s.byToken {
		if now.Sub(e.usedAt) > e.idle {
			delete(s.byToken, token)
		}
	}
}

// use reports whose session has the token, and counts the request. With a limit
// above 0 a session ends after so many.
func (s *sessions) use(token string, limit int, now time.Time) (user string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byToken[token]
	switch {
	case e == nil:
		return "", false
	case now.Sub(e.usedAt) > e.idle, limit > 0 && e.requests >= limit:
		delete(s.byToken, token)
		return "", false
	}
	e.usedAt = now
	e.requests++
	return e.user, true
}

func (s *sessions) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.byToken)
}

func (s *sessions) open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byToken)
}

func (s *sessions) ids() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ids := make([]string, 0, len(s.byToken))
	for _, e := range s.byToken {
		ids = append(ids, e.id)
	}
	slices.SortFunc(ids, byNumber)
	return ids
}

// byNumber orders decimal numbers.
func byNumber(a, b string) int {
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (s *sessions) get(id string) (session, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.byToken {
		if e.id == id {
			return *e, true
		}
	}
	return session{}, false
}

func (s *sessions) remove(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, e := range s.byToken {
		if e.id == id {
			delete(s.byToken, token)
		}
	}
}

// removeUser closes the sessions of an account that is no more.
func (s *sessions) removeUser(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, e := range s.byToken {
		if e.user == user {
			delete(s.byToken, token)
		}
	}
}

// accounts are the accounts of a BMC, by position: their ID is the position from 1.
type accounts struct {
	mu   sync.Mutex
	list []account
}

// account is one account; one without a name is deleted.
type account struct {
	name     string
	password model.Sensitive
	role     string
	enabled  bool
}

// add makes an account and returns its ID, "" when there are too many.
func (a *accounts) add(n account) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.list {
		if a.list[i].name == "" {
			a.list[i] = n
			return strconv.Itoa(i + 1)
		}
	}
	if len(a.list) >= maxAccounts {
		return ""
	}
	a.list = append(a.list, n)
	return strconv.Itoa(len(a.list))
}

// check reports whether the credentials are those of an enabled account.
func (a *accounts) check(name, password string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := false
	for _, e := range a.list {
		same := subtle.ConstantTimeCompare([]byte(e.password.Reveal()), []byte(password)) == 1
		if e.name != "" && e.name == name && e.enabled && same {
			found = true
		}
	}
	return found
}

func (a *accounts) ids() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var ids []string
	for i, e := range a.list {
		if e.name != "" {
			ids = append(ids, strconv.Itoa(i+1))
		}
	}
	return ids
}

func (a *accounts) get(id string) (account, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	i, err := strconv.Atoi(id)
	if err != nil || i < 1 || i > len(a.list) || a.list[i-1].name == "" {
		return account{}, false
	}
	return a.list[i-1], true
}

func (a *accounts) change(id string, change func(*account)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i, err := strconv.Atoi(id); err == nil && i >= 1 && i <= len(a.list) {
		change(&a.list[i-1])
	}
}

func (a *accounts) named(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.list, func(e account) bool { return e.name == name })
}

func (a *accounts) role(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.list {
		if e.name == name {
			return e.role
		}
	}
	return ""
}

// user returns who makes the request, by session or by password.
func (b service) user(r *http.Request) (string, bool) {
	if b.faults.has(FaultUnauthorized) {
		return "", false
	}
	if token := r.Header.Get("X-Auth-Token"); token != "" {
		drop, _ := b.faults.get(FaultDropSessions)
		return b.sessions.use(token, drop.Requests, time.Now())
	}
	name, password, ok := r.BasicAuth()
	return name, ok && b.accounts.check(name, password)
}
