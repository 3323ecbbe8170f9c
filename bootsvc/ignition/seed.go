package ignition

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"ingot/model"
)

// Bounds on what is written to a disk to configure its system, in bytes. A FAT filesystem of
// the usual size has room for maxDiskSource.
const (
	maxDiskSource = 39 << 20 / 10 // of user-data, and of Ignition
	maxSeed       = 64 << 20      // of all files together
)

// annotationSeed is the claim's annotation, as errors name it.
const annotationSeed = "annotation " + model.AnnotationSeed

// Where the files of the kinds of seed lie, and the labels of the filesystems that hold them.
const (
	labelNoCloud   = "cidata"
	labelOpenStack = "config-2"
	labelFCOS      = "boot"
	labelFlatcar   = "OEM"

	folderOpenStack = "openstack/latest/"
	fileFCOS        = "ignition/config.ign"
	fileFlatcar     = "config.ign"
)

// emptyCloudConfig is user-data that asks for nothing: cloud-init takes no seed without any.
const emptyCloudConfig = "#cloud-config\n{}\n"

// seed returns what configures the system of a disk image, nil if nothing does.
func (g *Compiler) seed(b *DiskBoot) (*model.InstallSeed, error) {
	if err := b.checkSeed(); err != nil {
		return nil, err
	}
	s := &model.InstallSeed{Kind: b.seedKind()}
	var err error
	switch s.Kind {
	case model.SeedNone:
		return nil, nil
	case model.SeedNoCloud:
		s.Label = labelNoCloud
		s.Files, err = g.noCloudSeed(b)
	case model.SeedOpenStack:
		s.Label = labelOpenStack
		s.Files, err = g.openStackSeed(b)
	case model.SeedFCOS:
		s.Label = labelFCOS
		s.Files, err = g.ignitionSeed(b, fileFCOS)
		s.KernelArguments = b.arguments
	case model.SeedFlatcar:
		s.Label = labelFlatcar
		s.Files, err = g.ignitionSeed(b, fileFlatcar)
	default:
		err = sourceError(annotationSeed, "%q is no kind of seed: it is auto, nocloud, openstack, fcos, flatcar or none", string(s.Kind))
	}
	if err != nil {
		return nil, err
	}
	return s, checkSeedSize(s.Files)
}

// seedKind is the kind of seed that is written. Left to Ingot it is what the Secret's
// documents are for, and for Ignition where the image looks for that; what an image looks for
// decides also where there is no document but Ingot's own.
func (b *DiskBoot) seedKind() model.SeedKind {
	switch {
	case b.Seed != "" && b.Seed != model.SeedAuto:
		return b.Seed
	case b.value(UserData) != "":
		return model.SeedNoCloud
	case b.IgnitionSeed != "":
		return b.IgnitionSeed
	case b.value(keyIgnition) != "":
		return model.SeedOpenStack
	}
	return model.SeedNoCloud
}

// SeedNote says, for people, where Ignition goes in an image that does not show how it reads it, or that SSH keys have
// no effect; "" if both are known.
func (b *DiskBoot) SeedNote() string {
	if len(b.SSHKeys) > 0 && (b.seedKind() == model.SeedNone || isTalos(b.value(UserData))) {
		return "the SSH keys have no effect: nothing in it reads them (Talos has no SSH, and the seed none configures nothing)"
	}
	if b.Seed == model.SeedOpenStack || b.seedKind() != model.SeedOpenStack {
		return ""
	}
	return fmt.Sprintf("it shows no way in which it reads Ignition: that is on a config drive (label %s), which Ignition reads on its platform "+
		"openstack; annotation %s of the claim names another way", labelOpenStack, model.AnnotationSeed)
}

// checkSeed refuses documents that a kind of seed has no place for.
func (b *DiskBoot) checkSeed() error {
	kind := b.seedKind()
	meta, err := mapping(keyMetaData, b.value(keyMetaData))
	switch {
	case err != nil:
		return err
	case hasKey(meta, "instance-id"), hasKey(meta, "uuid"):
		return sourceError(keyMetaData, "instance-id names one install of one server, and Ingot gives it: leave it out")
	case b.value(keyScript) != "":
		return sourceError(keyScript, "a disk image is installed by Ingot's own script: leave it out, or name an image with a kernel")
	case b.value(UserData) != "" && (kind == model.SeedFCOS || kind == model.SeedFlatcar):
		return sourceError(annotationSeed, "seed %s is for Ignition, and the Secret has user-data for cloud-init: put Ignition under the key ignition, or let the seed be auto", kind)
	case b.KernelArguments != "" && kind != model.SeedFCOS:
		return sourceError(annotationArguments, "an image on disk has its kernel's arguments in its own boot loader: only the seed fcos can add some, and this one is %s", kind)
	}
	return nil
}

// noCloudSeed are the files of cloud-init's data source NoCloud. Ignition reads user-data as
// well, on the platforms proxmoxve and kubevirt, and Talos does on nocloud.
func (g *Compiler) noCloudSeed(b *DiskBoot) (map[string]string, error) {
	user, err := g.userData(b)
	if err != nil {
		return nil, err
	}
	meta, err := metaData(b.ClaimBoot)
	if err != nil {
		return nil, err
	}
	files := map[string]string{UserData: user, keyMetaData: meta}
	if files[keyVendorData], err = vendorData(b.ClaimBoot); err != nil {
		return nil, err
	}
	if network := b.value(keyNetworkConfig); network != "" {
		if _, err := mapping(keyNetworkConfig, network); err != nil {
			return nil, err
		}
		files[keyNetworkConfig] = network
	}
	return files, nil
}

// openStackSeed are the files of a config drive of OpenStack, as cloud-init, Ignition and Talos
// read them.
func (g *Compiler) openStackSeed(b *DiskBoot) (map[string]string, error) {
	user, err := g.userData(b)
	if err != nil {
		return nil, err
	}
	meta, err := openStackMetaData(b.ClaimBoot)
	if err != nil {
		return nil, err
	}
	vendor, err := vendorData(b.ClaimBoot)
	if err != nil {
		return nil, err
	}
	files := map[string]string{
		folderOpenStack + "meta_data.json":   meta,
		folderOpenStack + "user_data":        user,
		folderOpenStack + "vendor_data.json": encodeJSON(map[string]string{"cloud-init": vendor}),
	}
	if network := b.value(keyNetworkConfig); network != "" {
		if !json.Valid([]byte(network)) {
			return nil, sourceError(keyNetworkConfig, "a config drive has its network as OpenStack's network_data.json: write that (links, networks, services), or set annotation %s to nocloud", model.AnnotationSeed)
		}
		files[folderOpenStack+"network_data.json"] = network
	}
	return files, nil
}

// openStackMetaData is the claim's meta-data in OpenStack's words: the instance is a uuid there
// and the host name a hostname.
func openStackMetaData(b ClaimBoot) (string, error) {
	node, err := mapping(keyMetaData, b.value(keyMetaData))
	if err != nil {
		return "", err
	}
	meta := make(map[string]any)
	if err := node.Decode(&meta); err != nil {
		return "", sourceError(keyMetaData, "its keys are not all texts")
	}
	if name, ok := meta["local-hostname"]; ok {
		delete(meta, "local-hostname")
		meta["hostname"] = name
	}
	meta["uuid"] = b.InstanceID
	if _, ok := meta["hostname"]; !ok && b.Hostname != "" {
		meta["hostname"] = hostname63(b.Hostname)
	}
	if len(b.SSHKeys) > 0 {
		named := make(map[string]string)
		for i, key := range joinKeys(publicKeys(meta[keyPublicKeys]), publicKeys(meta["public_keys"]), b.SSHKeys) {
			named[fmt.Sprintf("key-%03d", i+1)] = key
		}
		delete(meta, keyPublicKeys)
		meta["public_keys"] = named
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return "", sourceError(keyMetaData, "it cannot be written as JSON")
	}
	return string(raw) + "\n", nil
}

func (g *Compiler) ignitionSeed(b *DiskBoot, path string) (map[string]string, error) {
	config, err := g.document(b.ClaimBoot)
	if err != nil {
		return nil, err
	}
	return map[string]string{path: config}, nil
}

// userData is what a seed's reader is configured by: the claim's user-data, else its Ignition,
// else nothing that does anything.
func (g *Compiler) userData(b *DiskBoot) (string, error) {
	user := b.value(UserData)
	switch {
	case user == "" && b.value(keyIgnition) != "":
		return g.document(b.ClaimBoot)
	case user == "":
		return emptyCloudConfig, nil
	case isTalos(user):
		return user, nil
	}
	return user, checkCloudData(UserData, user)
}

// isTalos reports whether text is a machine configuration of Talos, whose first document has
// the machine or names its kind.
func isTalos(text string) bool {
	var head struct {
		Machine    yaml.Node `yaml:"machine"`
		APIVersion string    `yaml:"apiVersion"`
		Kind       string    `yaml:"kind"`
	}
	err := yaml.NewDecoder(strings.NewReader(text)).Decode(&head)
	return err == nil && (head.Machine.Kind == yaml.MappingNode || head.APIVersion != "" && head.Kind != "")
}

// checkSeedSize refuses files for which no filesystem is made.
func checkSeedSize(files map[string]string) error {
	total := 0
	for _, text := range files {
		total += len(text)
	}
	if total > maxSeed {
		return sourceError(UserData, "what configures the system has %d bytes with all that goes along; at most %d are allowed", total, maxSeed)
	}
	return nil
}

func encodeJSON(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // texts always encode
	}
	return b.String()
}
