package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"ingot/cmd/daemon/config"
	"ingot/model/must"
)

func TestAnIngotThatNeverReadGitHasMetricsAndAStatus(t *testing.T) {
	o := loopbackOptions()
	o.State.Dir, o.Git.URL = t.TempDir(), t.TempDir()
	d := must.Get(assemble(t.Context(), o, Environment{}))(t)
	defer d.close()
	if _, err := d.metrics.Gather(); err != nil {
		t.Error(err)
	}
	if f := newFleet(d).Documents().Fleet; f == nil || f.Applied != "" {
		t.Errorf("the fleet is %+v", f)
	}
}

// What only makes a part not work does not keep the rest from starting.
func TestAFileThatMayComeLaterKeepsNothingFromStarting(t *testing.T) {
	const missing = "/nowhere/file"
	for key, set := range map[string]func(*config.Options){
		"git.auth.usernameFile": func(o *config.Options) { o.Git.Auth.UsernameFile = missing },
		"git.auth.passwordFile": func(o *config.Options) { o.Git.Auth.PasswordFile = missing },
		"git.auth.sshKeyFile": func(o *config.Options) {
			o.Git.URL = "git@127.0.0.1:fleet.git"
			o.Git.Auth.SSHKeyFile, o.Git.Auth.KnownHostsFile = missing, missing
		},
		"git.auth.knownHostsFile": func(o *config.Options) {
			o.Git.URL = "git@127.0.0.1:fleet.git"
			o.Git.Auth.SSHKeyFile, o.Git.Auth.KnownHostsFile = missing, missing
		},
		"git.auth.githubApp.privateKeyFile": func(o *config.Options) {
			o.Git.URL = "https://127.0.0.1/infra/fleet.git"
			o.Git.Auth.GitHubApp.AppID, o.Git.Auth.GitHubApp.InstallationID, o.Git.Auth.GitHubApp.PrivateKeyFile = 1, 1, missing
		},
		"git.ageKeyFile": func(o *config.Options) { o.Git.AgeKeyFile = missing },
		"git.commitStatus.tokenFile": func(o *config.Options) {
			o.Git.URL = "https://127.0.0.1/infra/fleet.git"
			o.Git.CommitStatus.Provider, o.Git.CommitStatus.TokenFile = "gitea", missing
		},
		"discovery.ignitionTemplateFile": func(o *config.Options) { o.Discovery.IgnitionTemplateFile = missing },
		"discovery.macPrefixesFile":      func(o *config.Options) { o.Discovery.MACPrefixesFile = missing },
		"boot.credentialsFile":           func(o *config.Options) { o.Boot.CredentialsFile = missing },
		"webhook.secretFile":             func(o *config.Options) { o.Webhook.Listen, o.Webhook.SecretFile = "127.0.0.1:0", missing },
	} {
		t.Run(key, func(t *testing.T) {
			o := loopbackOptions()
			o.State.Dir, o.Git.URL = t.TempDir(), t.TempDir()
			set(&o)
			var log bytes.Buffer
			d := must.Get(assemble(t.Context(), o, Environment{Log: slog.New(slog.NewTextHandler(&log, nil))}))(t)
			defer d.close()
			said := strings.Replace(key, "[]", "[0]", 1)
			if !strings.Contains(log.String(), "key="+said) && !strings.Contains(log.String(), `key="`+said) {
				t.Errorf("nobody is warned:\n%s", log.String())
			}
			families := must.Get(d.metrics.Gather())(t)
			shown := false
			for _, f := range families {
				for _, m := range f.GetMetric() {
					shown = shown || f.GetName() == "ingot_file_unreadable" && m.GetLabel()[0].GetValue() == said && m.GetGauge().GetValue() == 1
				}
			}
			if !shown {
				t.Error("ingot_file_unreadable does not show it")
			}
		})
	}
}
