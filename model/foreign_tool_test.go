package model_test

import (
	"testing"

	. "ingot/model"
)

// A chart is named as one; a manifest in a file of that name is read.
func TestFilesOfOtherTools(t *testing.T) {
	_, problems := Decode("web/Chart.yaml", []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n"), DecodeOptions{})
	const want = "web/Chart.yaml:1:1: this is a Helm chart, which Ingot does not read: put it into .ingotignore"
	if len(problems) != 1 || problems[0].String() != want {
		t.Errorf("got %v, want %s", problems, want)
	}
	objects, problems := Decode("values.yaml", []byte("apiVersion: metal.ironcore.dev/v1alpha1\nkind: Endpoint\nmetadata: {name: a}\n"+
		"spec: {macAddress: \"02:00:00:00:00:01\", ip: 192.0.2.1}\n"), DecodeOptions{})
	if len(objects) != 1 || len(problems) > 0 {
		t.Errorf("got %v, %v", objects, problems)
	}
}
