// Package model holds the words of Ingot: the kinds that people write in Git,
// the facts that are read from the world, the records of what was decided, and
// the report that the status branch shows.
//
// It has no I/O, no clock and no other package of ours below it; every other
// package speaks to its neighbours in these types.
//
// # Glossary
//
// What Git and the standards name is called as there: BMC, Server, ServerClaim, Endpoint,
// revision, power state, boot override, inventory, offer, lease, iPXE script, Ignition. Of
// the other words each stands for one thing, everywhere:
//
//	absent       in force though Git lacks it, because no commit took it away
//	action       one repeatable effect on one server or BMC
//	actor        who has to act: nobody, the tenant, the rack operator
//	address rule who may use a ticket, by the address that asks
//	approval     the trailer of a commit that lets pass what is listed
//	arm          make a boot ticket, with its image pinned
//	claimed      bound to a ServerClaim
//	desired      what the manifests of the revision in force ask for
//	disruption   a step that takes a running system from somebody
//	doubt        why a record may not be what was decided last
//	evidence     what shows which machine is at an address
//	facts        what was read from a BMC or reported by a probe
//	fence        the number of a lead; whoever has a lower one writes nothing
//	fleet        all servers, BMCs, claims and endpoints together
//	guard        what bounds the disruptions in a window of time
//	holder       the process that leads
//	intent       what is about to be done, told before it is
//	loop limiter what ends the boots of a machine that goes round in circles
//	move         actions in order, and the record once all of them succeeded
//	observed     records and facts, as the store has them
//	operation    what annotation "operation" asks for once
//	plan         the decision on what is desired and observed, at one time
//	probe        what runs on a server while it is discovered or wiped
//	progress     how far a server has come with its ticket
//	quarantined  in Git, and not usable
//	reading      when and how well a BMC answered this process
//	reason       one word for why an object is not where it should be
//	record       what was decided about one object, kept in the store
//	refused      a use of a ticket, or a manifest, that does not count
//	release      a server's way from a claim back to Available, by a wipe
//	report       what the status branch, the API and the metrics say
//	rule         what kind of problem a manifest has, for programs
//	settle       judge what became of a move
//	stage        how far an install or a wipe has come
//	status branch the branch to which Ingot commits what is so
//	store        where records are: bbolt or Redis
//	tenant       whoever owns a path of the repository
//	ticket       the right of one server to boot one thing once
//	ticket holder a server with its ticket and progress
//	variant      how a BMC was brought to keep a boot override
//	why          a reason with a message, since when, and the actor
package model
