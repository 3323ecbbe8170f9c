package report

// The types of conditions. Those that ServerReadinessRules may ask for are in model; others are
// called like the reason that they hold for.
const (
	typeReady               = "Ready"                // it is where Git wants it to be
	typeBound               = "Bound"                // the claim has a server
	typeBootProgress        = "BootProgress"         // how far the newest boot has come: True once it came to its end
	typeDiskBoot            = "DiskBoot"             // False: the BMC sets no one-time boot from disk
	typeOperation           = "Operation"            // what became of the power operation that was asked for last, where there is something to say
	typeIdentified          = "Identified"           // what is not certain of the server's MAC addresses
	typeIndicatorLED        = "IndicatorLED"         // False: the indicator is not as Git says
	typeBootOrder           = "BootOrder"            // False: the boot order is not as Git says
	typeBootRefused         = "BootRefused"          // somebody asked to boot in this server's name who cannot be told to be it
	typeTicketRefused       = "TicketRefused"        // others asked for what this server boots
	typeMaintenanceApproved = "MaintenanceApproved"  // False: a ServerMaintenance waits for the claim's owner, and all goes on as it did
	typeSSHKeys             = "SSHKeysInstalled"     // False: the claim's SSH keys are not those that its server was installed with
	typeSecretExposed       = "SecretExposed"        // another machine was served the claim's Secret
	typeComplete            = "Complete"             // False: parts of the BMC could not be read
	typeRecognised          = "Recognised"           // the device is known to be a BMC
	typeReachable           = "Reachable"            // False: the device has lost its address
	typeImageValidation     = "ImageValidation"      // the image can be booted
	typeIgnitionValidation  = "IgnitionValidation"   // False: the configuration of the boot cannot be used
	typeInstalled           = "Installed"            // the claim's disk image is on its server's disk, and its system is up
	typeBooted              = "Booted"               // False: the boot came to nothing
	typeIPXEScriptFetched   = "IPXEScriptFetched"    // the server fetched its iPXE script
	typeIgnitionFetched     = "IgnitionDataFetched"  // the server fetched its Ignition
	typeCloudInitFetched    = "CloudInitDataFetched" // the server fetched its cloud-init data
	typeBootStateReceived   = "BootStateReceived"    // what was booted said that it runs
)

// Reasons of conditions beside those of model: what is as it should be, and what a condition alone
// says.
const (
	reasonConnected           = "Connected"              // the BMC answers
	reasonBound               = "Bound"                  // the claim has its server
	reasonBooted              = "Booted"                 // the server runs what its claim asks for
	reasonPoweredOff          = "PoweredOff"             // the server is off, as its claim asks for
	reasonReportReceived      = "ReportReceived"         // the probe reported what the server has
	reasonPartsUnreadable     = "PartsUnreadable"        // the BMC did not show all parts: look at it if that stays so
	reasonWipeDone            = "WipeDone"               // the last wipe accounted for all disks
	reasonWipeFailed          = "WipeFailed"             // a disk could not be wiped: see CleanupFailed
	reasonDiskMissing         = "DiskMissing"            // the wipe did not account for a disk that is known: see CleanupFailed
	reasonMACAddressShared    = "MACAddressShared"       // several systems show the MAC address: write to which Server it belongs
	reasonNoMACAddress        = "NoMACAddress"           // no MAC address of the server is known: write those of its network cards to its Server
	reasonBySighting          = "Sighting"               // its BMC shows no MAC address, and these were seen to boot: write them to its Server to be certain
	reasonMACPrefix           = "MACPrefix"              // the MAC prefix database has an entry for the device
	reasonValidationSucceeded = "ValidationSucceeded"    // the image was pinned, and the server can boot it
	reasonKeysChanged         = "SSHKeysChanged"         // the SSH keys changed since the installation: they are installed with the next one
	reasonKeysUnused          = "SSHKeysUnused"          // nothing that configures the server reads SSH keys: add user-data or Ignition
	reasonBootState           = "BootStateReceived"      // what was booted posted its boot state
	reasonScriptDelivered     = "IPXEScriptDelivered"    // the server fetched its iPXE script
	reasonIgnitionDelivered   = "IgnitionDataDelivered"  // the server fetched its Ignition
	reasonCloudInitDelivered  = "CloudInitDataDelivered" // the server fetched its cloud-init data
)

// outcomePrefix begins the reasons of typeOperation, which are OperationOutcomes.
const outcomePrefix = "Outcome"
