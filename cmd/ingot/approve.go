package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"ingot/gitsource"
	"ingot/model"
	"ingot/model/text"
	"ingot/reconcile/plan/proposal"
	"ingot/reconcile/report"
)

type approveCommand struct {
	Repository string   `default:"." placeholder:"DIR" type:"path" help:"A clone of the repository. Default: the working directory."`
	Branch     string   `default:"main" placeholder:"NAME" help:"The branch to commit to, which must be checked out. Default: ${default}."`
	Status     string   `default:"status" placeholder:"NAME" help:"The status branch, local or as last fetched. Default: ${default}."`
	Remote     string   `default:"origin" placeholder:"NAME" help:"The remote that the clone fetches from and pushes to. Default: ${default}."`
	Token      []string `placeholder:"TOKEN" help:"Approve the list, or the entry of a list, with this token; may be given several times. Required if several lists are waiting."`
	Yes        bool     `short:"y" help:"Do not ask."`
	Push       bool     `help:"Push the commit to the remote."`
	DryRun     bool     `help:"Print the commit message without making a commit."`
}

// Help implements kong.HelpProvider.
func (approveCommand) Help() string {
	return `Shows what Ingot holds back and what will happen to each machine once it is approved, asks for confirmation, and makes an empty commit whose last line, Ingot-Approve: TOKEN, approves exactly that. Your own git makes the commit, with your name, signature and hooks.

A list that changes gets a new token, so nobody approves what they have not read. If the branch is protected, make the commit on a branch of its own (--branch) and merge it with its message.

Exits 0 if the commit was made or nothing is held back.

Examples:

  git pull && ingot approve
  ingot approve --push
  ingot approve --dry-run
  ingot approve --token 3k5yq2m7xw4d6h7aelba --yes --push
  git switch -c approve-releases && ingot approve --branch approve-releases`
}

type approval struct {
	Held    []report.Hold `json:"held"`              // all that waits
	Message string        `json:"message,omitempty"` // of the commit
	Commit  string        `json:"commit,omitempty"`  // once it is made
	Pushed  bool          `json:"pushed"`
}

// Run makes the commit that approves what is held.
func (a approveCommand) Run(ctx context.Context, c *console) error {
	g, err := openClone(ctx, c, a.Repository, a.Remote)
	if err != nil {
		return err
	}
	status, err := a.fresh(ctx, g)
	if err != nil {
		return err
	}
	held, observed, err := a.held(ctx, g, status)
	if err != nil {
		return err
	}
	done := approval{Held: held}
	if len(held) == 0 && len(a.Token) == 0 {
		return a.report(c, done, "Nothing waits for an approval: the status branch was written "+age(status.written, time.Now())+" ago.")
	}
	chosen, err := a.choose(c, held)
	if err != nil {
		return err
	}
	done.Message = approvalMessage(chosen)
	if a.DryRun {
		return a.report(c, done, strings.TrimSuffix(done.Message, "\n"))
	}
	if err := a.ready(ctx, g, observed); err != nil {
		return err
	}
	if err := a.ask(c, chosen); err != nil {
		return err
	}
	if err := a.unchanged(ctx, g, status, done.Message); err != nil {
		return err
	}
	if done.Commit, err = a.commit(ctx, g, done.Message); err != nil {
		return err
	}
	if !a.Push {
		return a.report(c, done, fmt.Sprintf("Committed as %.12s. Push it: git push %s HEAD:%s", done.Commit, a.Remote, a.Branch))
	}
	if err := g.show(ctx, "push", "--quiet", a.Remote, "HEAD:refs/heads/"+a.Branch); err != nil {
		return fmt.Errorf("the approval is committed here as %.12s, and was not pushed: %w", done.Commit, err)
	}
	done.Pushed = true
	return a.report(c, done, fmt.Sprintf("Committed as %.12s, and pushed to %s of %s.", done.Commit, a.Branch, a.Remote))
}

func (a approveCommand) report(c *console, done approval, says string) error {
	if c.json() {
		if done.Held == nil {
			done.Held = []report.Hold{}
		}
		return c.printJSON(done)
	}
	c.printf("%s\n", says)
	return nil
}

// fresh returns the status branch, if the remote has no newer one: what is held may be
// another list by now.
func (a approveCommand) fresh(ctx context.Context, g *clone) (localBranch, error) {
	status, err := g.branch(ctx, a.Status)
	if err != nil {
		return status, err
	}
	head, err := g.remoteHead(ctx, a.Status)
	switch {
	case err != nil:
		g.c.log.Warn("the remote does not say whether its status branch is newer", "written", status.written, "err", err)
	case head != "" && head != status.commit:
		return status, fmt.Errorf("the branch %s of this clone was written %s ago, and %s has another one by now: %s",
			a.Status, age(status.written, time.Now()), a.Remote, g.fetchAdvice(a.Status))
	}
	return status, nil
}

func (a approveCommand) held(ctx context.Context, g *clone, status localBranch) ([]report.Hold, model.Revision, error) {
	files, err := g.files(ctx, status)
	if err != nil {
		return nil, "", err
	}
	doc, err := report.ReadFleet(files)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", strings.TrimPrefix(status.ref, "refs/"), err)
	}
	return doc.Holds, cmp.Or(doc.Observed, doc.Applied), nil
}

// choose returns the lists that are to be approved: those whose tokens are given, or the
// only one.
func (a approveCommand) choose(c *console, held []report.Hold) ([]report.Hold, error) {
	if len(a.Token) == 0 {
		if len(held) == 1 {
			return held, nil
		}
		if !c.json() {
			printHeld(c, held, time.Now())
		}
		return nil, fmt.Errorf("%s wait, and each is approved by itself: name one with --token", text.Plural(len(held), "list"))
	}
	var chosen []report.Hold
	for _, token := range a.Token {
		h, known := byToken(held, token)
		if !known {
			return nil, fmt.Errorf("nothing that is held has the token %s: a list that changes gets a new one; "+
				"see what is held with ingot approve --dry-run", printable(token))
		}
		if !slices.ContainsFunc(chosen, func(o report.Hold) bool { return o.Approve == h.Approve }) {
			chosen = append(chosen, h)
		}
	}
	return chosen, nil
}

// byToken returns the list, or the entry of one, that a token approves.
func byToken(held []report.Hold, token string) (report.Hold, bool) {
	for _, h := range held {
		if h.Token() == token {
			return h, true
		}
		for _, e := range h.Effects {
			if e.Token() == token {
				return h.Alone(e), true
			}
		}
	}
	return report.Hold{}, false
}

// maxMessageLines is how many effects the message of a commit lists.
const maxMessageLines = 500

// approvalMessage is the message of the commit: what is approved, and last the lines that
// approve it.
func approvalMessage(chosen []report.Hold) string {
	var b strings.Builder
	subject := "approve " + chosen[0].Subject
	if len(chosen) > 1 {
		subject = "approve " + text.Plural(len(chosen), "list") + " of what Ingot holds"
	}
	b.WriteString(printable(subject) + "\n\n")
	lines := 0
	for _, h := range chosen {
		for _, e := range h.Effects {
			if lines++; lines <= maxMessageLines {
				b.WriteString("- " + printable(e.Text) + "\n")
			}
		}
		if h.LeftOut > 0 {
			fmt.Fprintf(&b, "- and %d more\n", h.LeftOut)
		}
	}
	if lines > maxMessageLines {
		fmt.Fprintf(&b, "- and %d more\n", lines-maxMessageLines)
	}
	b.WriteString("\n")
	for _, h := range chosen {
		b.WriteString(printable(h.Approve) + "\n")
	}
	return b.String()
}

// ready checks whether an empty commit, and nothing else, can be made on the branch.
func (a approveCommand) ready(ctx context.Context, g *clone, observed model.Revision) error {
	at, err := g.git(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil {
		return fmt.Errorf("no branch is checked out (HEAD is detached): git switch %s", a.Branch)
	}
	if at != a.Branch {
		return fmt.Errorf("the branch %s is checked out, not %s: git switch %s, or name it with --branch", at, a.Branch, a.Branch)
	}
	for _, busy := range []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD"} {
		if g.has(ctx, busy) {
			return fmt.Errorf("git is in the middle of something (%s): end it first", busy)
		}
	}
	if !g.has(ctx, "HEAD") {
		return fmt.Errorf("the branch %s has no commit yet: git pull", a.Branch)
	}
	if _, err := g.git(ctx, "diff", "--cached", "--quiet"); err != nil {
		return errors.New("something is staged, which the commit would include: commit it first, or unstage it")
	}
	if _, err := g.git(ctx, "var", "GIT_COMMITTER_IDENT"); err != nil {
		return fmt.Errorf("git does not know who you are: git config user.name NAME; git config user.email ADDRESS (%w)", err)
	}
	if commit := observed.Commit(); commit != "" {
		if _, err := g.git(ctx, "merge-base", "--is-ancestor", commit, "HEAD"); err != nil {
			return fmt.Errorf("the branch %s here lacks the revision that Ingot has seen, %s: git pull", a.Branch, printable(string(observed)))
		}
	}
	return a.onlyThis(ctx, g)
}

// onlyThis checks whether a push would take along nothing but the approval.
func (a approveCommand) onlyThis(ctx context.Context, g *clone) error {
	upstream := "refs/remotes/" + a.Remote + "/" + a.Branch
	if !a.Push || !g.has(ctx, upstream) {
		return nil
	}
	n, err := g.git(ctx, "rev-list", "--count", upstream+"..HEAD")
	if err == nil && n != "0" {
		err = fmt.Errorf("a push would include %s more commits of branch %s that %s does not have: push them first, or omit --push", n, a.Branch, a.Remote)
	}
	return err
}

// ask shows what will happen and has somebody say yes.
func (a approveCommand) ask(c *console, chosen []report.Hold) error {
	if !c.json() {
		printHeld(c, chosen, time.Now())
	}
	if a.Yes {
		return nil
	}
	if !c.person || c.json() {
		return errors.New("no terminal to ask on: approve with --yes")
	}
	c.printf("\nApprove this? Type yes: ")
	answer, _ := bufio.NewReader(c.in).ReadString('\n') // without an answer it is none
	if strings.TrimSpace(strings.ToLower(answer)) != "yes" {
		return errors.New("not approved: no commit was made")
	}
	return nil
}

// unchanged checks whether what was shown is still what is held.
func (a approveCommand) unchanged(ctx context.Context, g *clone, before localBranch, message string) error {
	now, err := a.fresh(ctx, g)
	if err != nil || now.commit == before.commit {
		return err
	}
	held, _, err := a.held(ctx, g, now)
	if err != nil {
		return err
	}
	a.Token = gitsource.Trailers(message)["ingot-approve"]
	chosen, err := a.choose(g.c, held)
	if err != nil || approvalMessage(chosen) != message {
		return errors.Join(errors.New("what is held has changed while you read it: no commit was made"), err)
	}
	return nil
}

// commit makes the commit, and checks whether a hook left its message alone.
func (a approveCommand) commit(ctx context.Context, g *clone, message string) (string, error) {
	if err := g.show(ctx, "commit", "--quiet", "--allow-empty", "--cleanup=whitespace", "-m", message); err != nil {
		return "", fmt.Errorf("no commit was made: %w", err)
	}
	commit, err := g.git(ctx, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	made, err := g.git(ctx, "log", "-1", "--format=%B", commit)
	if err != nil {
		return "", err
	}
	for _, token := range gitsource.Trailers(message)["ingot-approve"] {
		if !slices.Contains(gitsource.Trailers(made)["ingot-approve"], token) {
			return "", fmt.Errorf("the commit %.12s approves nothing: a hook or a setting of git put something after the line %q, "+
				"which has to be in the last paragraph of its message: git commit --amend", commit, proposal.ApproveLine(token))
		}
	}
	return commit, nil
}

// printHeld prints lists that wait for an approval.
func printHeld(c *console, held []report.Hold, now time.Time) {
	for i, h := range held {
		if i > 0 {
			c.printf("\n")
		}
		printWaiting(c, h, now)
		c.printf("  Token: %s\n", printable(h.Token()))
		if h.Revert != "" {
			c.printf("  Refuse it with: %s\n", printable(h.Revert))
		}
	}
}
