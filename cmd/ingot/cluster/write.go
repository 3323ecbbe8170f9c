package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"ingot/model"
)

// bookkeeping are the fields of metadata that are Kubernetes' own.
var bookkeeping = []string{
	"clusterName", "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers", "generateName", "generation",
	"managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid",
}

// ownMarks are the annotations and labels of Kubernetes and of metal-operator, which others make anew.
var ownMarks = []string{
	"kubectl.kubernetes.io/", parkedMark, model.AnnotationType, model.Group + "/is-default-os-image",
	"readiness." + model.Group + "/bootstrap-completed-",
}

// folders are where the manifests of each kind belong.
var folders = map[model.Kind]string{
	model.KindEndpoint: "endpoints", model.KindBMC: "bmcs", model.KindServer: "servers", model.KindServerClaim: "claims",
	model.KindServerMaintenance: "maintenances", model.KindServerReadinessRule: "readiness",
}

// adopts stands above the manifest of a server that Ingot adopts.
const adopts = "# serverClaimRef has Ingot take the server over as it runs. Take it out once the claim is Booted.\n"

// write makes the file of one object, at path or where its kind belongs. What the decoder
// does not know is taken out and listed; what it refuses is listed as a whole.
func (c *converter) write(o Object, path string) (written bool, err error) {
	kept := o.mapping("metadata", "annotations")[model.AnnotationOperation] == model.OperationIgnore
	clean(o)
	if op := o.text("metadata", "annotations", model.AnnotationOperation); op != "" && !kept {
		o.drop([]string{model.AnnotationOperation}, "metadata", "annotations")
		c.leaveOutPart(o, "annotation "+model.AnnotationOperation, op+" was not done yet: ask for it anew")
	}
	for _, empty := range []string{"annotations", "labels"} {
		if len(o.mapping("metadata", empty)) == 0 {
			o.drop([]string{empty}, "metadata")
		}
	}
	object, data, why := c.decoded(o)
	if why != "" {
		c.leaveOut(o, why)
		return false, nil
	}
	if path == "" {
		path = folders[object.Identity().Kind] + "/" + object.Identity().Name + ".yaml"
		if ns := object.Identity().Namespace; ns != "" {
			path = folders[object.Identity().Kind] + "/" + ns + "/" + object.Identity().Name + ".yaml"
		}
	}
	if _, taken := c.result.Files[path]; taken {
		return false, fmt.Errorf("two objects belong into %s, one of them is %s: rename one", path, o)
	}
	if s, is := object.(*model.Server); is && s.Spec.ServerClaimRef != nil {
		data = adopts + data
	}
	c.result.Files[path] = data
	c.result.Kinds[object.Identity().Kind]++
	return true, nil
}

// clean takes out what Kubernetes and metal-operator note for themselves.
func clean(o Object) {
	delete(o, "status")
	o.drop(bookkeeping, "metadata")
	for _, of := range []string{"annotations", "labels"} {
		maps.DeleteFunc(o.mapping("metadata", of), func(key string, _ any) bool {
			return slices.ContainsFunc(ownMarks, func(own string) bool { return strings.HasPrefix(key, own) })
		})
	}
	if !model.Kind(o.kind()).Namespaced() {
		o.drop([]string{"namespace"}, "metadata")
	}
}

// decoded is an object as the decoder takes it, and its file. Fields that are unknown are
// taken out, and listed.
func (c *converter) decoded(o Object) (object model.Object, data string, why string) {
	for range 100 {
		b, err := yaml.Marshal(o)
		if err != nil {
			return nil, "", err.Error()
		}
		objects, problems := model.Decode("", b, model.DecodeOptions{AllowPlaintextSecrets: true})
		if len(objects) == 1 {
			return objects[0], string(b), ""
		}
		path, message := unknownField(problems)
		if path == nil || o.mapping(path[:len(path)-1]...) == nil {
			return nil, "", firstError(problems)
		}
		o.drop(path[len(path)-1:], path[:len(path)-1]...)
		c.leaveOutPart(o, strings.Join(path, "."), message)
	}
	return nil, "", "has more than 100 unknown fields"
}

// unknownField is the first field that the decoder does not know, if there is one.
func unknownField(problems []model.Problem) (path []string, message string) {
	for _, p := range problems {
		if p.Severity == model.SeverityError && strings.HasPrefix(p.Message, "unknown field") {
			return strings.Split(p.Field, "."), p.Message
		}
	}
	return nil, ""
}

func firstError(problems []model.Problem) string {
	for _, p := range problems {
		if p.Severity == model.SeverityError {
			return strings.TrimPrefix(strings.TrimPrefix(p.Field+": "+p.Message, ": "), "kind: ")
		}
	}
	return "it cannot be read"
}
