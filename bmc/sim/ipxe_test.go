package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ingot/model"
)

// files is a network of texts by URL.
type files map[string]string

func (f files) script(_ context.Context, address string) (string, error) {
	text, ok := f[address]
	if !ok {
		return "", fmt.Errorf("GET %s: 404 Not Found", address)
	}
	return text, nil
}

func (f files) load(ctx context.Context, _ model.BootStage, address string) (string, error) {
	text, err := f.script(ctx, address)
	return "digest of " + text, err
}

func TestShellRunsWhatBootScriptsAreMadeOf(t *testing.T) {
	const at = "http://boot/ipxe/1"
	kernel := image{kernel: "digest of kernel", kernelURL: "http://boot/k"}
	with := func(words ...string) image {
		i := kernel
		i.commandLine = words
		return i
	}
	tests := map[string]struct {
		script string
		want   image
		err    string
	}{
		"kernel, initrd and boot": {
			script: "kernel http://boot/k a=b quiet\ninitrd --name x http://boot/i\nboot",
			want: image{
				kernel: "digest of kernel", kernelURL: "http://boot/k",
				initrds: []string{"digest of initrd"}, commandLine: []string{"a=b", "quiet"},
			},
		},
		"a URL is seen from the script's own": {script: "kernel ../k\nboot", want: with()},
		"variables, also of variables": {
			script: "set base http://boot\nset k ${base}/k\nkernel ${k} u=${uuid} m=${net0/mac:hexhyp} n=${nothing}\nboot",
			want:   with("u=1-2", "m=aa-bb", "n="),
		},
		"comments, labels and blank lines": {script: "# kernel http://boot/none\n\n:label\nkernel /k\nboot", want: with()},
		"goto":                             {script: "goto on\nexit\n:on\nkernel /k\nboot", want: with()},
		"what fails may be caught":         {script: "kernel /none || kernel /k\nboot", want: with()},
		"what succeeds passes over ||":     {script: "kernel /k || goto nowhere\nboot", want: with()},
		"&& looks at what ran before": {
			script: "iseq a b && goto nowhere ||\niseq a a && goto on\nexit\n:on\nkernel /k\nboot", want: with(),
		},
		"isset": {
			script: "isset ${uuid} || exit\nisset ${nothing} && exit ||\nkernel /k\nboot", want: with(),
		},
		"a cleared variable is gone": {
			script: "set a b\nclear a\nisset ${a} && exit ||\nkernel /k\nboot", want: with(),
		},
		"a chained script boots":                           {script: "chain --autofree /ok", want: with()},
		"what a chained script set is kept":                {script: "chain /sets\nkernel /k v=${v}\nboot", want: with("v=1")},
		"a chained script that replaced does not end here": {script: "chain --replace /sets\nkernel /k\nboot", err: "the script exited"},
		"exit":                        {script: "exit", err: "the script exited"},
		"sanboot":                     {script: "sanboot --no-describe --drive 0x80", err: "the script exited"},
		"the end is an exit":          {script: "echo hello", err: "the script exited"},
		"a failure ends the script":   {script: "kernel /none\nboot", err: "/ipxe/1 line 2: GET http://boot/none: 404 Not Found"},
		"boot without kernel":         {script: "boot", err: "/ipxe/1 line 2: boot: no kernel was loaded"},
		"unknown command":             {script: "dance", err: "/ipxe/1 line 2: dance: command not found"},
		"unknown label":               {script: "goto x", err: "/ipxe/1 line 2: goto x: no such label"},
		"an endless loop":             {script: ":a\ngoto a", err: "/ipxe/1 line 3: more than 1000 commands"},
		"a script that chains itself": {script: "chain /ipxe/1", err: "more than 8 scripts chained"},
		"kernel without URL":          {script: "kernel", err: "/ipxe/1 line 2: kernel: a URL is needed"},
		"set without name":            {script: "set", err: "/ipxe/1 line 2: set: a name is needed"},
		"sleep without number":        {script: "sleep long", err: `/ipxe/1 line 2: sleep "long": not a number of seconds`},
		"a URL that is none":          {script: "kernel http://%zz/", err: `kernel "http://%zz/": not a URL`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			net := files{
				at: "#!ipxe\n" + tt.script + "\n", "http://boot/k": "kernel", "http://boot/i": "initrd",
				"http://boot/ok": "#!ipxe\nkernel /k\nboot\n", "http://boot/sets": "#!ipxe\nset v 1\n",
			}
			sh := shell{net: net, vars: map[string]string{"uuid": "1-2", "net0/mac": "aa:bb"}}
			got, err := sh.boot(t.Context(), at)
			switch {
			case tt.err == "" && err != nil, tt.err != "" && (err == nil || !strings.HasSuffix(err.Error(), tt.err)):
				t.Fatalf("error %v, want %q", err, tt.err)
			case tt.err != "":
				return
			}
			diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(image{}))
			if diff != "" && len(got.commandLine)+len(tt.want.commandLine) > 0 {
				t.Errorf("image (-want +got):\n%s", diff)
			}
			if got.kernel != tt.want.kernel {
				t.Errorf("kernel %q, want %q", got.kernel, tt.want.kernel)
			}
		})
	}
}

func TestOnlyAnExitIsAnExit(t *testing.T) {
	sh := shell{net: files{"http://boot/x": "#!ipxe\nexit\n"}, vars: map[string]string{}}
	if _, err := sh.boot(t.Context(), "http://boot/x"); !errors.Is(err, errExit) {
		t.Errorf("exit: %v", err)
	}
	if _, err := sh.boot(t.Context(), "http://boot/gone"); err == nil || errors.Is(err, errExit) {
		t.Errorf("no script: %v", err)
	}
	if _, err := sh.boot(t.Context(), "/ipxe/1"); err == nil || errors.Is(err, errExit) {
		t.Errorf("no boot service: %v", err)
	}
}

// The shell must end and not panic whatever a boot service serves.
func FuzzShell(f *testing.F) {
	f.Add("kernel /k ${uuid:hexhyp}\nboot || goto x && :x")
	f.Add("chain --replace\n${\nset  \niseq")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "sleep") {
			return
		}
		sh := shell{net: files{"http://boot/x": "#!ipxe\n" + text, "http://boot/k": "kernel"}, vars: map[string]string{"uuid": "1-2"}}
		_, _ = sh.boot(t.Context(), "http://boot/x")
	})
}
