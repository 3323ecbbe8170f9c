package report

import (
	"ingot/model"
	"ingot/reconcile/plan"
)

// advice is who usually has to act on a reason, and what to do. A message may name
// somebody else.
type advice struct {
	who  plan.Actor
	next string
}

// goesOn is the next step when nobody has to act.
const goesOn = "nothing: Ingot continues on its own"

const (
	newRetry = "give the Server a new value of annotation " + model.AnnotationOperation + ": " + model.OperationRetry + "#…"
	retry    = "correct it, then " + newRetry
)

// advices are those of all reasons.
var advices = map[model.Reason]advice{
	model.ReasonInProgress:             {plan.ActorNone, goesOn},
	model.ReasonWaitingForPower:        {plan.ActorNone, goesOn},
	model.ReasonWaitingForPowerOff:     {plan.ActorNone, goesOn},
	model.ReasonWaitingForReport:       {plan.ActorNone, goesOn},
	model.ReasonWaitingForBoot:         {plan.ActorNone, goesOn},
	model.ReasonWaitingForStatusBranch: {plan.RackOperator, "see the check status of /readyz: the repository has to accept pushes"},
	model.ReasonPowerOnsLimited:        {plan.ActorNone, goesOn},
	model.ReasonInstallsLimited:        {plan.ActorNone, goesOn},
	model.ReasonReprovisionQueued:      {plan.ActorNone, goesOn},
	model.ReasonWiping:                 {plan.ActorNone, goesOn},
	model.ReasonPending:                {plan.ActorNone, goesOn},
	model.ReasonFoundRunning:           {plan.RackOperator, "power it off, or have it discovered with annotation " + model.AnnotationDiscover},
	model.ReasonFailing:                {plan.RackOperator, "nothing, unless it persists: then check what the message names"},
	model.ReasonDiscoveryFailed:        {plan.RackOperator, retry},
	model.ReasonReportIncomplete:       {plan.RackOperator, "check that its network cards have link, and check its console"},
	model.ReasonMachineAmbiguous:       {plan.RackOperator, "write the MAC addresses of its network cards to its Server with annotation " + model.AnnotationMACAddresses},
	model.ReasonNoDiscoveryImage:       {plan.RackOperator, "set discovery.image in Ingot's configuration and restart it"},
	model.ReasonCleanupFailed:          {plan.RackOperator, "check the disks in the message; accept them as it says, or " + retry},
	model.ReasonRetained:               {plan.RackOperator, "set reclaimPolicy Recycle when its disks may be wiped"},
	model.ReasonMaintenance:            {plan.RackOperator, "remove the ServerMaintenance, or the annotation, when the work is done"},
	model.ReasonIgnored:                {plan.RackOperator, "remove the annotation when Ingot may continue"},
	model.ReasonOrphaned:               {plan.RackOperator, "commit a BMC for it if Ingot is to manage it again; until then nothing is done to it"},
	model.ReasonManifestUnreadable:     {plan.RackOperator, "correct the manifest that " + model.ReportProblems + " names"},
	model.ReasonSystemMissing:          {plan.RackOperator, "check the BMC's list of systems: the machine may have been removed"},
	model.ReasonSystemUnreadable:       {plan.RackOperator, "check the system on its BMC; restart the BMC if it persists"},
	model.ReasonIdentityMismatch:       {plan.RackOperator, "find out which machine is there: correct what the message names in Git, put it back, or connect it to a BMC that is in Git"},
	model.ReasonIdentityUnknown:        {plan.RackOperator, "check the UUID of the system on its BMC: it reported one before"},
	model.ReasonDuplicateUUID:          {plan.RackOperator, "remove one of its BMCs from Git, or give one of the machines its own UUID"},
	model.ReasonPowerOutcomeUnknown:    {plan.RackOperator, "check the machine and its BMC, then " + newRetry},
	model.ReasonPowerUnstable:          {plan.RackOperator, "find out why its power state keeps changing: power supply, cooling, event log, manual intervention"},
	model.ReasonUnknownState:           {plan.RackOperator, "run the version of Ingot that wrote the record, or a newer one"},
	model.ReasonArchitectureNotServed:  {plan.RackOperator, "add it to boot.architectures in Ingot's configuration and restart it"},
	model.ReasonBootMethodMismatch:     {plan.RackOperator, "name an image that its firmware can start, or change its boot method"},
	model.ReasonBootTimeout:            {plan.RackOperator, "check its console; it is tried again"},
	model.ReasonBootFailed:             {plan.RackOperator, retry},
	model.ReasonTicketStolen:           {plan.RackOperator, "find the machine in the message, and rotate the contents of the claim's Secret; then " + newRetry},
	model.ReasonUnconfirmed:            {plan.Tenant, "make the system report that it booted, or set annotation " + model.AnnotationBooted + " to what counts as booted"},
	model.ReasonConditionsUnmet:        {plan.RackOperator, "fulfil the conditions in the message; a label is set by a commit, on the Server or its BMC"},
	model.ReasonPowerIgnored:           {plan.RackOperator, "remove spec.power from the Server: the claim sets it"},
	model.ReasonSourceInvalid:          {plan.Tenant, "correct the Secret or the annotation where the message says"},
	model.ReasonArmFailed:              {plan.RackOperator, "see Ingot's log at that time; it is tried again"},
	model.ReasonSecretMissing:          {plan.Tenant, "commit the missing secret, or put it where the message says"},
	model.ReasonInvalidReference:       {plan.Tenant, "correct the image of the claim"},
	model.ReasonRegistryNotAllowed:     {plan.RackOperator, "add the registry to boot.allowedRegistries or the folder to boot.imageDirs, or name an image elsewhere"},
	model.ReasonUnauthorized:           {plan.RackOperator, "correct the credentials in boot.credentialsFile"},
	model.ReasonNotFound:               {plan.Tenant, "push the image, or correct its name"},
	model.ReasonRegistryUnreachable:    {plan.RackOperator, "check that Ingot can reach the registry, or read the folder; it is tried again"},
	model.ReasonNoArchitecture:         {plan.Tenant, "push the image for this architecture too, or select other servers"},
	model.ReasonValidationFailed:       {plan.Tenant, "push an image that can be booted: the message says what is missing"},
	model.ReasonSecureBootBlocksProbe:  {plan.RackOperator, "sign what it boots, or switch Secure Boot off: docs/secureboot.md"},
	model.ReasonNoServerFree:           {plan.RackOperator, "free or add a server that matches, or relax the claim's selector; `ingot status server` lists all servers"},
	model.ReasonServerUnknown:          {plan.Tenant, "name a server that is known in serverRef; `ingot status server` lists them"},
	model.ReasonServerNotFree:          {plan.RackOperator, "wait until the server is free, or name another in serverRef"},
	model.ReasonSuperseded:             {plan.RackOperator, "remove the ServerBootConfiguration, or the object in the message that takes precedence"},
	model.ReasonSelectorMismatch:       {plan.Tenant, "correct serverRef or serverSelector of the claim: both must match"},
	model.ReasonPendingReprovision:     {plan.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationReprovision + " when it may be reinstalled"},
	model.ReasonClaimQuarantined:       {plan.Tenant, "correct the manifest that " + model.ReportProblems + " names"},
	model.ReasonAbsentWithoutCommit:    {plan.RackOperator, "put the manifest back, or approve its removal with a commit that has the line in the message"},
	model.ReasonGuardHeld:              {plan.RackOperator, "read the list in " + model.ReportRevision + ", and approve it with the line there if you want it"},
	model.ReasonApprovalAwaited:        {plan.Tenant, "set the annotation in the message on the ServerClaim when the maintenance may begin"},
	model.ReasonObserveOnly:            {plan.RackOperator, "see /readyz: restore what it names, the store or the repository"},
	model.ReasonRevisionOutdated:       {plan.RackOperator, "see the check git of /readyz: the repository has to be readable"},
	model.ReasonFleetUnknown:           {plan.RackOperator, "adopt the running servers with spec.serverClaimRef, or approve with the line in the message"},
	model.ReasonFromStatusBranch:       {plan.RackOperator, "wait for its BMC, or bring the BMC back: the record was read from the status branch"},
	model.ReasonDisputed:               {plan.RackOperator, "find out which of the copies is right, and choose it with a commit that has its line"},
	model.ReasonInstallUnknown:         {plan.RackOperator, "check the machine; if it is not installed, request that with the annotation in the message"},
	model.ReasonRecordUnreadable:       {plan.RackOperator, "find out which server it is, and approve with the line in the message that its record is discarded"},
	model.ReasonBMCUnreachable:         {plan.RackOperator, "check that its BMC has power and link"},
	model.ReasonConnectionFailed:       {plan.RackOperator, "check that the BMC has power and link, that its address is right, and that no firewall is in the way"},
	model.ReasonAuthenticationFailed:   {plan.RackOperator, "correct the BMCSecret in Git, or the account on the BMC; if it is locked, wait or unlock it"},
	model.ReasonCertificateChanged:     {plan.RackOperator, "find out why the certificate changed; if the change is legitimate, set annotation " + model.AnnotationOperation + ": " + model.OperationRetry + "#1 on the BMC in Git"},
	model.ReasonHalfAnswer:             {plan.RackOperator, "nothing, unless it persists: then restart the BMC, or update its firmware"},
	model.ReasonAddressNotAllowed:      {plan.RackOperator, "correct the address, or allow it in Ingot's configuration, as the message says"},
	model.ReasonAddressLost:            {plan.RackOperator, "check that the device has power and link: it returns with its next lease"},
	model.ReasonEndpointMissing:        {plan.RackOperator, "commit the Endpoint, or correct endpointRef of the BMC"},
	model.ReasonCredentialsMissing:     {plan.RackOperator, "add credentials to the entry, or commit a BMCSecret with the name of the BMC"},
	model.ReasonNoMACPrefix:            {plan.RackOperator, "add an entry of type bmc to the MAC prefix database, or commit a BMC for it"},
	model.ReasonShadowedBy:             {plan.RackOperator, "nothing, if it is the same device; otherwise rename one of them"},
	model.ReasonUnknownError:           {plan.RackOperator, "check the BMC; restart it if it persists"},
	model.ReasonUnsupported:            {plan.RackOperator, "check whether its firmware can be updated"},
	model.ReasonSettingNotKept:         {plan.RackOperator, "update the BMC's firmware, or set it by hand"},
	model.ReasonBootOptionUnknown:      {plan.RackOperator, "correct spec.bootOrder of the Server"},
	model.ReasonSettingPending:         {plan.ActorNone, goesOn},
	model.ReasonBootOverrideNotKept:    {plan.RackOperator, "update the BMC's firmware, or put the network first in the boot order"},

	model.ReasonDigestMissing:       {plan.Tenant, "add the digest from the image's publisher to its URL: #sha256:… or #sha512:…"},
	model.ReasonDigestMismatch:      {plan.Tenant, "compare the digest with the one that the publisher lists now; it is the digest of the file as published"},
	model.ReasonImageUnsafe:         {plan.Tenant, "name an image that is complete in one file: `qemu-img convert` makes one"},
	model.ReasonImageFormat:         {plan.Tenant, "name a raw or qcow2 image, or convert it as the message says"},
	model.ReasonImageNoPartitions:   {plan.Tenant, "name the image of a whole disk, with its partition table"},
	model.ReasonImageCannotBoot:     {plan.Tenant, "name an image for this firmware, or select servers with the other firmware"},
	model.ReasonImageTooLarge:       {plan.Tenant, "name a smaller image, or have boot.maxImageSize raised in Ingot's configuration"},
	model.ReasonImagePreparing:      {plan.ActorNone, goesOn},
	model.ReasonSectorSizeMismatch:  {plan.Tenant, "name an image for this sector size, or another disk with annotation " + model.AnnotationRootDevice},
	model.ReasonDiskTooSmall:        {plan.Tenant, "name a smaller image, or a larger disk with annotation " + model.AnnotationRootDevice},
	model.ReasonRootDeviceAmbiguous: {plan.Tenant, "correct annotation " + model.AnnotationRootDevice + " so that it matches one of the disks in the message"},
	model.ReasonRootDeviceMissing:   {plan.Tenant, "correct annotation " + model.AnnotationRootDevice + ", or have somebody look for the disk that it names"},
	model.ReasonRootDeviceNotBlank:  {plan.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationOverwrite + " if the content of the disk may be overwritten"},
	model.ReasonRootDeviceGone:      {plan.Tenant, "have somebody look for the disk, or name another with annotation " + model.AnnotationRootDevice},
	model.ReasonMultipath:           {plan.RackOperator, "remove all paths to the disk but one, or name a disk with one path with annotation " + model.AnnotationRootDevice},
	model.ReasonDuplicateIdentity:   {plan.RackOperator, "wipe or remove the disk in the message: the system could not distinguish the two"},
	model.ReasonSeedNoRoom:          {plan.Tenant, "name an image with GPT, or another kind of seed with annotation " + model.AnnotationSeed},
	model.ReasonSeedTargetMissing:   {plan.Tenant, "correct annotation " + model.AnnotationSeed + ": the message says what the image lacks for it"},
	model.ReasonSeedFilesystem:      {plan.Tenant, "choose another kind of seed with annotation " + model.AnnotationSeed},

	model.ReasonInstalling:       {plan.ActorNone, goesOn},
	model.ReasonDiskBusy:         {plan.RackOperator, "see in the message what is using the disk; it is tried again"},
	model.ReasonDiskWriteFailed:  {plan.RackOperator, "replace the disk in the message, or name another with annotation " + model.AnnotationRootDevice},
	model.ReasonDiskLies:         {plan.RackOperator, "replace the disk in the message: it does not store what is written"},
	model.ReasonInstallStalled:   {plan.RackOperator, "check its console and its link; it is tried again"},
	model.ReasonInstallFailed:    {plan.RackOperator, retry},
	model.ReasonInstalledNotSeen: {plan.Tenant, "check its console: it boots from its disk, and nothing has reported that it is up; it is not installed again"},
	model.ReasonCloudInitFailed:  {plan.Tenant, "log in and read /var/log/cloud-init.log; fix it there, or in the Secret and reinstall"},
}
