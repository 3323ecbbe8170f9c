// Package claimcheck finds the claims that Ingot cannot boot, as far as that is known without the network: a mistake in
// a Secret or an annotation, an image without a registry, a registry that is not allowed. The command line, the plan
// and the daemon report what it finds.
package claimcheck

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ingot/bootsvc/ignition"
	"ingot/model"
)

// Checker checks claims. It remembers the result for each claim and Secret, and is not safe for concurrent use.
type Checker struct {
	Compiler *ignition.Compiler
	// Allowed returns why the configuration does not allow an image; nil = the configuration is unknown.
	Allowed func(image string) error

	known map[*model.ServerClaim]result
}

type result struct {
	secret   *model.Secret
	problems []model.Problem
}

// Check returns an error for each mistake. Secrets that were not decrypted are not checked.
func (k *Checker) Check(d *model.Desired) []model.Problem {
	var problems []model.Problem
	known, used := make(map[*model.ServerClaim]result, len(d.Claims)), make(map[*model.Secret]bool)
	for _, c := range d.Claims {
		secret, wrong := d.BootSecret(c)
		if wrong != "" {
			problems = append(problems, unusable(d, c)...)
		}
		used[secret] = true
		r, same := k.known[c]
		if !same || r.secret != secret {
			r = result{secret, k.documents(c, secret)}
		}
		known[c] = r
		problems = append(problems, r.problems...)
		problems = append(problems, k.image(d, c)...)
		if c.Spec.UserDataRef != nil { // of the metadata service
			used[d.Secrets[model.Named[model.ObjectName](c.Namespace, c.Spec.UserDataRef.Name)]] = true
		}
	}
	k.known = known
	for _, s := range d.Secrets {
		if !used[s] && s.Boots() && !s.Sealed {
			problems = append(problems, k.documents(&model.ServerClaim{Meta: model.Meta{Name: s.Name}}, s)...)
		}
	}
	model.SortProblems(problems)
	return slices.Compact(problems)
}

// Sealed returns the number of Secrets that were not decrypted.
func Sealed(d *model.Desired) (n int) {
	for s := range maps.Values(d.Secrets) {
		if s.Sealed {
			n++
		}
	}
	return n
}

// image checks where the image of a claim comes from.
func (k *Checker) image(d *model.Desired, c *model.ServerClaim) []model.Problem {
	severity, wrong := d.CheckImage(c.Spec.Image)
	if severity != model.SeverityError && k.Allowed != nil && !model.IsCatalogName(c.Spec.Image) {
		if err := k.Allowed(c.Spec.Image); err != nil {
			severity, wrong = model.SeverityError, err.Error()
		}
	}
	if wrong == "" {
		return nil
	}
	p := problemAt(c, "spec.image", wrong)
	p.Severity = severity
	return []model.Problem{p}
}

// documents checks what configures the server of a claim.
func (k *Checker) documents(c *model.ServerClaim, secret *model.Secret) []model.Problem {
	arguments := c.Annotations[model.AnnotationKernelArguments]
	_, wrong := ignition.KernelArguments(arguments)
	if wrong != nil {
		arguments = ""
	}
	err := k.Compile(secret, arguments, ignition.CheckFor{
		Image: c.Spec.Image, Seed: model.SeedKind(c.Annotations[model.AnnotationSeed]), Always: c.Annotations[model.AnnotationBoot] == "always",
	})
	var problems []model.Problem
	for _, err := range []error{wrong, err} {
		source, is := errors.AsType[*ignition.SourceError](err)
		if !is {
			continue
		}
		annotation, is := strings.CutPrefix(source.Of, "annotation ")
		for _, p := range source.Problems {
			if is {
				problems = append(problems, problemAt(c, "metadata.annotations["+annotation+"]", p.Text()))
			} else {
				problems = append(problems, inSecret(secret, source.Of, p))
			}
		}
	}
	return problems
}

// Compile returns why no server can be configured with a Secret, which may be nil, and kernel arguments.
func (k *Checker) Compile(secret *model.Secret, arguments string, boot ignition.CheckFor) error {
	b := ignition.ClaimBoot{KernelArguments: arguments, Hostname: "server"}
	if secret != nil && !secret.Sealed {
		b.Secret = secret.Values
	}
	return k.Compiler.Check(b, boot)
}

// inSecret is a problem of a value of a Secret, in the line of the file if the value is a block of text there.
func inSecret(secret *model.Secret, key string, of ignition.SourceProblem) model.Problem {
	p := problemAt(secret, "stringData."+key, of.Text())
	at, noted := secret.Place(p.Field)
	if !noted {
		p = problemAt(secret, "data."+key, of.Text())
	}
	if at.Indent > 0 && of.Line > 0 {
		p.Line, p.Column, p.Message = at.Line+of.Line, at.Indent+max(of.Column, 1), of.Message
	}
	return p
}

// unusable is the problem of a Secret without a key that a server boots with, or of another tenant.
func unusable(d *model.Desired, c *model.ServerClaim) []model.Problem {
	secret := d.Secrets[model.Named[model.ObjectName](c.Namespace, c.Spec.IgnitionSecretRef.Name)]
	switch {
	case secret == nil: // a warning elsewhere
		return nil
	case secret.Tenant != c.Tenant:
		_, wrong := d.BootSecret(c)
		p := problemAt(c, "spec.ignitionSecretRef.name", wrong)
		if i := slices.IndexFunc(c.References, func(r model.Reference) bool { return r.Field == p.Field }); i >= 0 {
			p.Line, p.Column = c.References[i].Line, c.References[i].Column
		}
		return []model.Problem{p}
	}
	for _, at := range secret.Places {
		_, key, _ := strings.Cut(strings.TrimSuffix(at.Field, "]"), ".")
		if near := model.Nearest(key, model.BootKeys); near != "" && near != key {
			p := problemAt(secret, "", fmt.Sprintf("unknown key, did you mean %q? A server boots with the key ignition, user-data or ipxe-script", near))
			p.Line, p.Column = at.Line, at.Column
			return []model.Problem{p}
		}
	}
	return []model.Problem{problemAt(secret, "", "has no key ignition, user-data or ipxe-script: "+c.Identity().String()+" cannot boot with it")}
}

func problemAt(o model.Object, field, message string) model.Problem {
	p := model.Problem{Severity: model.SeverityError, Object: o.Identity().String(), Field: field, Message: message, Rule: model.RuleValue}
	p.File, p.Line = o.Metadata().Position()
	if at, noted := o.Metadata().Place(field); noted {
		p.Line, p.Column = at.Line, at.Column
	}
	return p
}
