package gitsource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"ingot/model"
)

// Ref is what of a repository is followed: one of its fields is set.
type Ref struct {
	Branch string
	Tag    string
	Semver string // a range of versions, of which the newest tag is followed
}

// commitName precedes the hash in the revision of a commit below the followed tag.
const commitName = "commit"

// target is what a Ref stands for now.
type target struct {
	name   string        // of the branch or tag
	commit plumbing.Hash // the commit, also of an annotated tag
	tag    plumbing.Hash // the object of an annotated tag, else zero
}

// object is what to ask a server for, which knows an annotated tag by its object alone.
func (t target) object() plumbing.Hash {
	if t.tag.IsZero() {
		return t.commit
	}
	return t.tag
}

func (t target) revision() model.Revision {
	if t.commit.IsZero() {
		return ""
	}
	return model.Revision(t.name + "@sha1:" + t.commit.String())
}

// Check returns what is wrong with a Ref, without asking a server.
func (r Ref) Check() error {
	if n := len(slices.DeleteFunc([]string{r.Branch, r.Tag, r.Semver}, func(s string) bool { return s == "" })); n != 1 {
		return errors.New("exactly one of branch, tag and semver can be followed: leave the others out")
	}
	switch {
	case r.Branch != "" && !validBranch(r.Branch):
		return fmt.Errorf("branch %q is not a valid name of a branch", r.Branch)
	case r.Tag != "" && !validBranch(r.Tag):
		return fmt.Errorf("tag %q is not a valid name of a tag", r.Tag)
	}
	if r.Semver != "" {
		if _, err := semver.NewConstraint(r.Semver); err != nil {
			return fmt.Errorf("semver %q is no range of versions, such as >=1.2.0 <2.0.0 or ~1.4: %w", r.Semver, err)
		}
	}
	return nil
}

// excludes reports whether the configuration itself selects another revision than the one
// applied: another tag, or a range without its version.
func (r Ref) excludes(applied model.Applied) bool {
	return r.Tag != "" && r.Tag != applied.Ref ||
		r.Semver != "" && newestVersion(r.Semver, []string{applied.Ref}) == ""
}

// String is the Ref for people.
func (r Ref) String() string {
	switch {
	case r.Tag != "":
		return "tag " + r.Tag
	case r.Semver != "":
		return "semver " + r.Semver
	}
	return r.Branch
}

// find returns the commit that the Ref names on the server.
func (r Ref) find(adv *packp.AdvRefs) (target, error) {
	if r.Branch != "" {
		head, ok := adv.References[branchRef(r.Branch).String()]
		if !ok {
			return target{}, missing("branch", r.Branch, refNames(adv, "refs/heads/"))
		}
		return target{name: r.Branch, commit: head}, nil
	}
	tags := refNames(adv, "refs/tags/")
	tag := r.Tag
	if r.Semver != "" {
		if tag = newestVersion(r.Semver, tags); tag == "" {
			err := fmt.Errorf("no tag is a version in the range %s: the repository has %s", r.Semver, listed(tags))
			return target{}, &failure{failureBranch, err}
		}
	}
	ref := plumbing.NewTagReferenceName(tag).String()
	object, ok := adv.References[ref]
	if !ok {
		return target{}, missing("tag", tag, tags)
	}
	if commit, annotated := adv.Peeled[ref]; annotated {
		return target{name: tag, commit: commit, tag: object}, nil
	}
	return target{name: tag, commit: object}, nil
}

// missing says that there is no such branch or tag, and what there is of a similar name.
func missing(kind, name string, known []string) error {
	err := fmt.Errorf("%s %q does not exist", kind, name)
	if near := model.Nearest(name, known); near != "" {
		err = fmt.Errorf("%w, did you mean %s?", err, near)
	} else if kind == "tag" {
		err = fmt.Errorf("%w: the repository has %s", err, listed(known))
	}
	return &failure{failureBranch, err}
}

// refNames are the names of refs below a prefix, in order.
func refNames(adv *packp.AdvRefs, prefix string) []string {
	var names []string
	for ref := range adv.References {
		if name, ok := strings.CutPrefix(ref, prefix); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// maxListed is how many names a message lists.
const maxListed = 5

func listed(names []string) string {
	switch n := len(names); {
	case n == 0:
		return "none"
	case n > maxListed:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), n-maxListed)
	}
	return strings.Join(names, ", ")
}

// newestVersion returns the tag with the highest version in a range, "" if there is none.
// Versions before a release count only where the range names one. Of several tags of one
// version the first by name is taken, so that all see the same.
func newestVersion(versions string, tags []string) string {
	within, err := semver.NewConstraint(versions)
	if err != nil {
		return ""
	}
	var best string
	var highest *semver.Version
	for _, tag := range tags {
		v, err := semver.StrictNewVersion(strings.TrimPrefix(tag, "v"))
		if err != nil || !within.Check(v) || highest != nil && !v.GreaterThan(highest) {
			continue
		}
		best, highest = tag, v
	}
	return best
}
