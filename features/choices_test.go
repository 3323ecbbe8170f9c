package features

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/cucumber/godog"
)

func defineChoices(sc *godog.ScenarioContext) {
	const (
		name   = `"([^"]*)"`
		device = `(?:BMC |device )?` + name
	)
	for expression, all := range map[string]map[string]func(context.Context) error{
		`^a commit approves (%s)$`: {
			"what the guard holds back": approveHeld,
			"what is absent":            approveAbsent,
		},
		`^an operator (%s) in a clone what Ingot holds back$`: {
			"approves": approveInClone,
			"refuses":  refuseInClone,
		},
		`^somebody else (%s) the status branch$`: {
			"commits to": foreignCommit,
			"deletes":    deleteStatus,
		},
		`^the status branch is (%s)$`: {
			"protected":           protectStatus,
			"no longer protected": unprotectStatus,
		},
		`^Ingot is (%s) and started again$`: {
			"stopped": restartIngot,
			"killed":  killIngot,
		},
		`^the store (%s)$`: {
			"goes down":  storeGoesDown,
			"comes back": storeComesBack,
		},
		`^a file that (%s) is committed$`: {
			"is no manifest":       commitReadme,
			"cannot be a manifest": commitHello,
		},
		`^Ingot is killed, (%s), and Ingot is started again$`: {
			"the store is emptied":                killAndEmpty,
			"the copy of the store is put back":   putStoreBack,
			"store and status branch are lost":    loseBoth,
			"the store and the seal key are lost": killAndLoseKey,
			"the store loses all servers":         loseServers,
			"the store's file is damaged":         damageFile,
			"its copy of the repository is lost":  loseCopy,
		},
		`^the store takes (%s)$`: {
			"no more":    storeTakesNoMore,
			"more again": storeTakesMore,
		},
		`^another Ingot with a store of its own is started(%s)$`: {
			"":              startRival,
			" to take over": takeOver,
		},
		`^Ingot is suspended(%s)$`: {
			"": suspend,
			", and the one that stands by takes over": suspendLeader,
		},
	} {
		sc.Step(fmt.Sprintf(expression, oneOf(all)), func(ctx context.Context, what string) error { return all[what](ctx) })
	}
	for expression, all := range map[string]map[string]func(ctx context.Context, name string) error{
		`^` + device + ` asks for (%s)$`: {
			"an address again":        askAgain,
			"the address that it had": askForSame,
		},
		`^` + device + ` (%s)$`: {
			"has the address that it had":                   hasSameAddress,
			"gets no address":                               noAddress,
			"is given the address that is reserved for it":  givenReserved,
			"has the address that is reserved for its port": hasReserved,
			"has another address":                           hasUnreserved,
		},
		`^claim ` + name + ` is (%s)$`: {
			"Unbound":     claimUnbound,
			"not Unbound": claimNotUnbound,
		},
		`^the disk of ` + name + ` is (%s)$`: {
			"empty":     diskEmpty,
			"as it was": diskKept,
		},
		`^the disk of one server holds claim ` + name + `(%s)$`: {
			"":                                  heldOnce,
			", or Ingot says that nobody knows": heldOnceOrUnknown,
		},
	} {
		sc.Step(fmt.Sprintf(expression, oneOf(all)), func(ctx context.Context, name, what string) error { return all[what](ctx, name) })
	}
}

func oneOf[F any](choices map[string]F) string {
	all := sortedKeys(choices)
	for i, words := range all {
		all[i] = regexp.QuoteMeta(words)
	}
	return strings.Join(all, "|")
}
