package machine

import (
	"net"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseCommandLine(t *testing.T) {
	mac, _ := net.ParseMAC("52:54:00:12:34:56")
	for title, tc := range map[string]struct {
		text string
		want commandLine
	}{
		"what Ingot's iPXE script says": {
			text: "initrd=initrd ip=any ignition.firstboot=1 ignition.config.url=http://192.0.2.1:8082/ignition/u?t=1 " +
				"ignition.platform.id=metal console=ttyS0,115200 console=tty0\n",
			want: commandLine{ignitionURL: "http://192.0.2.1:8082/ignition/u?t=1", modules: map[string]string{
				"ignition": "firstboot=1 platform.id=metal",
			}},
		},
		"the card that booted, as PXELINUX has it": {text: "BOOTIF=01-52-54-00-12-34-56", want: commandLine{bootMAC: mac}},
		"the card that booted, as iPXE has it":     {text: "BOOTIF=01:52:54:00:12:34:56", want: commandLine{bootMAC: mac}},
		"the card that booted, without a type":     {text: "BOOTIF=52:54:00:12:34:56", want: commandLine{bootMAC: mac}},
		"a card that is none":                      {text: "BOOTIF=01-52", want: commandLine{}},
		"an address that is asked for": {
			text: "ip=192.0.2.7::192.0.2.1:255.255.255.0::eth0:off",
			want: commandLine{ip: "192.0.2.7::192.0.2.1:255.255.255.0::eth0:off"},
		},
		"DHCP": {text: "ip=dhcp", want: commandLine{}},
		"parameters of modules": {
			text: "scsi-mod.scan=async nvme_core.multipath=N nvme_core.io_timeout=5",
			want: commandLine{modules: map[string]string{"scsi_mod": "scan=async", "nvme_core": "multipath=N io_timeout=5"}},
		},
		"quotes":                  {text: `a="b c" ignition.config.url="http://h/a"`, want: commandLine{ignitionURL: "http://h/a"}},
		"a quote that never ends": {text: `ignition.config.url="http://h/a `, want: commandLine{ignitionURL: "http://h/a"}},
		"the last of two counts": {
			text: "ignition.config.url=http://a/ ignition.config.url=http://b/",
			want: commandLine{ignitionURL: "http://b/"},
		},
		"nothing":                    {text: "", want: commandLine{}},
		"dots and equals signs only": {text: "=.=. .a=b a.=b", want: commandLine{}},
	} {
		t.Run(title, func(t *testing.T) {
			if tc.want.modules == nil {
				tc.want.modules = map[string]string{}
			}
			if diff := cmp.Diff(tc.want, parseCommandLine(tc.text), cmp.AllowUnexported(commandLine{})); diff != "" {
				t.Errorf("command line (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParseCommandLine(f *testing.F) {
	f.Add(`ip=any BOOTIF=01-52-54-00-12-34-56 ignition.config.url="http://h/a b" a.b=c`)
	f.Fuzz(func(t *testing.T, text string) { parseCommandLine(text) })
}

func TestRoleOf(t *testing.T) {
	for title, tc := range map[string]struct {
		args        []string
		pid, parent int
		want        Role
	}{
		"what the kernel starts":                 {[]string{"/init"}, 1, 0, RoleSupervisor},
		"what the kernel starts, with its words": {[]string{"/init", "quiet", "-x"}, 1, 0, RoleSupervisor},
		"another first process, that is told":    {[]string{"/usr/bin/metalprobe", "--init"}, 1, 0, RoleSupervisor},
		"the first process of a container":       {[]string{"/metalprobe", "--registry-url=http://h"}, 1, 0, RoleNone},
		"what the first process starts":          {[]string{"metalprobe", "--machine"}, 7, 1, RoleWorker},
		"a person who tries":                     {[]string{"metalprobe", "--machine"}, 7, 5, RoleNone},
		"a person who tries the other":           {[]string{"metalprobe", "--init"}, 7, 5, RoleNone},
		"a person":                               {[]string{"metalprobe", "--json"}, 7, 5, RoleNone},
		"the kernel powers off":                  {[]string{"/sbin/poweroff"}, 70, 2, RolePowerOff},
		"the kernel restarts":                    {[]string{"/sbin/reboot"}, 70, 2, RoleReboot},
		"the kernel wants a module":              {[]string{"/sbin/modprobe", "-q", "--", "mlx4_en"}, 70, 2, RoleModprobe},
	} {
		if got := RoleOf(tc.args, tc.pid, tc.parent); got != tc.want {
			t.Errorf("%s: role %d, want %d", title, got, tc.want)
		}
	}
}
