package model

import (
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// headerFields are what every manifest has, but a List.
var headerFields = []string{"apiVersion", "kind", "metadata", "spec"}

// Foreign reports whether a file is clearly something else than manifests, such as
// another program's settings: no document of it has any of the fields of a manifest, in
// whatever spelling. A kustomization is not foreign, for it stands for manifests.
func Foreign(file string, data []byte) bool {
	data, unread := readable(data)
	if unread != nil || isKustomization(file) {
		return false
	}
	docs := splitDocuments(data)
	if len(docs) > maxDocuments {
		return false
	}
	for _, doc := range docs {
		roots, bad := doc.parse()
		if bad != nil || slices.ContainsFunc(roots, likeManifest) {
			return false
		}
	}
	return len(docs) > 0
}

// otherTool names a file of another tool by its file name; "" for others.
func otherTool(file string) string {
	switch strings.ToLower(path.Base(file)) {
	case "chart.yaml", "chart.yml", "chart.lock":
		return "a Helm chart"
	case "values.yaml", "values.yml":
		return "the values of a Helm chart"
	case "docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml":
		return "for Docker Compose"
	case "galaxy.yml", "galaxy.yaml":
		return "for Ansible Galaxy"
	case "skaffold.yaml", "skaffold.yml":
		return "for Skaffold"
	}
	return ""
}

// likeManifest reports whether a document, or an item of it if it is a list, has a field
// that may be one of a manifest's.
func likeManifest(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.SequenceNode:
		return slices.ContainsFunc(n.Content, likeManifest)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if key := n.Content[i]; key.Kind != yaml.ScalarNode || key.Value == "<<" || Nearest(key.Value, headerFields) != "" {
				return true
			}
		}
	case yaml.AliasNode:
		return true // of what, is not looked for
	default:
	}
	return false
}

// isKustomization reports whether a file is what kustomize builds manifests from.
func isKustomization(file string) bool {
	switch strings.ToLower(path.Base(file)) {
	case "kustomization.yaml", "kustomization.yml":
		return true
	}
	return false
}
