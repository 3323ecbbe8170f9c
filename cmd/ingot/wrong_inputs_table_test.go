package main

import "strings"

// catalog has one image.
const catalog = "apiVersion: metal.ironcore.dev/v1alpha1\nkind: ImageCatalog\nmetadata: {name: images}\nspec:\n  images:\n" +
	"  - {name: debian-13, image: \"registry.example.com/debian@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}\n"

var wrongInputTable = []wrongInput{
	{
		name: "image of Docker Hub", args: "validate web.yaml",
		text: imaged("my-org/os:v1"),
		code: 0, out: "web.yaml:6:10: warning: ServerClaim default/web: spec.image: \"my-org/os:v1\" has no registry, so Ingot asks Docker Hub (docker.io/my-org/os:v1); write registry/name:tag",
	},
	{
		name: "image without a registry where a catalogue has its name", args: "validate web.yaml images.yaml",
		text: imaged("debian:13"), catalog: true,
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: \"debian:13\" has no registry; write debian-13 of images.yaml, or the whole reference: registry.example.com/debian:13",
	},
	{
		name: "image without a registry where there is a catalogue", args: "validate web.yaml",
		text: imaged("my-org/os:v1"), catalog: true,
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: \"my-org/os:v1\" has no registry; write a name of images.yaml, or the whole reference: registry.example.com/my-org/os:v1",
	},
	{
		name: "image URL without digest", args: "validate web.yaml",
		text: imaged("https://images.example.com/os.qcow2"),
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: its digest is missing (DigestMissing): add it, as the image's publisher names it: image: https://images.example.com/os.qcow2#sha256:…; an image in a registry is written without https://",
	},
	{
		name: "image with a scheme", args: "validate web.yaml",
		text: imaged("docker://debian:13"),
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: found \"docker://debian:13\", want an OCI reference such as registry.example.com/os/image:tag or …/image@sha256:digest, or the URL of a disk image with its digest: https://…#sha256:… (an image reference has no scheme: write registry/repository:tag)",
	},
	{
		name: "image with a capital", args: "validate web.yaml",
		text: imaged("registry.example.com/OS:1"),
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: found \"registry.example.com/OS:1\", want an OCI reference such as registry.example.com/os/image:tag or …/image@sha256:digest, or the URL of a disk image with its digest: https://…#sha256:… (repository \"OS\": lower-case letters and digits, with '.', '_' or '-' between them, in parts divided by '/')",
	},
	{
		name: "image with a short digest", args: "validate web.yaml",
		text: imaged("registry.example.com/os@sha256:abc"),
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: found \"registry.example.com/os@sha256:abc\", want an OCI reference such as registry.example.com/os/image:tag or …/image@sha256:digest, or the URL of a disk image with its digest: https://…#sha256:… (the digest after @ must be sha256: and 64, or sha512: and 128, lower-case hexadecimal digits)",
	},
	{
		name: "image that is a number", args: "validate web.yaml",
		text: imaged("7"),
		code: 1, out: "web.yaml:6:10: ServerClaim default/web: spec.image: found the number 7, want a string: write it in quotes",
	},
	{
		name: "image missing", args: "validate web.yaml",
		text: claimHead + "spec: {power: \"On\"}\n",
		code: 1, out: "web.yaml:4:1: ServerClaim default/web: spec.image: is required: an OCI reference such as registry.example.com/os/image:tag or …/image@sha256:digest, or the URL of a disk image with its digest: https://…#sha256:…",
	},
	{
		name: "user-data without header", args: "validate web.yaml",
		text: secret("user-data", "hostname: web\n"),
		code: 1, out: "web.yaml:11:5: Secret default/web: stringData.user-data: cloud-init would ignore this: the first line must be #cloud-config, #! with a program, another header that cloud-init knows, or that of a MIME message",
	},
	{
		name: "user-data with a wrong header", args: "validate web.yaml",
		text: secret("user-data", "#cloud_config\nhostname: web\n"),
		code: 1, out: "web.yaml:11:5: Secret default/web: stringData.user-data: cloud-init would ignore this: the first line must be #cloud-config, #! with a program, another header that cloud-init knows, or that of a MIME message",
	},
	{
		name: "user-data with a tab", args: "validate web.yaml",
		text: secret("user-data", "#cloud-config\nusers:\n	- default\n"),
		code: 1, out: "web.yaml:13:5: Secret default/web: stringData.user-data: a value cannot begin with this character: put text in quotes, and indent with spaces instead of tabs",
	},
	{
		name: "user-data with a known key twice", args: "validate web.yaml",
		text: secret("user-data", "#cloud-config\nusers: [default]\nusers: [core]\n"),
		code: 1, out: "web.yaml:13:5: Secret default/web: stringData.user-data: key \"users\" is already in line 2 of the document: keep one of them",
	},
	{
		name: "user-data with an unknown key twice", args: "validate web.yaml",
		text: secret("user-data", "#cloud-config\nhunter2: a\nhunter2: b\n"),
		code: 1, out: "web.yaml:13:5: Secret default/web: stringData.user-data: this key is already in line 2 of the document: keep one of them",
	},
	{
		name: "user-data that is a list", args: "validate web.yaml",
		text: secret("user-data", "#cloud-config\n- a\n"),
		code: 1, out: "web.yaml:12:5: Secret default/web: stringData.user-data: this is not a mapping of keys to values",
	},
	{
		name: "user-data in base64 twice", args: "validate web.yaml",
		text: secret("user-data", "I2Nsb3VkLWNvbmZpZwpob3N0bmFtZTogd2ViCg==\n"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.user-data: it is encoded with base64 twice: under data encode the document itself, once; stringData takes it as text",
	},
	{
		name: "meta-data alone", args: "validate web.yaml",
		text: secret("meta-data", "local-hostname: web\n"),
		code: 1, out: "web.yaml:6: Secret default/web: has no key ignition, user-data or ipxe-script: ServerClaim default/web cannot boot with it",
	},
	{
		name: "key userdata", args: "validate web.yaml",
		text: secret("userdata", "#cloud-config\n"),
		code: 1, out: "web.yaml:10:3: Secret default/web: unknown key, did you mean \"user-data\"? A server boots with the key ignition, user-data or ipxe-script",
	},
	{
		name: "key user_data", args: "validate web.yaml",
		text: secret("user_data", "#cloud-config\n"),
		code: 1, out: "web.yaml:10:3: Secret default/web: unknown key, did you mean \"user-data\"? A server boots with the key ignition, user-data or ipxe-script",
	},
	{
		name: "key of nothing", args: "validate web.yaml",
		text: secret("cloud", "#cloud-config\n"),
		code: 1, out: "web.yaml:6: Secret default/web: has no key ignition, user-data or ipxe-script: ServerClaim default/web cannot boot with it",
	},
	{
		name: "Ignition 2", args: "validate web.yaml",
		text: secret("ignition", "{\"ignition\":{\"version\":\"2.3.0\"}}"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: Ignition specification 1 and 2 are not supported; translate to version 3.0.0 to 3.6.0, for example with ign-converter",
	},
	{
		name: "Ignition 1", args: "validate web.yaml",
		text: secret("ignition", "{\"ignition\":{\"version\":\"1\"}}"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: Ignition specification 1 and 2 are not supported; translate to version 3.0.0 to 3.6.0, for example with ign-converter",
	},
	{
		name: "Ignition of the future", args: "validate web.yaml",
		text: secret("ignition", "{\"ignition\":{\"version\":\"4.0.0\"}}"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: this version of the Ignition specification is not supported; 3.0.0 to 3.6.0 are",
	},
	{
		name: "Ignition without version", args: "validate web.yaml",
		text: secret("ignition", "{\"passwd\":{}}"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: there is no ignition.version, so this is not Ignition JSON; Butane needs a variant, or the Secret's key format: fcos",
	},
	{
		name: "Ignition with a comma too many", args: "validate web.yaml",
		text: secret("ignition", "{\n  \"ignition\": {\"version\": \"3.4.0\"},\n}"),
		code: 1, out: "web.yaml:13:5: Secret default/web: stringData.ignition: this is not JSON: a key in quotes is expected here; is there a comma too many before it?",
	},
	{
		name: "Ignition with an unknown key", args: "validate web.yaml",
		text: secret("ignition", "{\"ignition\":{\"version\":\"3.4.0\"},\"storge\":{}}"),
		code: 1, out: "web.yaml:11:37: Secret default/web: stringData.ignition: unknown key, did you mean \"storage\"?",
	},
	{
		name: "Ignition that is a word", args: "validate web.yaml",
		text: secret("ignition", "hello\n"),
		code: 1, out: "web.yaml:11:5: Secret default/web: stringData.ignition: this is not JSON: invalid character looking for beginning of value",
	},
	{
		name: "Butane with a misspelt key", args: "validate web.yaml",
		text: secret("ignition", "variant: fcos\nversion: 1.5.0\nstorge:\n  files: []\n"),
		code: 1, out: "web.yaml:13:5: Secret default/web: stringData.ignition: unknown key, did you mean \"storage\"?",
	},
	{
		name: "Butane with a wrong type", args: "validate web.yaml",
		text: secret("ignition", "variant: fcos\nversion: 1.5.0\nstorage:\n  files: hello\n"),
		code: 1, out: "web.yaml:14:5: Secret default/web: stringData.ignition: want a list",
	},
	{
		name: "Butane of an unknown variant", args: "validate web.yaml",
		text: secret("ignition", "variant: fedora\nversion: 1.5.0\n"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: this variant or version of Butane is not known; write for example variant: fcos and version: 1.6.0",
	},
	{
		name: "Butane of an unknown version", args: "validate web.yaml",
		text: secret("ignition", "variant: fcos\nversion: 9.9.9\n"),
		code: 1, out: "web.yaml:10:3: Secret default/web: stringData.ignition: this variant or version of Butane is not known; write for example variant: fcos and version: 1.6.0",
	},
	{
		name: "Butane with a relative path", args: "validate web.yaml",
		text: secret("ignition", "variant: fcos\nversion: 1.5.0\nstorage:\n  files:\n  - path: etc/motd\n"),
		code: 1, out: "web.yaml:15:15: Secret default/web: stringData.ignition: path not absolute",
	},
	{
		name: "script without #!ipxe", args: "validate web.yaml",
		text: secret("ipxe-script", "chain http://boot.example.com/\n"),
		code: 1, out: "web.yaml:11:5: Secret default/web: stringData.ipxe-script: an iPXE script begins with #!ipxe; iPXE does not run anything else",
	},
	{
		name: "kernel arguments with a variable", args: "validate web.yaml",
		text: annotated("ingot/kernel-arguments", `"foo=${bar}"`),
		code: 1, out: "web.yaml:6:29: ServerClaim default/web: metadata.annotations[ingot/kernel-arguments]: line 1, column 5: a character that is not allowed: kernel arguments are letters, digits and . _ , : ; = / + @ % ~ ! * ? [ ] - with single spaces between",
	},
	{
		name: "kernel arguments with a quote", args: "validate web.yaml",
		text: annotated("ingot/kernel-arguments", `"foo='a b'"`),
		code: 1, out: "web.yaml:6:29: ServerClaim default/web: metadata.annotations[ingot/kernel-arguments]: line 1, column 5: a character that is not allowed: kernel arguments are letters, digits and . _ , : ; = / + @ % ~ ! * ? [ ] - with single spaces between",
	},
	{
		name: "kernel arguments with a lone semicolon", args: "validate web.yaml",
		text: annotated("ingot/kernel-arguments", `"a ; b"`),
		code: 1, out: "web.yaml:6:29: ServerClaim default/web: metadata.annotations[ingot/kernel-arguments]: a semicolon that stands alone ends a command of iPXE; write it within an argument",
	},
	{
		name: "seed that is none", args: "validate web.yaml",
		text: annotated("ingot/seed", "cloudinit"),
		code: 1, out: "web.yaml:6:17: ServerClaim default/web: metadata.annotations[ingot/seed]: found \"cloudinit\", want auto, nocloud, openstack, fcos, flatcar or none",
	},
	{
		name: "boot that is none", args: "validate web.yaml",
		text: annotated("ingot/boot", "allways"),
		code: 1, out: "web.yaml:6:17: ServerClaim default/web: metadata.annotations[ingot/boot]: found \"allways\", want once or always",
	},
	{
		name: "priority that is no number", args: "validate web.yaml",
		text: annotated("ingot/priority", "high"),
		code: 1, out: "web.yaml:6:21: ServerClaim default/web: metadata.annotations[ingot/priority]: found \"high\", want a whole number in quotes, higher is served first",
	},
	{
		name: "annotation that is misspelt", args: "validate web.yaml",
		text: annotated("ingot/kernel-argument", "quiet"),
		code: 0, out: "web.yaml:6:28: warning: ServerClaim default/web: metadata.annotations[ingot/kernel-argument]: unknown annotation, did you mean \"ingot/kernel-arguments\"?",
	},
	{
		name: "field that is misspelt", args: "validate web.yaml",
		text: claimHead + "spec: {powr: \"On\", image: registry.example.com/os:1}\n",
		code: 1, out: "web.yaml:4:8: ServerClaim default/web: spec.powr: unknown field, did you mean \"power\"?",
	},
	{
		name: "kind that is misspelt", args: "validate web.yaml",
		text: strings.Replace(imaged("registry.example.com/os:1"), "ServerClaim", "ServerClaims", 1),
		code: 1, out: "web.yaml:2:7: kind: Ingot does not read the kind \"ServerClaims\", did you mean \"ServerClaim\"?",
	},
	{
		name: "key twice", args: "validate web.yaml",
		text: claimHead + "spec:\n  power: \"On\"\n  image: registry.example.com/os:1\n  power: \"Off\"\n",
		code: 1, out: "web.yaml:7:3: ServerClaim default/web: spec.power: is given twice, first in line 5",
	},
	{
		name: "merge key", args: "validate web.yaml",
		text: strings.Replace(imaged("registry.example.com/os:1"), "{name: web}", "{name: web, annotations: &c {a: b}, labels: {<<: *c}}", 1),
		code: 1, out: "web.yaml:3:56: ServerClaim default/web: metadata.labels: aliases and merge keys (\"<<\", of YAML 1.1) are not supported: write the entries out",
	},
	{
		name: "a file without manifests", args: "validate /etc/passwd",
		code: 1, out: "0 files, 0 objects: 0 errors, 0 warnings; 1 file without manifests",
	},
	{
		name: "an empty folder", args: "validate empty",
		code: 1, out: "ingot: empty has no manifests: no file in it ends in .yaml, .yml or .json",
	},
	{
		name: "no such path", args: "validate nowhere.yaml",
		code: 1, out: "ingot: there is no nowhere.yaml",
	},
	{
		name: "no path", args: "validate",
		code: 2, out: "ingot: expected \"<path> ...\"; see ingot validate --help",
	},
	{
		name: "unknown flag", args: "validate --nope web.yaml",
		code: 2, out: "ingot: unknown flag --nope; see ingot validate --help",
	},
	{
		name: "unknown format", args: "validate -o yaml web.yaml",
		code: 2, out: "ingot: -o yaml: ingot validate prints text, json, github, gitlab; see ingot validate --help",
	},
	{
		name: "unknown command", args: "valdate web.yaml",
		code: 2, out: "ingot: unexpected argument valdate, did you mean \"validate\"?; see ingot --help",
	},
	{
		name: "no command", args: "",
		code: 2, out: "ingot: expected one of \"run\", \"demo\", \"sim\", \"validate\", \"status\", ...; see ingot --help",
	},
	{
		name: "explain without a name", args: "explain server",
		code: 2, out: "ingot: expected \"<name>\"; see ingot explain --help",
	},
	{
		name: "explain of nothing", args: "explain",
		code: 2, out: "ingot: expected \"<kind> <name>\"; see ingot explain --help",
	},
	{
		name: "explain of a wrong kind", args: "explain node s1",
		code: 2, out: "ingot: explain: unknown kind \"node\": use one of bmc, boot-configuration, claim, endpoint, server; see ingot explain --help",
	},
	{
		name: "explain by the kind of the YAML", args: "explain ServerClaim web --address 127.0.0.1:1",
		code: 1, out: "ingot: no daemon listens at http://127.0.0.1:1; name another with --address, or read the status branch with --git",
	},
	{
		name: "explain by the plural", args: "explain serverclaims web --address 127.0.0.1:1",
		code: 1, out: "ingot: no daemon listens at http://127.0.0.1:1; name another with --address, or read the status branch with --git",
	},
	{
		name: "status of a wrong kind", args: "status node",
		code: 2, out: "ingot: status: \"node\" has no status: use server, claim or bmc; see ingot status --help",
	},
	{
		name: "status by the kind of the YAML", args: "status BMCs --address 127.0.0.1:1",
		code: 1, out: "ingot: no daemon listens at http://127.0.0.1:1; name another with --address, or read the status branch with --git",
	},
	{
		name: "status with a wrong selector", args: "status -l ==",
		code: 2, out: "ingot: status: --selector: \"==\" selects by no labels: found '==', expected: !, identifier, or 'end of string'; write it as rack=7, rack!=7, zone in (a,b), zone notin (a,b), gpu or !gpu, several with a comma between them; see ingot status --help",
	},
	{
		name: "status of no address", args: "status --address ftp://x",
		code: 2, out: "ingot: \"ftp://x\" is not the address of a daemon; write it as http://127.0.0.1:8080",
	},
	{
		name: "claim without an image", args: "claim web",
		code: 2, out: "ingot: missing flags: --os=NAME or --image=IMAGE; see ingot claim --help",
	},
	{
		name: "claim of an image without a registry", args: "claim web --image debian:13",
		code: 2, out: "ingot: claim: --image \"debian:13\": \"debian:13\" has no registry; write it in full, such as registry.example.com/debian:13, oci:/PATH of a layout, or the URL of a disk image with its digest (https://…#sha256:…); see ingot claim --help",
	},
	{
		name: "claim of a wrong name", args: "claim Web --image registry.example.com/os:1",
		code: 2, out: "ingot: \"Web\" is not a name of a claim: write NAME or NAMESPACE/NAME, of lower-case letters, digits and '-'",
	},
	{
		name: "plan with an unknown flag", args: "plan --nope",
		code: 1, out: "ingot: unknown flag --nope; see ingot plan --help",
	},
	{
		name: "plan in a wrong format", args: "plan -o xml",
		code: 1, out: "ingot: -o xml: ingot plan prints text, json, markdown; see ingot plan --help",
	},
	{
		name: "schema of a wrong kind", args: "schema Node",
		code: 2, out: "ingot: schema: \"Node\" is no kind that has a schema: it is List, Endpoint, BMC, BMCSecret, Server, ServerClaim, ServerBootConfiguration, ServerMaintenance, ServerReadinessRule, ImageCatalog, Secret; see ingot schema --help",
	},
	{
		name: "leases of no MAC address", args: "leases --mac hello",
		code: 2, out: "ingot: leases: --mac \"hello\" is not a MAC address: write it as 02:00:00:00:00:0a; see ingot leases --help",
	},
	{
		name: "check of no file", args: "check --config nowhere.yaml",
		code: 1, out: "RESULT  CHECK          FOUND\nwrong   configuration  read configuration: there is no file nowhere.yaml; name yours with --config. Correct it; nothing else was checked",
	},
	{
		name: "run of no file", args: "run --config nowhere.yaml",
		code: 1, out: "ingot: read configuration: there is no file nowhere.yaml; name yours with --config",
	},
	{
		name: "validate with no configuration", args: "validate --config nowhere.yaml web.yaml",
		code: 1, out: "ingot: read configuration: there is no file nowhere.yaml; name yours with --config",
	},
	{
		name: "image push to a layout", args: "image push oci:/a:1 oci:/b:1",
		code: 2, out: "ingot: push copies from a layout to a registry: ingot image push oci:FOLDER:TAG REGISTRY/REPOSITORY:TAG",
	},
	{
		name: "image make of nothing", args: "image make oci:/tmp/x:1",
		code: 2, out: "ingot: nothing to boot: give --disk, --kernel and --initramfs, --uki, or all of them",
	},
}
