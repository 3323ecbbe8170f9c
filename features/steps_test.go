package features

import (
	"context"
	"strings"

	"github.com/cucumber/godog"
)

// defineSteps is the whole vocabulary of the features. Names in quotes may be
// several, with commas between them.
func defineSteps(sc *godog.ScenarioContext) {
	const (
		name   = `"([^"]*)"`
		device = `(?:BMC |device )?` + name
		thing  = `(server|claim|BMC|endpoint|boot configuration)`
	)
	for expression, do := range map[string]any{
		// the site
		`^the machines$`:  theMachines,
		`^the servers$`:   theServers,
		`^(\d+) servers$`: manyServers,
		`^the manifests of examples/seeds, and the machines that they speak of$`: seedManifests,
		`^claims? ` + name + ` runs? on ` + name + `$`:                           claimsRunOn,
		`^(?:BMC )?` + name + ` (suffers|no longer suffers) from ` + name + `$`:  suffer,
		`^` + name + ` boots from the network first$`:                            networkFirst,
		`^the power of ` + name + ` is cut$`:                                     powerCut,
		`^the power button of ` + name + ` is pressed$`:                          pressPower,
		`^a BMC keeps (\d+) sessions$`:                                           keepSessions,
		`^boot tickets are bound to (their first client|nothing)$`:               bindTickets,
		`^the repository is reached over (HTTPS with a password|HTTPS as a GitHub App|HTTPS through a proxy|SSH with a key|SSH through a proxy)$`: reachedOver,

		`^the repository is what "ingot init" makes$`:                                 initRepository,
		`^a cluster of metal-operator, of which "ingot import" makes the repository$`: importCluster,

		// secrets
		`^the BMCSecrets in Git are encrypted with SOPS(, for a key that Ingot does not have|)$`:     encryptSecrets,
		`^the BMCSecrets stand in a folder outside Git$`:                                             secretsOutside,
		`^Ingot is given the key$`:                                                                   giveKey,
		`^the BMCSecret of BMC ` + name + ` is committed (encrypted for another key|in plain text)$`: commitOtherSecret,
		`^the folder is given the (right|wrong) password of BMC ` + name + `$`:                       fillFolder,
		`^the folder is (lost|half empty)$`:                                                          spoilFolder,
		`^nothing that Ingot keeps holds the password of a BMC$`:                                     keepsNoPassword,

		// devices, and the networks that they ask on
		`^the networks$`: theNetworks,
		`^the boot loaders have (a|no) signature$`:                                         signLoaders,
		`^the MAC prefix database$`:                                                        theDatabase,
		`^the MAC prefix database is taken away$`:                                          withoutDatabase,
		`^` + device + ` is plugged in$`:                                                   plugIn,
		`^` + device + ` is plugged into port ` + name + `$`:                               plugIntoPort,
		`^BMC ` + name + ` moves to another address(?:, where BMC ` + name + ` answers|)$`: moveBMC,
		`^` + device + ` asks what to boot, as (.+)$`:                                      askBoot,
		`^it is told (.+) by (TFTP|HTTP)$`:                                                 toldFile,
		`^it has an address, and is told nothing to boot$`:                                 toldNothing,
		`^(no|one|\d+) passwords? (?:was|were) refused by BMC ` + name + `$`:               passwordsRefused,
		`^the metrics say that network ` + name + ` is full$`:                              metricsFull,
		`^"ingot explain" shows for (server|claim) ` + name + `: "(.*)"$`:                  explainSays,
		`^"ingot explain" shows for the network card of ` + name + `$`:                     explainCardSays,

		// the program
		`^Ingot starts$`: startIngot,

		// commits
		`^an Endpoint that reserves an address for BMC ` + name + ` is committed$`:                                               commitEndpoint,
		`^an Endpoint that reserves an address for port ` + name + ` of a relay is committed$`:                                   commitPort,
		`^a BMCSecret for BMC ` + name + ` is committed$`:                                                                        commitSecret,
		`^BMC ` + name + ` is (committed|removed)$`:                                                                              commitBMC,
		`^the servers are committed$`:                                                                                            commitServers,
		`^the claims are committed$`:                                                                                             commitClaims,
		`^(\d+) claims that name no server are committed$`:                                                                       commitManyClaims,
		`^claims? ` + name + ` (?:is|are) removed$`:                                                                              removeClaims,
		`^a manifest of claim ` + name + ` that is broken is committed$`:                                                         commitBroken,
		`^the folder of the claims is named in the ignore file, and a folder of other files with it$`:                            commitIgnored,
		`^the folder of the claims gets another name$`:                                                                           renameFolder,
		`^claims ` + name + ` move to the namespace ` + name + `$`:                                                               moveClaims,
		`^claim ` + name + ` is committed a second time, for ` + name + `$`:                                                      commitTwice,
		`^maintenance of ` + name + `((?: that asks its owner)?(?: (?:and|that) leaves it (?:On|Off))?) is (committed|removed)$`: commitMaintenance,
		`^claim ` + name + ` is removed, and the same commit begins maintenance of ` + name + `$`:                                removeAndMaintain,
		`^boot configuration ` + name + ` for ` + name + ` is (committed|removed)$`:                                              commitBootConfiguration,
		`^the repository is emptied$`:                                                                                            emptyRepository,
		`^the history is rewritten without claim ` + name + `$`:                                                                  rewriteHistory,
		`^a commit approves ` + name + `$`:                                                                                       approve,

		`^ServerReadinessRule ` + name + ` is committed, (Continuous|BootstrapOnly)$`: commitRule,
		`^ServerReadinessRule ` + name + ` is removed$`:                               removeRule,
		`^BMC ` + name + ` is committed with (its own|another) UUID$`:                 commitNamedBMC,
		`^server ` + name + ` is committed with its BMC in it$`:                       commitWithin,
		`^server ` + name + ` is taken out of Git$`:                                   removeServer,

		// Ingot's life and its store
		`^Ingot keeps its default intervals$`:                                                   usualIntervals,
		`^Ingot is killed and started again (\d+) times, each time once it has asked each BMC$`: killOften,
		`^the store is emptied$`:                                                                emptyStore,
		`^another Ingot stands by$`:                                                             standBy,
		`^the Ingot that leads is killed$`:                                                      killLeader,
		`^(\d+) claims that name no server are committed, and Ingot is killed (\d+) times at random$`: killAmongMany,
		`^Ingot has nothing to do$`: idle,
		`^claim ` + name +
			` is (committed|removed), and Ingot is killed once (.+) and started again( without its store|)$`: killOnce,
		`^claim ` + name + ` is (committed|removed), and Ingot is killed (\d+) times at random$`: killAtRandom,
		`^claim ` + name +
			` is (committed|removed), Ingot is killed once (.+), and started again once ` + name + ` stands there$`: killUntilStranded,

		// requests of machines
		`^a report for ` + name + ` that (.+) is sent$`:                                             sendReport,
		`^Ignition of ` + name + ` is asked for (with the token|from the address) of ` + name + `$`: askIgnitionAs,
		`^it is refused with (\d+)$`:                                                                refusedWith,
		`^reports of ` + name + ` are refused$`:                                                     reportsRefused,
		`^what machines (ask for|report) (is lost|arrives again)$`:                                  loseWhat,
		`^` + name + ` takes what ` + name + ` is to boot$`:                                         takeBoot,
		`^the firmware of ` + name + ` asks for its script$`:                                        firmwareAsks,

		`^Ingot is killed, and ` + name + ` asks for the iPXE script of ` + name + ` until it has started again$`: askWhileStarting,
		`^` + name + ` asks for the (.+) of ` + name + `$`:                                                        askThing,
		`^` + name + ` asks for the (.+) of ` + name + `, with a token (that was made up)$`:                       askWithToken,
		`^` + name + ` asks for the (.+) of ` + name + `, with the token (that it had|of its command line)$`:      askWithToken,
		`^a stranger asks for the (.+) of ` + name + `$`:                                                          strangerAsks,
		`^server ` + name + ` asks for the (.+) of ` + name + ` from its own address$`:                            neighbourAsks,
		`^a stranger reports that ` + name + ` is wiped$`:                                                         strangerWipes,
		`^` + name + ` knows what it is to boot$`:                                                                 keepHandout,
		`^it is answered$`: isAnswered,
		`^the metrics count (\d+) boots? that (?:is|are) Booted$`:                          metricsCountBoots,
		`^the metrics say that claim ` + name + ` waits for ` + name + `$`:                 metricsNameWaiting,
		`^the only metrics of ` + name + ` are state ` + name + ` and power ` + name + `$`: onlyMetricsOf,
		`^the metrics count a refused (.+) for ` + name + `$`:                              metricsCount,
		`^` + name + ` asks the metadata service for its name, (.+)$`:                      askName,
		`^it is told that it is ` + name + `$`:                                             toldName,

		// images
		`^image ` + name + ` (has no initramfs|has two kernels|is for arm64 alone|was never pushed|is not what its digest says|is in a folder that claims may not name)$`: imageIs,
		`^image ` + name + ` is pushed as it should be$`:                              imageIsWhole,
		`^the tag of image ` + name + ` moves on to ` + name + `$`:                    tagMoves,
		`^images lie in a folder, and there is no registry$`:                          imagesInFolder,
		`^the image registry goes down$`:                                              registryGoesDown,
		`^the Ignition of claim ` + name + ` is Butane with a mistake in line (\d+)$`: butaneMistake,

		// what is promised
		`^` + name + ` (?:is|are) (Initial|Discovery|Available|Reserved|Cleanup|Released|Maintenance)$`: serversAre,
		`^` + name + ` is powered (On|Off)$`:                                                                         poweredIs,
		`^the firmware of ` + name + ` boots from the (network|disk) first$`:                                         bootsFirst,
		`^the indicator of ` + name + ` is (Lit|Blinking|Off)$`:                                                      indicatorIs,
		`^` + name + ` is in Error, and its status names the disk$`:                                                  inError,
		`^` + name + ` is wiped again, and is in Error$`:                                                             wipedAgain,
		`^claim ` + name + ` is (Bound|Booted|Unconfirmed) on ` + name + `$`:                                         claimIsOn,
		`^each of (\d+) claims is Booted on a server of its own$`:                                                    eachBooted,
		`^nothing happens to ` + name + `$`:                                                                          nothingHappens,
		`^` + name + ` was (?:powered on (once|\d+ times), |)installed (once|\d+ times) and wiped (once|\d+ times)$`: wasDone,
		`^` + name + ` was (shut down|forced off)$`:                                                                  lastReset,
		`^` + name + ` runs from its disk again$`:                                                                    runsFromDisk,
		`^` + name + ` runs image ` + name + `$`:                                                                     runsImage,
		`^each layer was fetched from its registry once$`:                                                            fetchedOnce,
		`^the guard holds (\d+) releases back$`:                                                                      guardHolds,
		`^the guard holds nothing back$`:                                                                             guardHoldsNothing,
		`^nobody is logged in to BMC ` + name + `$`:                                                                  loggedOut,
		`^BMC ` + name + ` is left in peace$`:                                                                        leftInPeace,

		// the status branch
		`^the status branch shows for ` + thing + ` ` + name + `: "(.*)"$`:                         statusSaysOf,
		`^the status branch shows in the (problems|revision|README|picture of the racks): "(.*)"$`: statusSays,
		`^the history of the status branch says: "(.*)"$`:                                          historySays,
		`^the status branch does not mention claim ` + name + `$`:                                  statusOmits,
		`^server ` + name + ` is forgotten$`:                                                       isForgotten,
		`^the status branch is Ingot's again$`:                                                     statusIsOurs,
		`^the status branch stays as it is$`:                                                       statusStays,
	} {
		sc.Step(expression, do)
	}
}

func names(list string) []string {
	var all []string
	for n := range strings.SplitSeq(list, ",") {
		all = append(all, strings.TrimSpace(n))
	}
	return all
}

func forEach(list string, do func(name string) error) error {
	for _, n := range names(list) {
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

func begun(ctx context.Context) (*site, error) {
	w := siteOf(ctx)
	if w.ingot != nil {
		return w, nil
	}
	return w, w.start()
}
