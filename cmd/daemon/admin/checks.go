package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ingot/model"
	"ingot/registry"
)

// Parts are what the daemon's readiness depends on.
type Parts struct {
	Store     Store
	Publisher Publisher
	// RecordsRead returns nil once the records were read, or why they were not.
	RecordsRead func() error
	Source      Source
	// NetworksServed returns nil, or which network cannot be served; nil = there is none.
	NetworksServed func() error
	// LoadersThere returns nil, or a Remark on which boot loaders are missing; nil = none is needed.
	LoadersThere func() error
}

// Store is the store of records, and which process leads.
type Store interface {
	Healthy() error
	State() (registry.LeadState, error)
}

// Publisher pushes the status branch.
type Publisher interface {
	// Failing returns since when the branch cannot be pushed, and why.
	Failing() (since time.Time, err error)
}

// Source reads Git.
type Source interface {
	State() model.SourceState
	Desired() *model.Desired // nil while no revision was read
}

// Checks returns the readiness check of each part.
func Checks(p Parts) []Check {
	check := func(name string, do func() error) Check {
		return Check{Name: name, Do: func(context.Context) error { return do() }}
	}
	return []Check{
		check("store", p.Store.Healthy),
		check("leadership", p.leads),
		check("status", p.published),
		check("records", p.RecordsRead),
		check("git", p.gitRead),
		check("networks", unlessNil(p.NetworksServed)),
		check("loaders", unlessNil(p.LoadersThere)),
	}
}

// unlessNil returns do, which finds nothing where it is nil.
func unlessNil(do func() error) func() error {
	if do == nil {
		return func() error { return nil }
	}
	return do
}

func (p Parts) leads() error {
	switch state, why := p.Store.State(); state {
	case registry.Leads:
		return nil
	case registry.Follows:
		return fmt.Errorf("this one stands by: %w", why)
	case registry.StoreSilent:
		return fmt.Errorf("nobody knows who leads, because the store does not answer: %w", why)
	default:
		return why
	}
}

func (p Parts) published() error {
	since, err := p.Publisher.Failing()
	if err == nil {
		return nil
	}
	return fmt.Errorf("the status branch cannot be pushed since %s, so nothing disruptive begins: %w", since.UTC().Format(time.RFC3339), err)
}

func (p Parts) gitRead() error {
	s, none := p.Source.State(), p.Source.Desired() == nil
	switch {
	case s.Reason == model.SourceFetchFailed, none && s.Message != "":
		return errors.New(s.Message)
	case none:
		return errors.New("no revision was read yet")
	}
	return nil
}
