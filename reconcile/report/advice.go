package report

import (
	"ingot/model"
	"ingot/reconcile/plan/proposal"
)

const (
	newRetry = "give the Server a new value of annotation " + model.AnnotationOperation + ": " + model.OperationRetry + "#…"
	retry    = "correct it, then " + newRetry
)

type advice model.Advice

// adviceOn is the advice on a reason, the zero value if there is none.
func adviceOn(reason model.Reason) model.Advice {
	if a, ok := model.BMCAdvice[reason]; ok {
		return a
	}
	return model.Advice(advices[reason])
}

// advices is the advice on the reasons that model.BMCAdvice lacks.
var advices = map[model.Reason]advice{
	model.ReasonInProgress:             {proposal.ActorNone, model.GoesOn},
	model.ReasonWaitingForPower:        {proposal.ActorNone, model.GoesOn},
	model.ReasonWaitingForPowerOff:     {proposal.ActorNone, model.GoesOn},
	model.ReasonWaitingForReport:       {proposal.ActorNone, model.GoesOn},
	model.ReasonWaitingForBoot:         {proposal.ActorNone, model.GoesOn},
	model.ReasonWaitingForStatusBranch: {proposal.RackOperator, "see the check status of /readyz: the repository has to accept pushes"},
	model.ReasonPowerOnsLimited:        {proposal.ActorNone, model.GoesOn},
	model.ReasonInstallsLimited:        {proposal.ActorNone, model.GoesOn},
	model.ReasonReprovisionQueued:      {proposal.ActorNone, model.GoesOn},
	model.ReasonWiping:                 {proposal.ActorNone, model.GoesOn},
	model.ReasonPending:                {proposal.ActorNone, model.GoesOn},
	model.ReasonDecommissioned:         {proposal.ActorNone, model.GoesOn},
	model.ReasonFoundRunning:           {proposal.RackOperator, "do one of the following: power it off, adopt it, or have it discovered with annotation " + model.AnnotationDiscover},
	model.ReasonFailing:                {proposal.RackOperator, "nothing, unless it persists: then check what the message names"},
	model.ReasonDiscoveryFailed:        {proposal.RackOperator, retry},
	model.ReasonReportIncomplete:       {proposal.RackOperator, "check that its network cards have link, and check its console"},
	model.ReasonMachineAmbiguous:       {proposal.RackOperator, "write the MAC addresses of its network cards to its Server with annotation " + model.AnnotationMACAddresses},
	model.ReasonNoDiscoveryImage:       {proposal.RackOperator, "set discovery.image in Ingot's configuration and restart it"},
	model.ReasonCleanupFailed:          {proposal.RackOperator, "check the disks in the message; accept them as it says, or " + retry},
	model.ReasonRetained:               {proposal.RackOperator, "set reclaimPolicy Recycle when its disks may be wiped"},
	model.ReasonMaintenance:            {proposal.RackOperator, "remove the ServerMaintenance, or the annotation, when the work is done"},
	model.ReasonIgnored:                {proposal.RackOperator, "remove the annotation when Ingot may continue"},
	model.ReasonOrphaned:               {proposal.RackOperator, "commit a BMC for it if Ingot should manage it again; if the machine will not come back, have it forgotten as the message says"},
	model.ReasonManifestUnreadable:     {proposal.RackOperator, "correct the manifest that " + model.ReportFleet + " names"},
	model.ReasonSystemMissing:          {proposal.RackOperator, "check the BMC's list of systems: the machine may have been removed"},
	model.ReasonPowerOutcomeUnknown:    {proposal.RackOperator, "check the machine and its BMC, then " + newRetry},
	model.ReasonPowerUnstable:          {proposal.RackOperator, "find out why its power state keeps changing, or does not change: power supply, cooling, event log, manual intervention"},
	model.ReasonUnknownState:           {proposal.RackOperator, "run the version of Ingot that wrote the record"},
	model.ReasonBootMethodMismatch:     {proposal.RackOperator, "name an image that its firmware can start, or change its boot method"},
	model.ReasonBootTimeout:            {proposal.RackOperator, "check its console; it is tried again"},
	model.ReasonBootFailed:             {proposal.RackOperator, retry},
	model.ReasonTicketStolen:           {proposal.RackOperator, "find the machine in the message, and rotate the contents of the claim's Secret; then " + newRetry},
	model.ReasonUnconfirmed:            {proposal.Tenant, "make the system report that it booted, or set annotation " + model.AnnotationBooted + " to what counts as booted"},
	model.ReasonConditionsUnmet:        {proposal.RackOperator, "fulfil the conditions in the message; a label is set by a commit, on the Server or its BMC"},
	model.ReasonPowerIgnored:           {proposal.RackOperator, "remove spec.power from the Server: the claim sets it"},
	model.ReasonSourceInvalid:          {proposal.Tenant, "correct the Secret or the annotation where the message says"},
	model.ReasonArmFailed:              {proposal.RackOperator, "see Ingot's log at that time; it is tried again"},
	model.ReasonSecretMissing:          {proposal.Tenant, "commit the missing secret, or put it where the message says"},
	model.ReasonInvalidReference:       {proposal.Tenant, "correct the image of the claim"},
	model.ReasonImageUnknown:           {proposal.Tenant, "name an image of images.yaml, or write the whole reference"},
	model.ReasonRegistryNotAllowed:     {proposal.RackOperator, "add the host to boot.registries or the folder to boot.imageDirs, or name an image elsewhere"},
	model.ReasonUnauthorized:           {proposal.RackOperator, "correct the credentials in boot.credentialsFile"},
	model.ReasonNotFound:               {proposal.Tenant, "push the image, or correct its name"},
	model.ReasonRegistryUnreachable:    {proposal.RackOperator, "check that Ingot can reach the registry, or read the folder; it is tried again"},
	model.ReasonNoArchitecture:         {proposal.Tenant, "push the image for this architecture too, or select other servers"},
	model.ReasonValidationFailed:       {proposal.Tenant, "push an image that can be booted: the message says what is missing"},
	model.ReasonSecureBootBlocksProbe:  {proposal.RackOperator, "sign what it boots, or switch Secure Boot off: docs/secureboot.md"},
	model.ReasonNoServerFree:           {proposal.RackOperator, "free or add a server that matches, or relax the claim's selector; `ingot status server` lists all servers"},
	model.ReasonServerUnknown:          {proposal.Tenant, "name a server that is known in serverRef; `ingot status server` lists them"},
	model.ReasonServerNotFree:          {proposal.RackOperator, "wait until the server is free, or name another in serverRef"},
	model.ReasonSuperseded:             {proposal.RackOperator, "remove the ServerBootConfiguration, or the object in the message that takes precedence"},
	model.ReasonSelectorMismatch:       {proposal.Tenant, "correct serverRef or serverSelector of the claim: both must match"},
	model.ReasonPendingReprovision:     {proposal.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationReprovision + " when it may be reinstalled"},
	model.ReasonClaimQuarantined:       {proposal.Tenant, "correct the manifest that " + model.ReportFleet + " names"},
	model.ReasonAbsentWithoutCommit:    {proposal.RackOperator, "put the manifest back, or approve its removal with a commit that has the line in the message"},
	model.ReasonGuardHeld:              {proposal.RackOperator, "read the list in " + model.ReportFleet + ", and approve it with the line there if you want it"},
	model.ReasonApprovalAwaited:        {proposal.Tenant, "set the annotation in the message on the ServerClaim when the maintenance may begin"},
	model.ReasonObserveOnly:            {proposal.RackOperator, "see /readyz: restore what it names, the store or the repository"},
	model.ReasonRevisionOutdated:       {proposal.RackOperator, "see the check git of /readyz: the repository has to be readable"},
	model.ReasonFleetUnknown:           {proposal.RackOperator, "adopt the running servers with spec.serverClaimRef, or approve with the line in the message"},
	model.ReasonInstallUnknown:         {proposal.RackOperator, "check the machine; if it is not installed, request that with the annotation in the message"},
	model.ReasonRecordUnreadable:       {proposal.RackOperator, "find out which server it is, and approve with the line in the message that its record is discarded"},
	model.ReasonBMCUnreachable:         {proposal.RackOperator, "check that its BMC has power and link"},
	model.ReasonAddressLost:            {proposal.RackOperator, "check that the device has power and link: it returns with its next lease"},
	model.ReasonEndpointMissing:        {proposal.RackOperator, "commit the Endpoint, or correct endpointRef of the BMC"},
	model.ReasonAwaitingDevice:         {proposal.RackOperator, "check that the device has power and link, and that its port or client identifier is the one in the manifest"},
	model.ReasonAddressStillLeased:     {proposal.ActorNone, model.GoesOn},
	model.ReasonDeviceInGitTwice:       {proposal.RackOperator, "remove one of the two Endpoints"},
	model.ReasonCredentialsMissing:     {proposal.RackOperator, "add credentials to the entry, or commit a BMCSecret with the name of the BMC"},
	model.ReasonNoMACPrefix:            {proposal.RackOperator, "add an entry of type bmc to the MAC prefix database, or commit a BMC for it"},
	model.ReasonShadowedBy:             {proposal.RackOperator, "nothing, if it is the same device; otherwise rename one of them"},
	model.ReasonSettingPending:         {proposal.ActorNone, model.GoesOn},

	model.ReasonDigestMissing:       {proposal.Tenant, "add the digest from the image's publisher to its URL: #sha256:… or #sha512:…"},
	model.ReasonDigestMismatch:      {proposal.Tenant, "compare the digest with the one that the publisher lists now; it is the digest of the file as published"},
	model.ReasonImageUnsafe:         {proposal.Tenant, "name an image that is complete in one file: `qemu-img convert` makes one"},
	model.ReasonImageFormat:         {proposal.Tenant, "name a raw or qcow2 image, or convert it as the message says"},
	model.ReasonImageNoPartitions:   {proposal.Tenant, "name the image of a whole disk, with its partition table"},
	model.ReasonImageCannotBoot:     {proposal.Tenant, "name an image for this firmware, or select servers with the other firmware"},
	model.ReasonImageTooLarge:       {proposal.Tenant, "name a smaller image, or have boot.cacheSize raised in Ingot's configuration"},
	model.ReasonImagePreparing:      {proposal.ActorNone, model.GoesOn},
	model.ReasonSectorSizeMismatch:  {proposal.Tenant, "name an image for this sector size, or another disk with annotation " + model.AnnotationRootDevice},
	model.ReasonDiskTooSmall:        {proposal.Tenant, "name a smaller image, or a larger disk with annotation " + model.AnnotationRootDevice},
	model.ReasonRootDeviceAmbiguous: {proposal.Tenant, "correct annotation " + model.AnnotationRootDevice + " so that it matches one of the disks in the message"},
	model.ReasonRootDeviceMissing:   {proposal.Tenant, "correct annotation " + model.AnnotationRootDevice + ", or look for the disk that it names"},
	model.ReasonRootDeviceNotBlank:  {proposal.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationOverwrite + " if the content of the disk may be overwritten"},
	model.ReasonRootDeviceGone:      {proposal.Tenant, "look for the disk, or name another with annotation " + model.AnnotationRootDevice},
	model.ReasonMultipath:           {proposal.RackOperator, "remove all paths to the disk but one, or name a disk with one path with annotation " + model.AnnotationRootDevice},
	model.ReasonDuplicateIdentity:   {proposal.RackOperator, "wipe or remove the disk in the message: the system could not distinguish the two"},
	model.ReasonSeedNoRoom:          {proposal.Tenant, "name an image with GPT, or another kind of seed with annotation " + model.AnnotationSeed},
	model.ReasonSeedTargetMissing:   {proposal.Tenant, "correct annotation " + model.AnnotationSeed + ": the message says what the image lacks for it"},
	model.ReasonSeedFilesystem:      {proposal.Tenant, "choose another kind of seed with annotation " + model.AnnotationSeed},

	model.ReasonInstalling:       {proposal.ActorNone, model.GoesOn},
	model.ReasonDiskBusy:         {proposal.RackOperator, "see in the message what is using the disk; it is tried again"},
	model.ReasonDiskWriteFailed:  {proposal.RackOperator, "replace the disk in the message, or name another with annotation " + model.AnnotationRootDevice},
	model.ReasonDiskLies:         {proposal.RackOperator, "replace the disk in the message: it does not store what is written"},
	model.ReasonInstallStalled:   {proposal.RackOperator, "check its console and its link; it is tried again"},
	model.ReasonInstallFailed:    {proposal.RackOperator, retry},
	model.ReasonInstalledNotSeen: {proposal.Tenant, "check its console: it boots from its disk, and nothing has reported that it is up; it is not installed again"},
	model.ReasonCloudInitFailed:  {proposal.Tenant, "log in and read /var/log/cloud-init.log; fix it there, or in the Secret and reinstall"},
}
