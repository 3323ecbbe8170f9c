package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// ignition is the part of an Ignition configuration, version 3, that says what
// metalprobe is to do.
type ignition struct {
	Ignition struct {
		Version string `json:"version"`
		Config  struct {
			Merge   []struct{} `json:"merge"`
			Replace struct {
				Source *string `json:"source"`
			} `json:"replace"`
		} `json:"config"`
	} `json:"ignition"`
	Storage struct {
		Files []struct {
			Path     string `json:"path"`
			Contents struct {
				Source string `json:"source"`
			} `json:"contents"`
		} `json:"files"`
	} `json:"storage"`
	Systemd struct {
		Units []struct {
			Name     string `json:"name"`
			Enabled  *bool  `json:"enabled"`
			Mask     bool   `json:"mask"`
			Contents string `json:"contents"`
		} `json:"units"`
	} `json:"systemd"`
}

// programs are the names by which a unit runs metalprobe: its own, and that of the
// script in metal-operator's container image, which passes its arguments on.
var programs = []string{"metalprobe", "launch.sh"}

// probeFlags returns the flags that an Ignition configuration starts metalprobe with.
// Its errors quote nothing from the configuration, because flags hold tokens.
func probeFlags(config []byte) ([]string, error) {
	var c ignition
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, errors.New("the Ignition is not valid JSON, or its fields have other types than Ignition's")
	}
	if !strings.HasPrefix(c.Ignition.Version, "3.") {
		return nil, fmt.Errorf("the Ignition has version %.20q: want version 3", c.Ignition.Version)
	}
	for _, u := range c.Systemd.Units {
		if u.Mask || u.Enabled != nil && !*u.Enabled {
			continue
		}
		for _, command := range commands(u.Contents) {
			if flags, ok := flagsOf(command); ok {
				return flags, nil
			}
		}
	}
	if flags, ok := c.bootStateFlags(); ok {
		return flags, nil
	}
	if len(c.Ignition.Config.Merge) > 0 || c.Ignition.Config.Replace.Source != nil {
		return nil, errors.New("the Ignition has no unit that starts metalprobe; " +
			"configurations that it merges are not fetched here: put the unit into the configuration itself")
	}
	return nil, errors.New("the Ignition has no enabled unit whose ExecStart runs metalprobe")
}

// bootStateFile is the file by which Ingot tells a claimed server where it reports that it
// is up, and as which: a URL and a UUID.
const bootStateFile = "/etc/ingot/bootstate"

// bootStateFlags returns the flags for the Ignition of a claim whose image is the probe's:
// there is nothing to do but to report that the machine is up.
func (c ignition) bootStateFlags() ([]string, bool) {
	for _, f := range c.Storage.Files {
		text, plain := strings.CutPrefix(f.Contents.Source, "data:,")
		if f.Path != bootStateFile || !plain {
			continue
		}
		text, err := url.PathUnescape(text)
		if words := strings.Fields(text); err == nil && len(words) == 2 {
			return []string{"--boot-state-url=" + words[0], "--server-uuid=" + words[1]}, true
		}
	}
	return nil, false
}

// commands returns the ExecStart lines of a unit's [Service] section, as words.
func commands(unit string) [][]string {
	var list [][]string
	section := ""
	for line := range strings.SplitSeq(strings.ReplaceAll(unit, "\\\n", " "), "\n") {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section = line
			continue
		}
		key, value, _ := strings.Cut(line, "=")
		if section != "[Service]" || strings.TrimSpace(key) != "ExecStart" {
			continue
		}
		if words := unitWords(strings.TrimSpace(value)); len(words) > 0 {
			list = append(list, words)
		} else {
			list = nil // an empty ExecStart clears those before it
		}
	}
	return list
}

// unitWords splits a command as systemd does (systemd.service(5), "Command lines"): at
// spaces outside of quotes; %% is a percent sign and $$ a dollar.
func unitWords(command string) []string {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range command + " " {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, begun = r, true
		case quote == 0 && (r == ' ' || r == '\t'):
			if begun {
				words = append(words, strings.NewReplacer("%%", "%", "$$", "$").Replace(word.String()))
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return words
}

// flagsOf returns the words that follow the last one that names metalprobe, whatever
// runs it.
func flagsOf(command []string) ([]string, bool) {
	for i, word := range slices.Backward(command) {
		if slices.Contains(programs, path.Base(strings.TrimLeft(word, "@-:+!"))) {
			return command[i+1:], true
		}
	}
	return nil, false
}
