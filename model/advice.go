package model

// Actor is who has to act.
type Actor string

// The actors.
const (
	ActorNone         Actor = ""              // it is under way
	ActorTenant       Actor = "tenant"        // the author of the claim
	ActorRackOperator Actor = "rack operator" // the person who runs the machines
)

// Advice is who usually has to act on a reason, and what to do. A message may name another actor.
type Advice struct {
	Actor Actor
	Text  string
}

// GoesOn is the usual text of an Advice without an actor.
const GoesOn = "nothing: Ingot continues on its own"

// BMCAdvice is the advice on the reasons of BMCs and of the systems behind them, for conditions and for `ingot bmc check`.
var BMCAdvice = map[Reason]Advice{
	ReasonConnectionFailed: {ActorRackOperator, "check that the BMC has power and link, that its address and port are correct, that no firewall is in " +
		"the way, and that Redfish (HTTPS) is enabled; restart a BMC that accepts connections and does not answer"},
	ReasonTLSFailed: {ActorRackOperator, "correct the port; if the BMC has no TLS 1.2, update its firmware or set annotation " + AnnotationTLSMinimum +
		"; if it has no TLS, use protocol scheme http, which sends the password unencrypted"},
	ReasonCertificateInvalid: {ActorRackOperator, "see the message: name the CA that signed the certificate (bmc.caFile), or the name in it " +
		"(spec.hostname of the BMC), or renew it; without bmc.caFile the certificate is pinned on first contact"},
	ReasonCertificateChanged: {ActorRackOperator, "find out why the certificate changed; if the change is legitimate, set annotation " +
		AnnotationOperation + ": " + OperationRetry + "#1 on the BMC in Git"},
	ReasonAddressNotAllowed: {ActorRackOperator, "correct the address, or allow it in Ingot's configuration, as the message says"},
	ReasonNotRedfish: {ActorRackOperator, "correct the address, the port and the protocol scheme, or enable Redfish in the BMC's settings; a BMC that " +
		"has just started may need minutes"},
	ReasonAuthenticationFailed: {ActorRackOperator, "correct the user name and password (BMCSecret in Git), or the account on the BMC; if it is locked, " +
		"wait or unlock it"},
	ReasonSessionsFull:           {ActorRackOperator, "nothing, unless it persists: then close sessions on the BMC's web page, or restart the BMC"},
	ReasonPasswordChangeRequired: {ActorRackOperator, "log in to the BMC's web page and set a new password, then commit it as BMCSecret"},
	ReasonReadOnlyAccount: {ActorRackOperator, "give the account on the BMC the role Operator or Administrator, and end a lockdown mode of the BMC; " +
		"or commit a BMCSecret with another account"},
	ReasonDefaultCredentials: {ActorRackOperator, "set a new password on the BMC, and commit a BMCSecret of the BMC's name with it"},
	ReasonBMCBusy:            {ActorRackOperator, "nothing, unless it persists: then restart the BMC"},
	ReasonUpdateInProgress:   {ActorNone, "nothing: the BMC is used again once the update has ended"},
	ReasonHalfAnswer:         {ActorRackOperator, "nothing, unless it persists: then restart the BMC, or update its firmware"},
	ReasonUnknownError:       {ActorRackOperator, "check the BMC's log; restart it if it persists"},
	ReasonNoServers:          {ActorRackOperator, "nothing if the BMC has just started; of a chassis, use the BMCs of its blades"},
	ReasonSystemUnreadable:   {ActorRackOperator, "check the system on its BMC; restart the BMC if it persists"},
	ReasonUUIDMissing:        {ActorRackOperator, "write a Server with spec.bmcRef, spec.systemURI and, as spec.systemUUID, the UUID of its firmware (SMBIOS)"},
	ReasonNotIdentifiable:    {ActorRackOperator, "set the board's UUID or serial number with its vendor's tool"},
	ReasonDuplicateUUID:      {ActorRackOperator, "remove one of its BMCs from Git, or give one of the machines its own UUID"},
	ReasonIdentityMismatch: {ActorRackOperator, "find out which machine is there: correct what the message names in Git, put it back, or connect it " +
		"to a BMC that is in Git"},
	ReasonIdentityUnknown:     {ActorRackOperator, "check the UUID of the system on its BMC: it reported one before"},
	ReasonPowerOnRefused:      {ActorRackOperator, "check the machine, its power supplies and the BMC's event log"},
	ReasonPowerStateUnknown:   {ActorRackOperator, "restart the BMC, or update its firmware"},
	ReasonUnsupported:         {ActorRackOperator, "check whether its firmware can be updated"},
	ReasonNoNetworkBoot:       {ActorRackOperator, "update the BMC's firmware: a machine that cannot be set to boot from the network is not powered on"},
	ReasonBootOverrideNotKept: {ActorRackOperator, "restart the BMC, or update its firmware: the machine is not powered on before its boot override is kept"},
	ReasonSettingNotKept:      {ActorRackOperator, "update the BMC's firmware, or set it by hand"},
	ReasonBootOptionUnknown:   {ActorRackOperator, "correct spec.bootOrder of the Server"},
}
