package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ingot/gitsource/gitserver"
	"ingot/model"
	"ingot/reconcile/report"
)

// demoResult is what the script measured.
type demoResult struct {
	Servers          int     `json:"servers"`
	DiscoverySeconds float64 `json:"discoverySeconds"` // until all servers were Available
	ClaimSeconds     float64 `json:"claimSeconds"`     // from the commit until the claim was Booted
	ReleaseSeconds   float64 `json:"releaseSeconds"`   // from the commit until the server was wiped and Available
	StatusCommits    int     `json:"statusCommits"`
	RedfishRequests  int64   `json:"redfishRequests"`
}

// script claims a server by a commit and releases it by another.
func (s *demoShow) script(ctx context.Context) error {
	result := demoResult{Servers: s.Servers}
	var server model.ServerName
	steps := []struct {
		what    string
		do      func() error
		done    func(*report.Documents) (bool, string)
		seconds *float64
	}{
		{"all servers are Available", nil, s.allAvailable, &result.DiscoverySeconds},
		{"claim " + string(claimName) + " is Booted", s.world.claim, func(now *report.Documents) (bool, string) {
			return claimBooted(now, &server)
		}, &result.ClaimSeconds},
		{"the server is wiped and Available", s.world.release, func(now *report.Documents) (bool, string) {
			return released(now, server)
		}, &result.ReleaseSeconds},
		{"the status branch says so", nil, func(*report.Documents) (bool, string) {
			return s.world.statusSaysReleased(server)
		}, nil},
	}
	for _, step := range steps {
		seconds, err := s.step(ctx, step.what, step.do, step.done)
		if err != nil {
			return err
		}
		if step.seconds != nil {
			*step.seconds = seconds
		}
	}
	log, err := s.world.repository.ReadLog(statusBranch)
	if err != nil {
		return fmt.Errorf("read the log of the status branch: %w", err)
	}
	result.StatusCommits, result.RedfishRequests = len(log), s.world.rack.Requests().Total
	if s.json() {
		return s.printJSON(result)
	}
	s.conclude(result, server, log)
	return nil
}

// step calls do and waits until done returns true. It returns how many seconds that took, to
// a tenth.
func (s *demoShow) step(ctx context.Context, what string, do func() error, done func(*report.Documents) (bool, string)) (float64, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, fmt.Errorf("not so after %s", s.Timeout))
	defer cancel()
	start := time.Now()
	if do != nil {
		if err := do(); err != nil {
			return 0, err
		}
	}
	err := s.await(ctx, what, done)
	return float64(time.Since(start).Round(100*time.Millisecond)) / float64(time.Second), err
}

func claimBooted(now *report.Documents, server *model.ServerName) (bool, string) {
	c := now.Get(report.Claims, string(claimName))
	if c == nil {
		return false, "the daemon has not seen the commit"
	}
	o := c.Overview()
	*server = o.Summary.Server
	return o.Summary.State == report.ClaimBooted, fmt.Sprintf("it is %s%s", o.Summary.State, prefixed(": ", waitingText(o.First())))
}

// released reports whether the claim is gone and its server free again.
func released(now *report.Documents, server model.ServerName) (bool, string) {
	if now.Get(report.Claims, string(claimName)) != nil {
		return false, "the claim is still there"
	}
	s := now.Get(report.Servers, string(server))
	if s == nil {
		return false, fmt.Sprintf("%s is not there", server)
	}
	o := s.Overview()
	return o.Summary.State == string(model.StateAvailable) && o.Summary.Claim == "",
		fmt.Sprintf("%s is %s%s", server, o.Summary.State, prefixed(": ", waitingText(o.First())))
}

// conclude prints the transitions of the claim and its server, and the status branch.
func (s *demoShow) conclude(r demoResult, server model.ServerName, log []gitserver.Commit) {
	s.say("\nThe claim and its server, in seconds since the start:\n\n")
	for _, t := range s.timeline {
		if t.Name == string(server) || t.Name == string(claimName) {
			s.say("%s\n", t)
		}
	}
	s.say("\nThe status branch, newest first:\n\n")
	for _, c := range log {
		subject, _, _ := strings.Cut(c.Message, "\n")
		s.say("  %.7s %s\n", c.Hash, subject)
	}
	s.say("\n%d servers discovered in %.1f s, one claimed in %.1f s and released in %.1f s; %d status commits, %d Redfish requests.\n",
		r.Servers, r.DiscoverySeconds, r.ClaimSeconds, r.ReleaseSeconds, r.StatusCommits, r.RedfishRequests)
}
