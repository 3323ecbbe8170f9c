package sim

import (
	"encoding/base64"
	"testing"

	"ingot/model"
)

func TestWhereAnInstalledSystemReports(t *testing.T) {
	const script = "#!/bin/sh\nurl='http://r.example/r/tok/bootstate'\nbody='{\"systemUUID\":\"u1\",\"booted\":true}'\n"
	message := "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/plain\n\n#cloud-config\n" +
		"--b\nContent-Type: text/plain\nContent-Transfer-Encoding: base64\n\n" + base64.StdEncoding.EncodeToString([]byte(script)) + "\n--b--\n"
	config := `{"ignition":{"version":"3.4.0"},"storage":{"files":[{"path":"/etc/ingot/bootstate","contents":{"source":"data:,http://r.example/r/tok/bootstate%20u1%0A"}}]}}`
	for title, tc := range map[string]struct {
		files map[string]string
		says  bool
		ends  bool // it also says how cloud-init ended
	}{
		"by a script of vendor-data":          {map[string]string{"user-data": "#cloud-config\n", "vendor-data": script + "until [ -e /run/cloud-init/result.json ]\n"}, true, true},
		"by one beside the claim's own":       {map[string]string{"vendor-data": message}, true, false},
		"by that of a config drive":           {map[string]string{"openstack/latest/vendor_data.json": `{"cloud-init":"#!/bin/sh\nurl='http://r.example/r/tok/bootstate'\n# \"systemUUID\":\"u1\"\n"}`}, true, false},
		"by a file of Ignition":               {map[string]string{"config.ign": config}, true, false},
		"nowhere, where nothing in it says":   {map[string]string{"user-data": script[:10], "meta-data": "instance-id: a\n"}, false, false},
		"nowhere, with an Ignition of others": {map[string]string{"config.ign": `{"ignition":{"version":"3.4.0"}}`}, false, false},
	} {
		got := seedReport(t.Context(), &model.InstallSeed{Files: tc.files})
		if got != nil && got.cloudInit != tc.ends {
			t.Errorf("%s: that it says how cloud-init ended is %t", title, got.cloudInit)
		}
		if tc.says && (got == nil || got.url != "http://r.example/r/tok/bootstate" || got.uuid != "u1") || !tc.says && got != nil {
			t.Errorf("%s: %+v", title, got)
		}
	}
	if seedReport(t.Context(), nil) != nil {
		t.Error("a system without a seed reports")
	}
}
