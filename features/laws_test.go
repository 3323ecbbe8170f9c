package features

import (
	"github.com/cucumber/godog"
)

func defineLaws(sc *godog.ScenarioContext) {
	const name = `"([^"]*)"`
	for expression, do := range map[string]any{
		// history that is rewritten, and other sources
		`^the history is rewritten with claim ` + name + ` switched Off$`:                                    rewriteOff,
		`^the branch is set back to where claim ` + name + ` was not yet$`:                                   setBranchBack,
		`^branch ` + name + ` has (?:all but claim ` + name + `|everything)$`:                                branchHas,
		`^Ingot is started again for (branch|folder) ` + name + `$`:                                          startElsewhere,
		`^Ingot is killed, the history is rewritten without claim ` + name + `, and it is started again$`:    rewriteWhileDown,
		`^claims? ` + name + ` (?:is|are) renamed ` + name + `$`:                                             renameClaims,
		`^the file of claim ` + name + ` (is emptied|becomes a folder|moves to a hidden folder|is deleted)$`: loseFile,
		`^30 files of 190 wrong claims are committed$`:                                                       commitWrongClaims,
		`^maintenance of all servers is committed$`:                                                          maintainAll,
		`^the guard lets (\d+) servers be switched off$`:                                                     limitPower,
		`^a boot may take (\d+) seconds$`:                                                                    limitBoot,
		`^power may be restored without the status branch$`:                                                  restoreWithoutBranch,
		`^the status branch shows that$`:                                                                     statusShows,
		`^the status branch is set back by (\d+) commits$`:                                                   setStatusBack,
		`^a file of the status branch about ` + name +
			` is garbled, and Ingot is killed and started again without its store$`: garbleStatus,

		// a store that is not what it was
		`^the store is copied$`: copyStore,
		`^Ingot heals the power of ` + name + ` by the copy of the store until the Git host is back$`: healByCopy,
		`^Ingot is killed, the store (loses|garbles) ` + name + `, and Ingot is started again$`:       damageRecord,
		`^the store loses ` + name + `$`:                                                    makeHole,
		`^no BMC was asked to change anything since$`:                                       nothingAsked,
		`^a key of the store is made something else$`:                                       replaceKey,
		`^Redis and the Ingot that leads die together, and Redis comes back from its copy$`: dieTogether,
		`^the probe of a server reports 1500 neighbours$`:                                   manyNeighbours,

		// a kill that costs the store, and pushes that are refused meanwhile
		`^claim ` + name + ` is committed, and the status branch is protected once Ignition is served$`: protectOnce,
		`^it is not installed anywhere else$`:           heldNowhereElse,
		`^` + name + ` was restarted (once|\d+ times)$`: wasRestarted,
		`^(Ingot|the Ingot that stands by) is not ready because of its ` + name + `(?:, and says ` + name + `|)$`: notReady,
		`^the log says ` + name + `$`:                                   logSays,
		`^Ingot shows for server ` + name + `: ` + name + `$`:           ingotSays,
		`^the metrics say since when the status branch is not written$`: metricsSayUnpublished,

		// what is larger than it should be
		`^a file of (\d+) MB and a manifest of (\d+) MB are committed along with the claims$`: commitLarge,
		`^Ingot never held more than (\d+) MB in memory$`:                                     neverHeld,

		// what the status branch says of secrets
		`^what claims? ` + name + ` boots? is shown by no digest that others could compute$`: shownKeyed,
		`^claims? ` + name + ` asks? for nothing but what is installed$`:                     askForNothingElse,

		// BMCs
		`^the BMC of ` + name + ` carries out resets and (answers them with 500|drops its answers|never answers them)$`: liesOfResets,
		`^the BMC of ` + name + ` tells the truth again$`:                                                               tellsTheTruth,
		`^the BMC of ` + name + ` says (\d+) times that it is Off$`:                                                     saysOff,

		// two that act
		`^it ends with exit code (\d+), and says ` + name + `$`: rivalEnds,
		`^the first Ingot ends with exit code (\d+)$`:           firstEnds,
		`^the first Ingot goes on$`:                             resume,
	} {
		sc.Step(expression, do)
	}
}
