package ignition

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coreos/butane/config/common"
	fcos "github.com/coreos/butane/config/fcos/v1_7"
	openshift "github.com/coreos/butane/config/openshift/v4_22"
	ignerrors "github.com/coreos/ignition/v2/config/shared/errors"
	"github.com/coreos/vcontext/path"
	"github.com/coreos/vcontext/report"
	"github.com/coreos/vcontext/validate"

	"ingot/model"
)

// A message of a library may repeat any text of a source, and a source is a secret, its keys as well: with a wrong
// indentation a value becomes one. So only messages that are constants are shown. Others become texts of this file.

// constants are the messages of Ignition and Butane that repeat nothing.
var constants = messagesOf(
	ignerrors.ErrInvalid, ignerrors.ErrEmpty, ignerrors.ErrDuplicate, ignerrors.ErrInvalidVersion, ignerrors.ErrUnknownVersion, ignerrors.ErrDeprecated,
	ignerrors.ErrCompressionInvalid, ignerrors.ErrFileUsedSymlink, ignerrors.ErrDirectoryUsedSymlink, ignerrors.ErrLinkUsedSymlink,
	ignerrors.ErrLinkTargetRequired, ignerrors.ErrHardLinkToDirectory, ignerrors.ErrHardLinkSpecifiesOwner, ignerrors.ErrDiskDeviceRequired,
	ignerrors.ErrPartitionNumbersCollide, ignerrors.ErrPartitionsOverlap, ignerrors.ErrPartitionsMisaligned, ignerrors.ErrOverwriteAndNilSource,
	ignerrors.ErrVerificationAndNilSource, ignerrors.ErrFilesystemInvalidFormat, ignerrors.ErrLabelNeedsFormat, ignerrors.ErrFormatNilWithOthers,
	ignerrors.ErrExt4LabelTooLong, ignerrors.ErrBtrfsLabelTooLong, ignerrors.ErrXfsLabelTooLong, ignerrors.ErrSwapLabelTooLong, ignerrors.ErrVfatLabelTooLong,
	ignerrors.ErrLuksLabelTooLong, ignerrors.ErrLuksNameContainsSlash, ignerrors.ErrInvalidLuksKeyFile, ignerrors.ErrClevisPinRequired,
	ignerrors.ErrUnknownClevisPin, ignerrors.ErrClevisConfigRequired, ignerrors.ErrClevisCustomWithOthers, ignerrors.ErrTangThumbprintRequired,
	ignerrors.ErrInvalidTangAdvertisement, ignerrors.ErrFileIllegalMode, ignerrors.ErrModeSpecialBits, ignerrors.ErrBothIDAndNameSet, ignerrors.ErrLabelTooLong,
	ignerrors.ErrDoesntMatchGUIDRegex, ignerrors.ErrLabelContainsColon, ignerrors.ErrNoPath, ignerrors.ErrPathRelative, ignerrors.ErrDirtyPath,
	ignerrors.ErrPartitionsOverwritten, ignerrors.ErrFilesystemImplicitWipe, ignerrors.ErrRaidLevelRequired, ignerrors.ErrSparesUnsupportedForLevel,
	ignerrors.ErrUnrecognizedRaidLevel, ignerrors.ErrRaidDevicesRequired, ignerrors.ErrShouldNotExistWithOthers, ignerrors.ErrZeroesWithShouldNotExist,
	ignerrors.ErrNeedLabelOrNumber, ignerrors.ErrDuplicateLabels, ignerrors.ErrInvalidProxy, ignerrors.ErrInsecureProxy, ignerrors.ErrPathConflictsSystemd,
	ignerrors.ErrCexWithClevis, ignerrors.ErrCexWithKeyFile, ignerrors.ErrInvalidSystemdExt, ignerrors.ErrInvalidSystemdDropinExt, ignerrors.ErrNoSystemdExt,
	ignerrors.ErrInvalidInstantiatedUnit, ignerrors.ErrSourceRequired, ignerrors.ErrInvalidScheme, ignerrors.ErrInvalidUrl, ignerrors.ErrInvalidHTTPHeader,
	ignerrors.ErrEmptyHTTPHeaderName, ignerrors.ErrUnsupportedSchemeForHTTPHeaders, ignerrors.ErrHashMalformed, ignerrors.ErrHashWrongSize,
	ignerrors.ErrHashUnrecognized, ignerrors.ErrInvalidS3ARN, ignerrors.ErrInvalidS3ObjectVersionId, common.ErrNoVariant, common.ErrInvalidVersion,
	common.ErrInvalidSourceConfig, common.ErrInvalidGeneratedConfig, common.ErrRhcosVariantUnsupported, common.ErrTooManyResourceSources,
	common.ErrFilesDirEscape, common.ErrFileType, common.ErrNodeExists, common.ErrNoFilesDir, common.ErrTreeNotDirectory, common.ErrTreeNoLocal,
	common.ErrDecimalMode, common.ErrTooManySystemdSources, common.ErrQuadletBadExtension, common.ErrTemplateInstanceCannotHaveContents,
	common.ErrMountUnitNoPath, common.ErrMountUnitNoFormat, common.ErrMountPointForbidden, common.ErrUnknownBootDeviceLayout,
	common.ErrUnknownBootDeviceLayoutLegacy, common.ErrTooFewMirrorDevices, common.ErrMirrorRequiresLayout, common.ErrNoLuksBootDevice,
	common.ErrMirrorNotSupport, common.ErrLuksBootDeviceBadName, common.ErrCexArchitectureMismatch, common.ErrCexNotSupported, common.ErrNoLuksMethodSpecified,
	common.ErrReuseByLabel, common.ErrWrongPartitionNumber, common.ErrRootTooSmall, common.ErrRootConstrained, common.ErrFieldElided, common.ErrNameRequired,
	common.ErrRoleRequired, common.ErrInvalidKernelType, common.ErrBtrfsSupport, common.ErrFilesystemNoneSupport, common.ErrFileSchemeSupport,
	common.ErrFileAppendSupport, common.ErrFileCompressionSupport, common.ErrFileHeaderSupport, common.ErrFileSpecialModeSupport, common.ErrGroupSupport,
	common.ErrUserFieldSupport, common.ErrUserNameSupport, common.ErrKernelArgumentSupport, common.ErrMissingKernelArgumentCex, common.ErrClevisSupport,
	common.ErrDirectorySupport, common.ErrDiskSupport, common.ErrFilesystemSupport, common.ErrLinkSupport, common.ErrLuksSupport, common.ErrRaidSupport,
	common.ErrGrubUserNameNotSpecified, common.ErrGrubPasswordNotSpecified, common.ErrGeneralKernelArgumentSupport, common.ErrUnkownIgnitionVersion,
)

func messagesOf(all ...error) map[string]bool {
	m := make(map[string]bool, len(all))
	for _, err := range all {
		m[err.Error()] = true
	}
	return m
}

// explainSource makes an error of a library's report, or of its error if it made no report. config is the type that
// the source was decoded into.
func explainSource(of string, config reflect.Type, entries []report.Entry, err error) *SourceError {
	e := &SourceError{Of: of}
	for _, entry := range entries[:min(len(entries), maxProblems)] {
		line, column := entry.Marker.Start()
		message := shownMessage(entry.Message)
		if isUnusedKey(entry) {
			message = unknownKey(config, entry.Context)
		}
		e.Problems = append(e.Problems, SourceProblem{int(line), int(column), message})
	}
	if len(e.Problems) == 0 {
		e.Problems = yamlProblems(err)
	}
	return e
}

func isUnusedKey(e report.Entry) bool {
	return strings.HasPrefix(strings.ToLower(e.Message), "unused key ")
}

// jsonType is the type that package json wants, at the end of its message.
var jsonType = regexp.MustCompile(`(?s)^json: cannot unmarshal .* of type (\S+)$`)

func shownMessage(message string) string {
	wanted := jsonType.FindStringSubmatch(message)
	switch {
	case constants[message]:
		return message
	case wanted != nil:
		return "want " + kindOfType(wanted[1])
	case strings.HasPrefix(message, "unit ") || strings.HasPrefix(message, "template unit "):
		return "the unit has no [Install] section, so enabling it has no effect"
	case strings.HasPrefix(message, "invalid unit content"):
		return "the systemd unit cannot be read"
	}
	return "this is not accepted; ignition-validate or butane --strict says more"
}

// unknownKey is the message about a key that does not exist where context leads.
func unknownKey(config reflect.Type, context path.ContextPath) string {
	known := knownKeys(config, context)
	if len(known) == 0 {
		return "unknown key"
	}
	if near := model.Nearest(fmt.Sprint(context.Path[context.Len()-1]), known); near != "" {
		return fmt.Sprintf("unknown key, did you mean %q?", near)
	}
	return "unknown key; known here: " + strings.Join(known, ", ")
}

// knownKeys returns the keys of the mapping that has the last element of context.
func knownKeys(t reflect.Type, context path.ContextPath) (names []string) {
	fields := fieldsOf(t)
	for _, step := range context.Path[:max(0, context.Len()-1)] {
		if _, isIndex := step.(int); isIndex {
			continue
		}
		i := slices.IndexFunc(fields, func(f validate.StructField) bool { return validate.FieldName(f, context.Tag) == fmt.Sprint(step) })
		if i < 0 {
			return nil
		}
		fields = fieldsOf(fields[i].Type)
	}
	for _, f := range fields {
		if name := validate.FieldName(f, context.Tag); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func fieldsOf(t reflect.Type) []validate.StructField {
	for t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer) {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil
	}
	return validate.GetFields(reflect.Zero(t))
}

// butaneConfig returns the type of a Butane config, of the newest version.
func butaneConfig(variant string) reflect.Type {
	if variant == "openshift" {
		return reflect.TypeFor[openshift.Config]()
	}
	return reflect.TypeFor[fcos.Config]()
}

// cloudKeys are frequent keys of cloud-config, Butane and netplan: their names can be shown, because they are not text of
// the source.
var cloudKeys = strings.Fields(`apt autoinstall bootcmd ca_certs chpasswd config content contents datasource directories disk_setup disks
	dhcp4 dhcp6 enabled ethernets filesystems files final_message fqdn fs_setup groups growpart hostname ignition kernel_arguments keyboard links
	local-hostname locale lock_passwd manage_etc_hosts match mode mounts name nameservers network networks ntp output overwrite owner
	package_update package_upgrade packages passwd password path permissions phone_home power_state renderer resize_rootfs routes runcmd shell
	snap ssh_authorized_keys ssh_keys ssh_pwauth storage sudo swap systemd timezone units user users variant version write_files yum_repos`)

var (
	// nextYAML begins each of the messages about types, which the YAML library joins. A value that it shows there is
	// shorter than this.
	nextYAML  = regexp.MustCompile(`\n  line (\d+): `)
	yamlLine  = regexp.MustCompile(`^line (\d+): `)
	yamlType  = regexp.MustCompile(`(?s)^cannot unmarshal .* into (\S+)$`)
	yamlTwice = regexp.MustCompile(`(?s)^mapping key (.*) already defined at line (\d+)$`)
	// yamlSyntax are the beginnings of the library's messages that are constants.
	yamlSyntax = regexp.MustCompile(`^(?:did not find|could not find|found|mapping (?:keys|values) are|block sequence|control characters|exceeded max|` +
		`document contains|map merge|invalid (?:Unicode|leading|trailing|character|length)|incomplete|(?:un)?expected low|!!binary value) `)
)

// yamlProblems are the problems in an error of the YAML library, or of Butane.
func yamlProblems(err error) (all []SourceProblem) {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "Error unmarshaling yaml: "), "yaml: ")
	if unknown := new(common.ErrUnknownVersion); constants[text] || errors.As(err, unknown) {
		if !constants[text] {
			text = "this variant or version of Butane is not known; write for example variant: fcos and version: 1.6.0"
		}
		return []SourceProblem{{Message: text}}
	}
	if strings.HasPrefix(text, "unmarshal errors:") {
		at := nextYAML.FindAllStringSubmatchIndex(text, maxProblems+1)
		for i, m := range at[:min(len(at), maxProblems)] {
			end := len(text)
			if i+1 < len(at) {
				end = at[i+1][0]
			}
			line, _ := strconv.Atoi(text[m[2]:m[3]])
			all = append(all, SourceProblem{Line: line, Message: yamlMessage(text[m[1]:end])})
		}
		return all
	}
	var p SourceProblem
	if m := yamlLine.FindStringSubmatch(text); m != nil {
		p.Line, _ = strconv.Atoi(m[1])
		text = text[len(m[0]):]
	}
	p.Message = yamlMessage(text)
	return []SourceProblem{p}
}

func yamlMessage(text string) string {
	types, twice := yamlType.FindStringSubmatch(text), yamlTwice.FindStringSubmatch(text)
	switch {
	case types != nil:
		return "want " + kindOfType(types[1])
	case twice != nil:
		if name, err := strconv.Unquote(twice[1]); err == nil && slices.Contains(cloudKeys, name) {
			return fmt.Sprintf("key %q is already in line %s of the document: keep one of them", name, twice[2])
		}
		return "this key is already in line " + twice[2] + " of the document: keep one of them"
	case strings.HasPrefix(text, "unknown anchor "):
		return "an alias of an unknown anchor"
	case strings.HasPrefix(text, "anchor "):
		return "an anchor that contains itself"
	case strings.HasPrefix(text, "cannot decode "):
		return "a value that does not fit its tag"
	case yamlSyntax.MatchString(text):
		return model.YAMLAdvice(text, nil)
	}
	return "this is not valid YAML"
}

// kindOfType names what a Go type is made of.
func kindOfType(t string) string {
	switch t = strings.TrimLeft(t, "*"); {
	case strings.HasPrefix(t, "[]"):
		return "a list"
	case strings.HasPrefix(t, "int"), strings.HasPrefix(t, "uint"):
		return "a whole number"
	case t == "string":
		return "text"
	case t == "bool":
		return "true or false"
	}
	return "another kind of value"
}
