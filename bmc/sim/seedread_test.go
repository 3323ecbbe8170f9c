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
	}{
		"by a script of vendor-data":          {map[string]string{"user-data": "#cloud-config\n", "vendor-data": script}, true},
		"by one beside the claim's own":       {map[string]string{"vendor-data": message}, true},
		"by that of a config drive":           {map[string]string{"openstack/latest/vendor_data.json": `{"cloud-init":"#!/bin/sh\nurl='http://r.example/r/tok/bootstate'\n# \"systemUUID\":\"u1\"\n"}`}, true},
		"by a file of Ignition":               {map[string]string{"config.ign": config}, true},
		"nowhere, where nothing in it says":   {map[string]string{"user-data": script[:10], "meta-data": "instance-id: a\n"}, false},
		"nowhere, with an Ignition of others": {map[string]string{"config.ign": `{"ignition":{"version":"3.4.0"}}`}, false},
	} {
		got := seedReport(t.Context(), &model.InstallSeed{Files: tc.files})
		if tc.says && (got == nil || got.url != "http://r.example/r/tok/bootstate" || got.uuid != "u1") || !tc.says && got != nil {
			t.Errorf("%s: %+v", title, got)
		}
	}
	if seedReport(t.Context(), nil) != nil {
		t.Error("a system without a seed reports")
	}
}
