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
const goesOn = "nothing: Ingot goes on by itself"

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
	model.ReasonWaitingForStatusBranch: {plan.RackOperator, "see the check status of /readyz: the repository has to take pushes"},
	model.ReasonPowerOnsLimited:        {plan.ActorNone, goesOn},
	model.ReasonInstallsLimited:        {plan.ActorNone, goesOn},
	model.ReasonReprovisionQueued:      {plan.ActorNone, goesOn},
	model.ReasonWiping:                 {plan.ActorNone, goesOn},
	model.ReasonPending:                {plan.ActorNone, goesOn},
	model.ReasonFoundRunning:           {plan.RackOperator, "power it off, or let it be discovered by annotation " + model.AnnotationDiscover},
	model.ReasonFailing:                {plan.RackOperator, "nothing, unless it stays so: then look at what the message names"},
	model.ReasonDiscoveryFailed:        {plan.RackOperator, retry},
	model.ReasonReportIncomplete:       {plan.RackOperator, "check that its network cards have link, and look at its console"},
	model.ReasonMachineAmbiguous:       {plan.RackOperator, "write the MAC addresses of its network cards to its Server by annotation " + model.AnnotationMACAddresses},
	model.ReasonNoDiscoveryImage:       {plan.RackOperator, "set discovery.image in Ingot's configuration and restart it"},
	model.ReasonCleanupFailed:          {plan.RackOperator, "look at the disks in the message; accept them as it says, or " + retry},
	model.ReasonRetained:               {plan.RackOperator, "set reclaimPolicy Recycle when its disks may be wiped"},
	model.ReasonMaintenance:            {plan.RackOperator, "remove the ServerMaintenance, or the annotation, when the work is done"},
	model.ReasonIgnored:                {plan.RackOperator, "remove the annotation when Ingot is to go on"},
	model.ReasonOrphaned:               {plan.RackOperator, "commit a BMC for it if Ingot is to go on with it; until then nothing is done to it"},
	model.ReasonManifestUnreadable:     {plan.RackOperator, "correct the manifest that " + model.ReportProblems + " names"},
	model.ReasonSystemMissing:          {plan.RackOperator, "look at the BMC's list of systems: the machine may have been taken out"},
	model.ReasonSystemUnreadable:       {plan.RackOperator, "look at the system on its BMC; restart the BMC if it stays so"},
	model.ReasonIdentityMismatch:       {plan.RackOperator, "find out which machine is there: correct what the message names in Git, put it back, or connect it to a BMC that is in Git"},
	model.ReasonIdentityUnknown:        {plan.RackOperator, "look at the UUID of the system on its BMC: it showed one before"},
	model.ReasonDuplicateUUID:          {plan.RackOperator, "take one of its BMCs out of Git, or give one of the machines a UUID of its own"},
	model.ReasonPowerOutcomeUnknown:    {plan.RackOperator, "look at the machine and its BMC, then " + newRetry},
	model.ReasonPowerUnstable:          {plan.RackOperator, "find out why its power does not stay as it is: supply, cooling, its event log, somebody's hand"},
	model.ReasonUnknownState:           {plan.RackOperator, "run the version of Ingot that wrote the record, or a newer one"},
	model.ReasonArchitectureNotServed:  {plan.RackOperator, "add it to boot.architectures in Ingot's configuration and restart it"},
	model.ReasonBootMethodMismatch:     {plan.RackOperator, "name an image that its firmware can start, or have it boot in another way"},
	model.ReasonBootTimeout:            {plan.RackOperator, "look at its console; it is tried again"},
	model.ReasonBootFailed:             {plan.RackOperator, retry},
	model.ReasonTicketStolen:           {plan.RackOperator, "find the machine in the message, and rotate what the claim's Secret holds; then " + newRetry},
	model.ReasonUnconfirmed:            {plan.Tenant, "have what it boots report, or say by annotation " + model.AnnotationBooted + " what counts"},
	model.ReasonConditionsUnmet:        {plan.RackOperator, "bring about what the message names; a label is set by a commit, on the Server or its BMC"},
	model.ReasonPowerIgnored:           {plan.RackOperator, "remove spec.power from the Server: the claim says it"},
	model.ReasonSourceInvalid:          {plan.Tenant, "correct the Secret or the annotation where the message says"},
	model.ReasonArmFailed:              {plan.RackOperator, "see the log of Ingot at that time; it is tried again"},
	model.ReasonSecretMissing:          {plan.Tenant, "commit the secret that is missing, or put it where the message says"},
	model.ReasonInvalidReference:       {plan.Tenant, "correct the image of the claim"},
	model.ReasonRegistryNotAllowed:     {plan.RackOperator, "add the registry to boot.allowedRegistries or the folder to boot.imageDirs, or name an image elsewhere"},
	model.ReasonUnauthorized:           {plan.RackOperator, "correct the credentials in boot.credentialsFile"},
	model.ReasonNotFound:               {plan.Tenant, "push the image, or correct its name"},
	model.ReasonRegistryUnreachable:    {plan.RackOperator, "check that the registry can be reached, or the folder read, from here; it is tried again"},
	model.ReasonNoArchitecture:         {plan.Tenant, "push the image for this architecture too, or select other servers"},
	model.ReasonValidationFailed:       {plan.Tenant, "push an image that can be booted: the message says what it lacks"},
	model.ReasonSecureBootBlocksProbe:  {plan.RackOperator, "sign what it boots, or switch Secure Boot off: docs/secureboot.md"},
	model.ReasonNoServerFree:           {plan.RackOperator, "free or add a server that matches, or ask for less in the claim; `ingot status server` lists them all"},
	model.ReasonServerUnknown:          {plan.Tenant, "name a server that is known in serverRef; `ingot status server` lists them"},
	model.ReasonServerNotFree:          {plan.RackOperator, "wait until the server is free, or name another in serverRef"},
	model.ReasonSuperseded:             {plan.RackOperator, "remove the ServerBootConfiguration, or what the message says is in its place"},
	model.ReasonSelectorMismatch:       {plan.Tenant, "correct serverRef or serverSelector of the claim, for both must match"},
	model.ReasonPendingReprovision:     {plan.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationReprovision + " when it may be reinstalled"},
	model.ReasonClaimQuarantined:       {plan.Tenant, "correct the manifest that " + model.ReportProblems + " names"},
	model.ReasonAbsentWithoutCommit:    {plan.RackOperator, "put the manifest back, or approve its removal by a commit with the line in the message"},
	model.ReasonGuardHeld:              {plan.RackOperator, "read the list in " + model.ReportRevision + ", and approve it by the line there if it is what you want"},
	model.ReasonApprovalAwaited:        {plan.Tenant, "set the annotation in the message on the ServerClaim when the maintenance may begin"},
	model.ReasonObserveOnly:            {plan.RackOperator, "see /readyz: bring back what it names, the store or the repository"},
	model.ReasonRevisionOutdated:       {plan.RackOperator, "see the check git of /readyz: the repository has to be read"},
	model.ReasonFleetUnknown:           {plan.RackOperator, "adopt the servers that run by spec.serverClaimRef, or approve by the line in the message"},
	model.ReasonFromStatusBranch:       {plan.RackOperator, "wait for its BMC, or bring it back: its record was read back from the status branch"},
	model.ReasonDisputed:               {plan.RackOperator, "find out which of the copies is right, and choose it by a commit with its line"},
	model.ReasonInstallUnknown:         {plan.RackOperator, "look at the machine; if it is not installed, ask for it by the annotation in the message"},
	model.ReasonRecordUnreadable:       {plan.RackOperator, "find out which server it is, and approve that its record is given up by the line in the message"},
	model.ReasonBMCUnreachable:         {plan.RackOperator, "check that its BMC has power and link"},
	model.ReasonConnectionFailed:       {plan.RackOperator, "check that the BMC has power and link, that its address is right, and that no firewall is in the way"},
	model.ReasonAuthenticationFailed:   {plan.RackOperator, "correct the BMCSecret in Git, or the account on the BMC; if it is locked, wait or unlock it"},
	model.ReasonCertificateChanged:     {plan.RackOperator, "find out why the certificate changed; if that is in order, set annotation " + model.AnnotationOperation + ": " + model.OperationRetry + "#1 on the BMC in Git"},
	model.ReasonHalfAnswer:             {plan.RackOperator, "nothing, unless it stays so: then restart the BMC, or update its firmware"},
	model.ReasonAddressNotAllowed:      {plan.RackOperator, "correct the address, or allow it in Ingot's configuration, as the message says"},
	model.ReasonAddressLost:            {plan.RackOperator, "check that the device has power and link: it is back with its next lease"},
	model.ReasonEndpointMissing:        {plan.RackOperator, "commit the Endpoint, or correct endpointRef of the BMC"},
	model.ReasonCredentialsMissing:     {plan.RackOperator, "add credentials to the entry, or commit a BMCSecret of the name of the BMC"},
	model.ReasonNoMACPrefix:            {plan.RackOperator, "add an entry of type bmc to the MAC prefix database, or commit a BMC for it"},
	model.ReasonShadowedBy:             {plan.RackOperator, "nothing, if it is the device that is meant; else give one of them another name"},
	model.ReasonUnknownError:           {plan.RackOperator, "look at the BMC; restart it if it stays so"},
	model.ReasonUnsupported:            {plan.RackOperator, "check whether its firmware can be updated"},
	model.ReasonSettingNotKept:         {plan.RackOperator, "update the BMC's firmware, or set it by hand"},
	model.ReasonBootOptionUnknown:      {plan.RackOperator, "correct spec.bootOrder of the Server"},
	model.ReasonSettingPending:         {plan.ActorNone, goesOn},
	model.ReasonBootOverrideNotKept:    {plan.RackOperator, "update the BMC's firmware, or have the boot order begin with the network"},

	model.ReasonDigestMissing:       {plan.Tenant, "add the digest that the image's publisher names to its URL: #sha256:… or #sha512:…"},
	model.ReasonDigestMismatch:      {plan.Tenant, "compare the digest with what the image's publisher names now; it is of the file as it is published"},
	model.ReasonImageUnsafe:         {plan.Tenant, "name an image that is whole in one file: `qemu-img convert` makes one"},
	model.ReasonImageFormat:         {plan.Tenant, "name a raw or qcow2 image, or convert it as the message says"},
	model.ReasonImageNoPartitions:   {plan.Tenant, "name the image of a whole disk, with its partition table"},
	model.ReasonImageCannotBoot:     {plan.Tenant, "name an image for this firmware, or select servers that boot in the other way"},
	model.ReasonImageTooLarge:       {plan.Tenant, "name a smaller image, or have boot.maxImageSize raised in Ingot's configuration"},
	model.ReasonImagePreparing:      {plan.ActorNone, goesOn},
	model.ReasonSectorSizeMismatch:  {plan.Tenant, "name an image for this sector size, or by annotation " + model.AnnotationRootDevice + " another disk"},
	model.ReasonDiskTooSmall:        {plan.Tenant, "name a smaller image, or by annotation " + model.AnnotationRootDevice + " a larger disk"},
	model.ReasonRootDeviceAmbiguous: {plan.Tenant, "correct annotation " + model.AnnotationRootDevice + " so that it fits one of the disks in the message"},
	model.ReasonRootDeviceMissing:   {plan.Tenant, "correct annotation " + model.AnnotationRootDevice + ", or have the disk looked for that it names"},
	model.ReasonRootDeviceNotBlank:  {plan.Tenant, "give the ServerClaim a new value of annotation " + model.AnnotationOverwrite + " if what is on the disk may go"},
	model.ReasonRootDeviceGone:      {plan.Tenant, "have the disk looked for, or name another by annotation " + model.AnnotationRootDevice},
	model.ReasonMultipath:           {plan.RackOperator, "take all paths to the disk but one away, or name a disk with one path by annotation " + model.AnnotationRootDevice},
	model.ReasonDuplicateIdentity:   {plan.RackOperator, "wipe or take out the disk in the message: a system could not tell the two apart"},
	model.ReasonSeedNoRoom:          {plan.Tenant, "name an image with GPT, or by annotation " + model.AnnotationSeed + " another kind of seed"},
	model.ReasonSeedTargetMissing:   {plan.Tenant, "correct annotation " + model.AnnotationSeed + ": the message says what the image lacks for it"},
	model.ReasonSeedFilesystem:      {plan.Tenant, "choose another kind of seed by annotation " + model.AnnotationSeed},

	model.ReasonInstalling:       {plan.ActorNone, goesOn},
	model.ReasonDiskBusy:         {plan.RackOperator, "see in the message what holds the disk; it is tried again"},
	model.ReasonDiskWriteFailed:  {plan.RackOperator, "replace the disk in the message, or name another by annotation " + model.AnnotationRootDevice},
	model.ReasonDiskLies:         {plan.RackOperator, "replace the disk in the message: it does not keep what is written"},
	model.ReasonInstallStalled:   {plan.RackOperator, "look at its console and at its link; it is tried again"},
	model.ReasonInstallFailed:    {plan.RackOperator, retry},
	model.ReasonInstalledNotSeen: {plan.Tenant, "look at its console: it boots from its disk, and nothing there says that it is up; it is not installed again"},
	model.ReasonCloudInitFailed:  {plan.Tenant, "log in and see /var/log/cloud-init.log; correct it there, or in the Secret and have it installed anew"},
}
