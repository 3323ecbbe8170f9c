package model

// Reason says in one word why an object is not where it should be: as conditions have it,
// logs and metrics. What it means for one object its message says. It is another name for
// string, because conditions (metav1.Condition), records and errors have it as one.
type Reason = string

// What a server, or a claim's server, waits for while it is under way: nobody has to act.
const (
	ReasonInProgress             Reason = "InProgress"             // the next step is about to be taken
	ReasonWaitingForPower        Reason = "WaitingForPower"        // a power state was asked for and is awaited
	ReasonWaitingForPowerOff     Reason = "WaitingForPowerOff"     // Off is awaited, or made sure of
	ReasonWaitingForReport       Reason = "WaitingForReport"       // the probe's report is awaited
	ReasonWaitingForBoot         Reason = "WaitingForBoot"         // a boot, or word of it, is awaited
	ReasonWaitingForStatusBranch Reason = "WaitingForStatusBranch" // the next step is shown on the status branch first
	ReasonPowerOnsLimited        Reason = "PowerOnsLimited"        // guard.maxConcurrentPowerOns are under way
	ReasonInstallsLimited        Reason = "InstallsLimited"        // as many disk images as possible are being written
	ReasonReprovisionQueued      Reason = "ReprovisionQueued"      // guard.maxConcurrentReprovisions are under way
	ReasonWiping                 Reason = "Wiping"                 // its disks are being wiped
	ReasonPending                Reason = "Pending"                // the BMC has not answered yet at its address
	ReasonDecommissioned         Reason = "Decommissioned"         // a commit took its BMC away, and it has no claim: it is forgotten a day later
)

// What holds a server up until somebody acts.
const (
	ReasonFoundRunning        Reason = "FoundRunning"        // it may be running a system, and was not released to Ingot
	ReasonFailing             Reason = "Failing"             // its last step failed, and is tried again
	ReasonDiscoveryFailed     Reason = "DiscoveryFailed"     // no probe reported in any of the attempts
	ReasonReportIncomplete    Reason = "ReportIncomplete"    // the probe reported too little
	ReasonMachineAmbiguous    Reason = "MachineAmbiguous"    // it is not clear which machine was discovered
	ReasonNoDiscoveryImage    Reason = "NoDiscoveryImage"    // no discovery image is configured
	ReasonCleanupFailed       Reason = "CleanupFailed"       // a wipe failed, or does not account for all disks
	ReasonRetained            Reason = "Retained"            // reclaimPolicy Retain keeps it as it is
	ReasonMaintenance         Reason = "Maintenance"         // a ServerMaintenance, or operation park, took it out of service
	ReasonIgnored             Reason = "Ignored"             // operation ignore suspends it
	ReasonOrphaned            Reason = "Orphaned"            // its BMC is no longer described in Git
	ReasonManifestUnreadable  Reason = "ManifestUnreadable"  // a manifest that may concern it cannot be read
	ReasonSystemMissing       Reason = "SystemMissing"       // its BMC no longer shows it
	ReasonSystemUnreadable    Reason = "SystemUnreadable"    // its BMC lists it, but it cannot be read
	ReasonIdentityMismatch    Reason = "IdentityMismatch"    // another machine is in its place
	ReasonIdentityUnknown     Reason = "IdentityUnknown"     // the machine no longer reports its UUID
	ReasonDuplicateUUID       Reason = "DuplicateUUID"       // another machine has its UUID
	ReasonPowerOutcomeUnknown Reason = "PowerOutcomeUnknown" // the outcome of a power request is unknown
	ReasonPowerUnstable       Reason = "PowerUnstable"       // its power state keeps changing after it was restored, or does not change when asked to
	ReasonUnknownState        Reason = "UnknownState"        // its record has a state that this version does not know
	ReasonBootMethodMismatch  Reason = "BootMethodMismatch"  // its image cannot be started by the boot method that it uses
	ReasonBootTimeout         Reason = "BootTimeout"         // it did not boot before its ticket expired
	ReasonBootFailed          Reason = "BootFailed"          // it did not boot in any of the attempts
	ReasonTicketStolen        Reason = "TicketStolen"        // other machines use up its boot tickets
	ReasonUnconfirmed         Reason = "Unconfirmed"         // its installer was served, and nothing reported that it booted
	ReasonConditionsUnmet     Reason = "ConditionsUnmet"     // conditions of a ServerReadinessRule are not met
	ReasonPowerIgnored        Reason = "PowerIgnored"        // its Server sets a power state, which only its claim may set
)

// What speaks against what is to be booted.
const (
	ReasonSourceInvalid         Reason = "SourceInvalid"         // an error in a claim's Secret or annotation; its content is not quoted
	ReasonArmFailed             Reason = "ArmFailed"             // a boot could not be prepared, for a reason that is not known
	ReasonSecretMissing         Reason = "SecretMissing"         // a Secret or BMCSecret is not in Git, or belongs to another
	ReasonInvalidReference      Reason = "InvalidReference"      // the image is not a valid image reference
	ReasonImageUnknown          Reason = "ImageUnknown"          // images.yaml does not have the image
	ReasonRegistryNotAllowed    Reason = "RegistryNotAllowed"    // the host of its image is not allowed
	ReasonUnauthorized          Reason = "Unauthorized"          // its registry rejects the credentials
	ReasonNotFound              Reason = "NotFound"              // there is no such image
	ReasonRegistryUnreachable   Reason = "RegistryUnreachable"   // its registry does not answer
	ReasonNoArchitecture        Reason = "NoArchitecture"        // the image has nothing for the server's architecture
	ReasonValidationFailed      Reason = "ValidationFailed"      // the image cannot be booted
	ReasonSecureBootBlocksProbe Reason = "SecureBootBlocksProbe" // its firmware checks signatures, and nothing that Ingot has for it is signed
)

// What speaks against a disk image, or against the disk that it is to be written to. All of
// it but what only the machine can tell is found before the server is powered on.
const (
	ReasonDigestMissing       Reason = "DigestMissing"       // the URL of the image has no digest
	ReasonDigestMismatch      Reason = "DigestMismatch"      // what was fetched does not match the digest
	ReasonImageUnsafe         Reason = "ImageUnsafe"         // the image refers to other files, or is encrypted
	ReasonImageFormat         Reason = "ImageFormat"         // its format is not supported
	ReasonImageNoPartitions   Reason = "ImageNoPartitions"   // it has no partition table, or a damaged one
	ReasonImageCannotBoot     Reason = "ImageCannotBoot"     // it has nothing that the server's firmware can start
	ReasonImageTooLarge       Reason = "ImageTooLarge"       // it is larger than 256 GiB, or does not fit in the image cache
	ReasonImagePreparing      Reason = "ImagePreparing"      // it is being fetched and converted
	ReasonSectorSizeMismatch  Reason = "SectorSizeMismatch"  // it was made for disks of another sector size
	ReasonDiskTooSmall        Reason = "DiskTooSmall"        // the disk is smaller than the image
	ReasonRootDeviceAmbiguous Reason = "RootDeviceAmbiguous" // several disks match ingot/root-device
	ReasonRootDeviceMissing   Reason = "RootDeviceMissing"   // no disk matches
	ReasonRootDeviceNotBlank  Reason = "RootDeviceNotBlank"  // the disk holds something that may not be overwritten
	ReasonRootDeviceGone      Reason = "RootDeviceGone"      // the disk that was installed is gone
	ReasonMultipath           Reason = "Multipath"           // the disk is visible on several paths
	ReasonDuplicateIdentity   Reason = "DuplicateIdentity"   // another disk has a label or UUID of the image
	ReasonSeedNoRoom          Reason = "SeedNoRoom"          // the partition table has no room for the seed
	ReasonSeedTargetMissing   Reason = "SeedTargetMissing"   // the image lacks the filesystem that the seed goes into
	ReasonSeedFilesystem      Reason = "SeedFilesystem"      // the probe cannot write to that filesystem
)

// What becomes of the writing of a disk image.
const (
	ReasonInstalling       Reason = "Installing"       // the probe is writing it
	ReasonDiskBusy         Reason = "DiskBusy"         // something on the machine is using the disk
	ReasonDiskWriteFailed  Reason = "DiskWriteFailed"  // the disk reported an error
	ReasonDiskLies         Reason = "DiskLies"         // the disk returned other data than was written
	ReasonInstallStalled   Reason = "InstallStalled"   // the probe stopped reporting
	ReasonInstallFailed    Reason = "InstallFailed"    // it failed for another reason, or in every attempt
	ReasonInstalledNotSeen Reason = "InstalledNotSeen" // it is written, and the system has not reported that it is up
	ReasonCloudInitFailed  Reason = "CloudInitFailed"  // the system is up, and cloud-init failed on it
)

// What a claim waits for.
const (
	ReasonNoServerFree        Reason = "NoServerFree"        // no server that matches is free
	ReasonServerUnknown       Reason = "ServerUnknown"       // the server that it names is not known
	ReasonServerNotFree       Reason = "ServerNotFree"       // the server that it names is not free
	ReasonSelectorMismatch    Reason = "SelectorMismatch"    // the server that it names does not match its selector
	ReasonSuperseded          Reason = "Superseded"          // a claim, or another boot configuration, says what the server boots
	ReasonPendingReprovision  Reason = "PendingReprovision"  // it requests another installation than the present one
	ReasonClaimQuarantined    Reason = "ClaimQuarantined"    // its manifest cannot be used
	ReasonAbsentWithoutCommit Reason = "AbsentWithoutCommit" // it is not in Git, and no commit removed it
	ReasonGuardHeld           Reason = "GuardHeld"           // the guard holds a step back
	ReasonApprovalAwaited     Reason = "ApprovalAwaited"     // a ServerMaintenance waits for the claim's owner
)

// What is in doubt after a start, or waits for the store or the repository.
const (
	ReasonObserveOnly      Reason = "ObserveOnly"      // nothing may be changed now
	ReasonRevisionOutdated Reason = "RevisionOutdated" // Git was not read since the restart
	ReasonFleetUnknown     Reason = "FleetUnknown"     // neither the store nor the status branch knows the fleet
	ReasonInstallUnknown   Reason = "InstallUnknown"   // it is not known whether it is installed
	ReasonRecordUnreadable Reason = "RecordUnreadable" // no copy of the record can be read
)

// Why a BMC cannot be used, or a device is none.
const (
	ReasonBMCUnreachable       Reason = "BMCUnreachable"       // the server's BMC does not answer
	ReasonConnectionFailed     Reason = "ConnectionFailed"     // the BMC does not answer
	ReasonAuthenticationFailed Reason = "AuthenticationFailed" // the BMC refuses the credentials
	ReasonSessionsFull         Reason = "SessionsFull"         // each session of the BMC is in use
	ReasonCertificateChanged   Reason = "CertificateChanged"   // the BMC presents another certificate
	ReasonHalfAnswer           Reason = "HalfAnswer"           // the BMC's answers are incomplete
	ReasonAddressNotAllowed    Reason = "AddressNotAllowed"    // no BMC is allowed at this address
	ReasonAddressLost          Reason = "AddressLost"          // its address was given to another device
	ReasonEndpointMissing      Reason = "EndpointMissing"      // the Endpoint that it names does not exist
	ReasonAwaitingDevice       Reason = "AwaitingDevice"       // the device that the address is reserved for has not been given it yet
	ReasonAddressStillLeased   Reason = "AddressStillLeased"   // another device had the address before it was reserved, until its lease ends
	ReasonDeviceInGitTwice     Reason = "DeviceInGitTwice"     // another Endpoint in Git is for the device by its MAC address
	ReasonCredentialsMissing   Reason = "CredentialsMissing"   // the MAC prefix database has no credentials for it
	ReasonNoMACPrefix          Reason = "NoMACPrefix"          // the MAC prefix database does not know the device
	ReasonShadowedBy           Reason = "ShadowedBy"           // a BMC or another Endpoint in Git already has the device, or a BMC its name
	ReasonUnknownError         Reason = "UnknownError"         // the BMC's answer is invalid
	ReasonUnsupported          Reason = "Unsupported"          // the BMC cannot do what was asked for
	ReasonBootOverrideNotKept  Reason = "BootOverrideNotKept"  // the BMC does not keep the boot override
	ReasonSettingNotKept       Reason = "SettingNotKept"       // the BMC does not keep a setting of the server
	ReasonBootOptionUnknown    Reason = "BootOptionUnknown"    // the machine has no boot option of the name
	ReasonSettingPending       Reason = "SettingPending"       // a setting is written and takes effect at the machine's next start
)

// Problems of a BMC, its account, or a system behind it.
const (
	ReasonTLSFailed              Reason = "TLSFailed"              // the BMC has no TLS at this port, or none that is new enough
	ReasonCertificateInvalid     Reason = "CertificateInvalid"     // the BMC's certificate is not signed by a trusted CA, is for another name, or has expired
	ReasonNotRedfish             Reason = "NotRedfish"             // no Redfish service answers at the BMC's address
	ReasonPasswordChangeRequired Reason = "PasswordChangeRequired" // the BMC accepts the password and demands a new one first
	ReasonReadOnlyAccount        Reason = "ReadOnlyAccount"        // the account may read, but not change anything
	ReasonDefaultCredentials     Reason = "DefaultCredentials"     // the BMC is used with a password of the MAC prefix database, as its vendor set it
	ReasonBMCBusy                Reason = "BMCBusy"                // the BMC asks to come back later
	ReasonUpdateInProgress       Reason = "UpdateInProgress"       // a firmware update is in progress on the BMC
	ReasonNoServers              Reason = "NoServers"              // the BMC shows no system that is a server
	ReasonUUIDMissing            Reason = "UUIDMissing"            // a system shows no UUID, so it is no server before Git gives it one
	ReasonNotIdentifiable        Reason = "NotIdentifiable"        // a system shows neither a UUID nor a serial number
	ReasonPowerOnRefused         Reason = "PowerOnRefused"         // the machine stays Off after the BMC was asked to power it on
	ReasonPowerStateUnknown      Reason = "PowerStateUnknown"      // the BMC does not say whether the machine is on or off
	ReasonNoNetworkBoot          Reason = "NoNetworkBoot"          // the BMC cannot set the machine to boot from the network
)

// Reasons are all of them.
var Reasons = []Reason{
	ReasonInProgress, ReasonWaitingForPower, ReasonWaitingForPowerOff, ReasonWaitingForReport, ReasonWaitingForBoot,
	ReasonWaitingForStatusBranch, ReasonPowerOnsLimited, ReasonInstallsLimited, ReasonReprovisionQueued, ReasonWiping, ReasonPending, ReasonDecommissioned, ReasonFoundRunning,
	ReasonFailing, ReasonDiscoveryFailed, ReasonReportIncomplete, ReasonMachineAmbiguous, ReasonNoDiscoveryImage,
	ReasonCleanupFailed, ReasonRetained, ReasonMaintenance, ReasonIgnored, ReasonOrphaned, ReasonManifestUnreadable,
	ReasonSystemMissing, ReasonSystemUnreadable, ReasonIdentityMismatch, ReasonIdentityUnknown, ReasonDuplicateUUID,
	ReasonPowerOutcomeUnknown, ReasonUnknownState, ReasonBootMethodMismatch, ReasonBootTimeout,
	ReasonBootFailed, ReasonTicketStolen, ReasonUnconfirmed, ReasonConditionsUnmet, ReasonPowerIgnored,
	ReasonSourceInvalid, ReasonArmFailed, ReasonSecretMissing,
	ReasonInvalidReference, ReasonImageUnknown, ReasonRegistryNotAllowed, ReasonUnauthorized, ReasonNotFound, ReasonRegistryUnreachable,
	ReasonNoArchitecture, ReasonValidationFailed, ReasonNoServerFree, ReasonServerUnknown, ReasonServerNotFree,
	ReasonSelectorMismatch, ReasonSuperseded, ReasonPendingReprovision, ReasonClaimQuarantined, ReasonAbsentWithoutCommit, ReasonGuardHeld,
	ReasonApprovalAwaited, ReasonPowerUnstable, ReasonObserveOnly, ReasonRevisionOutdated, ReasonFleetUnknown,
	ReasonInstallUnknown,
	ReasonRecordUnreadable, ReasonBMCUnreachable, ReasonConnectionFailed, ReasonAuthenticationFailed, ReasonSessionsFull, ReasonCertificateChanged,
	ReasonHalfAnswer, ReasonAddressNotAllowed, ReasonAddressLost, ReasonEndpointMissing, ReasonAwaitingDevice,
	ReasonAddressStillLeased, ReasonDeviceInGitTwice, ReasonCredentialsMissing,
	ReasonNoMACPrefix, ReasonShadowedBy, ReasonUnknownError, ReasonUnsupported, ReasonBootOverrideNotKept,
	ReasonSettingNotKept, ReasonBootOptionUnknown, ReasonSettingPending,
	ReasonDigestMissing, ReasonDigestMismatch, ReasonImageUnsafe, ReasonImageFormat, ReasonImageNoPartitions,
	ReasonImageCannotBoot, ReasonImageTooLarge, ReasonImagePreparing, ReasonSectorSizeMismatch, ReasonDiskTooSmall,
	ReasonRootDeviceAmbiguous, ReasonRootDeviceMissing, ReasonRootDeviceNotBlank, ReasonRootDeviceGone, ReasonMultipath,
	ReasonDuplicateIdentity, ReasonSeedNoRoom, ReasonSeedTargetMissing, ReasonSeedFilesystem, ReasonInstalling,
	ReasonDiskBusy, ReasonDiskWriteFailed, ReasonDiskLies, ReasonInstallStalled, ReasonInstallFailed, ReasonInstalledNotSeen,
	ReasonCloudInitFailed, ReasonSecureBootBlocksProbe,
	ReasonTLSFailed, ReasonCertificateInvalid, ReasonNotRedfish, ReasonPasswordChangeRequired, ReasonReadOnlyAccount, ReasonDefaultCredentials,
	ReasonBMCBusy, ReasonUpdateInProgress, ReasonNoServers, ReasonUUIDMissing, ReasonNotIdentifiable, ReasonPowerOnRefused,
	ReasonPowerStateUnknown, ReasonNoNetworkBoot,
}
