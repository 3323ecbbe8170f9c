package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"ingot/reconcile/report"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

// Help implements kong.HelpProvider.
func (completionCommand) Help() string {
	return `Prints the script that makes a shell complete commands and flags.

Examples:

  source <(ingot completion bash)
  ingot completion zsh >"${fpath[1]}/_ingot"
  ingot completion fish >~/.config/fish/completions/ingot.fish`
}

// Completions ask the program itself, so that they are those of the version that runs.
var completions = map[string]string{
	"bash": `_ingot() {
	local IFS=$'\n'
	COMPREPLY=($(ingot __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _ingot ingot
`,
	"zsh": `#compdef ingot
_ingot() {
	local -a found
	found=("${(@f)$(ingot __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "$found" ]]; then compadd -a found; else _files; fi
}
if [ "$funcstack[1]" = "_ingot" ]; then _ingot "$@"; else compdef _ingot ingot; fi
`,
	"fish": `complete -c ingot -a '(ingot __complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
}

// Run prints the completion of a shell.
func (k completionCommand) Run(c *console) error {
	c.printf("%s", completions[k.Shell])
	return nil
}

type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:""`
}

// Run prints what the last word of a command line can become.
func (k completeCommand) Run(c *console, app *kong.Kong) error {
	words := k.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, word := range complete(app.Model.Node, words) {
		c.printf("%s\n", word)
	}
	return nil
}

// complete returns what the last of words can become: commands, flags, or the values that an
// argument or a flag allows. Files are for the shell.
func complete(at *kong.Node, words []string) []string {
	if len(words) == 0 {
		words = []string{""}
	}
	last, positional := words[len(words)-1], 0
	var flag *kong.Flag // that waits for its value
	for _, word := range words[:len(words)-1] {
		switch {
		case flag != nil:
			flag = nil
		case strings.HasPrefix(word, "-"):
			if flag = flagOf(at, word); flag != nil && (flag.IsBool() || strings.Contains(word, "=")) {
				flag = nil
			}
		default:
			if child := childOf(at, word); child != nil {
				at = child
			} else {
				positional++
			}
		}
	}
	var all []string
	switch {
	case flag != nil:
		all = flag.EnumSlice()
	case strings.HasPrefix(last, "-"):
		all = flagNames(at)
	default:
		all = append(commandNames(at), argumentValues(at, positional)...)
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" || !strings.HasPrefix(s, last) })
}

func childOf(at *kong.Node, name string) *kong.Node {
	for _, child := range at.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

func commandNames(at *kong.Node) []string {
	var all []string
	for _, child := range at.Children {
		if !child.Hidden {
			all = append(all, child.Name)
		}
	}
	return all
}

// argumentValues are the values that the n-th argument allows, if they are told.
func argumentValues(at *kong.Node, n int) []string {
	if n >= len(at.Positional) {
		return nil
	}
	argument := at.Positional[n]
	if argument.Enum == "" {
		return strings.Fields(argument.Tag.Get("values"))
	}
	return argument.EnumSlice()
}

func flagOf(at *kong.Node, word string) *kong.Flag {
	name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
	for _, group := range at.AllFlags(false) {
		for _, f := range group {
			if f.Name == name || f.Short != 0 && string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func flagNames(at *kong.Node) []string {
	var all []string
	for _, group := range at.AllFlags(true) {
		for _, f := range group {
			all = append(all, "--"+f.Name)
		}
	}
	return all
}

// nounOf returns the noun of a kind, however it is named; an unknown word as it is.
func nounOf(word string) string { return cmp.Or(report.FolderOf(word).Noun(), word) }

func versionLine() string { return fmt.Sprintf("ingot %s", thisBuild().Version) }
