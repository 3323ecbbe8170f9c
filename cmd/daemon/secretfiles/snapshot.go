package secretfiles

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"ingot/model"
)

// held is a secret of the folder that is in use.
type held struct {
	object model.Object
	// gone is set once the folder has it no more.
	gone bool
}

// snapshot is what is in use of a folder. It is not changed once made.
type snapshot struct {
	secrets  map[model.Identity]held
	problems []model.Problem
}

// next is what is in use once a folder was read: what is there in whole, and what was there
// before if it is gone, or half of it is. Whoever changes files changes them one by one.
func (s *snapshot) next(dir string, c contents) *snapshot {
	n := &snapshot{secrets: make(map[model.Identity]held), problems: c.publicProblem(dir)}
	for path, what := range c.odd {
		n.wrong(model.SeverityWarning, filepath.Join(dir, path), "", what)
	}
	for id, places := range c.places {
		place := filepath.Join(dir, places[0])
		object, fault := c.object(id, place)
		if fault == "" {
			n.secrets[id] = held{object: object}
			continue
		}
		before, had := s.secrets[id]
		if had {
			n.secrets[id] = held{object: before.object}
			fault += "; what it was before stays in use"
		}
		n.wrong(model.SeverityError, place, id.String(), fault)
	}
	for id, before := range s.secrets {
		if _, there := n.secrets[id]; !there {
			n.secrets[id] = held{object: before.object, gone: true}
		}
	}
	model.SortProblems(n.problems)
	return n
}

// unreadable is what is in use while the folder cannot be read.
func (s *snapshot) unreadable(dir string, err error) *snapshot {
	n := &snapshot{secrets: s.secrets}
	n.wrong(model.SeverityError, dir, "", fmt.Sprintf("secretFiles cannot be read: %v; what was read of it before stays in use", err))
	return n
}

func (s *snapshot) wrong(severity model.Severity, file, object, message string) {
	s.problems = append(s.problems, model.Problem{Severity: severity, File: file, Object: object, Message: message, Rule: model.RuleSecret})
}

// object makes the object of an identity, or says why it cannot be used as it stands.
func (c contents) object(id model.Identity, place string) (model.Object, string) {
	values := c.values[id]
	switch {
	case len(c.places[id]) > 1:
		return nil, "stands there twice, as " + strings.Join(c.places[id], " and ") + ": take one of them away"
	case c.faults[id] != "":
		return nil, c.faults[id]
	case len(values) == 0:
		return nil, "has no keys"
	}
	if id.Kind == model.KindBMCSecret {
		for _, key := range []string{"username", "password"} {
			if v, ok := values[key]; !ok || v.IsZero() {
				return nil, "has no " + key
			}
		}
	}
	o, err := model.NewSecret(id, values, place)
	if err != nil {
		return nil, err.Error()
	}
	return o, ""
}

// join adds the secrets to what Git asks for. Of what stands in both places Git's counts, for
// it was reviewed.
func (s *snapshot) join(d *model.Desired, dir string, tenants model.Tenants) *model.Desired {
	if d == nil {
		return nil
	}
	n := new(model.Desired)
	*n = *d
	n.BMCSecrets, n.Secrets, n.SecretFiles = maps.Clone(d.BMCSecrets), maps.Clone(d.Secrets), dir
	n.Problems = append(slices.Clip(n.Problems), s.problems...)
	used := model.SecretsInUse(d)
	for id, h := range s.secrets {
		file := h.object.Metadata().Source
		switch {
		case d.HasSecret(id):
			n.Problems = append(n.Problems, model.Problem{Severity: model.SeverityError, File: file, Object: id.String(),
				Rule: model.RuleDefinedTwice, Message: "is also defined in Git, which counts: take it out of one of them"})
			continue
		case h.gone && !used[id]:
			continue
		case h.gone:
			n.Problems = append(n.Problems, model.Problem{Severity: model.SeverityWarning, File: file, Object: id.String(),
				Rule: model.RuleSecret, Message: "is gone, and what it was stays in use until Ingot restarts: put it back, or take out what names it"})
		}
		n.Add(owned(h.object, tenants))
	}
	n.Problems = append(n.Problems, model.MissingSecrets(n)...)
	model.SortProblems(n.Problems)
	return n
}

func owned(o model.Object, tenants model.Tenants) model.Object {
	owner := tenants.SecretOwner(o.Identity())
	switch o := o.(type) {
	case *model.BMCSecret:
		c := *o
		c.Tenant = owner
		return &c
	case *model.Secret:
		c := *o
		c.Tenant = owner
		return &c
	}
	return o
}
