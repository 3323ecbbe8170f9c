package features

import (
	"context"
	"strings"

	"github.com/cucumber/godog"
)

// defineSteps is the whole vocabulary of the features.
func defineSteps(sc *godog.ScenarioContext) {
	for expression, do := range map[string]any{
		// the site
		`the machines`: theMachines,
		`the servers`:  theServers,
		`NUMBER servers(, each with a BMC of its own|)`: manyServers,
		`claims? NAME runs? on NAME`:                    claimsRunOn,
		`the repository is %s`: oneOf{
			`at (GitHub|GitLab|Gitea|Forgejo), and polled once an hour`:                                                           atForge,
			`reached over (HTTPS with a password|HTTPS as a GitHub App|HTTPS through a proxy|SSH with a key|SSH through a proxy)`: reachedOver,
			`that of examples/seeds, with its machines`:                                                                           seedManifests,
			`the result of "ingot init"`:                                                                                          initRepository,
		},
		`the repository is the result of "ingot import" of a cluster of metal-operator`: importCluster,
		`Ingot is configured so that %s`: oneOf{
			`a boot may take NUMBER seconds`:                         limitBoot,
			`BMCs are in network NAME alone`:                         bmcsAreIn,
			`BMCs may have any address`:                              bmcsAnywhere,
			`boot tickets are bound to (their first client|nothing)`: bindTickets,
			`commits have to be signed`:                              signCommits,
			`it keeps its default intervals`:                         usualIntervals,
			`NAME may log in to every server`:                        mayLogIn,
			`metrics are public`:                                     metricsForAll,
			`NUMBER disk images? (?:is|are) written at a time`:       limitInstalls,
			`power may be restored without the status branch`:        restoreWithoutBranch,
			`the guard lets NUMBER servers be switched off`:          limitPower,
		},
		`the admin listener is reached %s`: oneOf{
			`by a proxy that names the users`:             reachedByProxy,
			`from other machines`:                         reachedByAll,
			`from other machines, over TLS, by user NAME`: reachedByUser,
		},
		`(Ingot is started again with |)the tenants`: theTenants,

		// faults
		`(?:BMC )?NAME (suffers|no longer suffers) from NAME(?: NUMBER times)?`: suffer,
		`the power %s`: oneOf{
			`of NAME is cut`:            powerCut,
			`button of NAME is pressed`: pressPower,
			`of all BMCs, servers and Ingot fails, and the BMCs start one after the other`: cutAllPower,
		},
		`the probe of a server reports 1500 neighbours`:                manyNeighbours,
		`a BMC keeps NUMBER sessions`:                                  keepSessions,
		`what machines (ask for|report) (is lost|arrives again)`:       loseWhat,
		`the proxy (refuses Ingot|does not answer|lets Ingot through)`: proxyDoes,

		// secrets
		`the BMCSecrets are %s`: oneOf{
			`encrypted with SOPS(, for a key that Ingot does not have|)`: encryptSecrets,
			`in a folder outside Git`:                                    secretsOutside,
		},
		`the BMCSecret of BMC NAME is committed%s`: oneOf{
			``: commitSecret,
			` (encrypted for another key|in plain text)`: commitOtherSecret,
		},
		`Ingot is given the key`: giveKey,
		`the folder is %s`: oneOf{
			`(lost|half empty)`:                            spoilFolder,
			`given the (right|wrong) password of BMC NAME`: fillFolder,
		},
		`nothing that Ingot keeps holds the password of a BMC`:                     keepsNoPassword,
		`what claims? NAME boots? is shown by no digest that others could compute`: shownKeyed,
		`claims? NAME asks? for nothing but what is installed`:                     askForNothingElse,
		`the keys that may sign are taken away`:                                    takeKeys,

		// devices, and the networks that they ask on
		`the networks`:                           theNetworks,
		`the boot loaders have (a|no) signature`: signLoaders,
		`the MAC prefix database`:                theDatabase,
		`the MAC prefix database is taken away`:  withoutDatabase,
		`NAME boots from the network first`:      networkFirst,
		`DEVICE is plugged in%s`: oneOf{
			``:                                       plugIn,
			`, as client NAME`:                       plugInAs,
			` to port NAME`:                          plugIntoPort,
			` to a port with a name of NUMBER bytes`: plugIntoLongPort,
			` to network NAME`:                       plugIntoNetwork,
		},
		`BMC NAME moves to another address(?:, where BMC NAME answers|)`: moveBMC,
		`DEVICE asks %s`: oneOf{
			`for an address again`:                      askAgain,
			`for an address NUMBER times at once`:       askOften,
			`for the address that it had`:               askForSame,
			`what to boot, as (.+)`:                     askBoot,
			`what to boot whenever NAME does`:           asksAlong,
			`another DHCP server what to boot, as (.+)`: asksOther,
		},
		`DEVICE %s`: oneOf{
			`gets no address`: noAddress,
			`gets the address of the other DHCP server`:     givenAsBefore,
			`gets the address that is reserved for it`:      givenReserved,
			`has another address`:                           hasUnreserved,
			`has the address that it had`:                   hasSameAddress,
			`has the address that is reserved for its port`: hasReserved,
			`declines its address with the message NAME`:    declineAddress,
		},
		`another DHCP server leased addresses to device NAME and device NAME`: hadAddresses,
		`Endpoints that "ingot import endpoints" makes of them are committed`: importEndpoints,
		`DEVICE receives %s`: oneOf{
			`(host name|boot file) NAME`: toldOption,
			`no (host name|boot file)`:   toldNoOption,
		},
		`it receives %s`: oneOf{
			`(.+) by (TFTP|HTTP)`:         toldFile,
			`an address and no boot file`: toldNothing,
			`the name NAME`:               toldName,
		},
		`device NAME reports as NAME`:                              reportAs,
		`(no|one|\d+) passwords? (?:was|were) refused by BMC NAME`: passwordsRefused,
		`NAME does not have the MAC address (?:of )?NAME`:          macIsNoneOf,
		`"ingot leases" lists device NAME on port NAME`:            leasesList,

		// commits
		`an Endpoint that reserves an address for %s is committed`: oneOf{
			`BMC NAME`:               commitEndpoint,
			`DEVICE on network NAME`: commitOnNetwork,
			`client identifier NAME`: commitClient,
			`port NAME of a relay`:   commitPort,
		},
		`an Endpoint of device NAME is committed with the options`: commitOptions,
		`BMC NAME %s`: oneOf{
			`at the stranger's port is committed below the folder of NAME, with the secret of BMC NAME`: commitBMCBelow,
			`by (https?) at NAME is committed, with the secret of BMC NAME`:                             commitLeadingAway,
			`is (committed|removed)`:                   commitBMC,
			`is committed with (its own|another) UUID`: commitNamedBMC,
		},
		`the servers are committed`: commitServers,
		`server NAME is %s`: oneOf{
			`committed with a script in a label`: commitScriptLabel,
			`committed with its BMC in it`:       commitWithin,
			`taken out of Git`:                   removeServer,
		},
		`the claims are committed`:                        commitClaims,
		`NUMBER claims that name no server are committed`: commitManyClaims,
		`claims? NAME (?:is|are) %s`: oneOf{
			`committed a second time, for NAME`:                          commitTwice,
			`committed below the folder of NAME`:                         commitClaimBelow,
			`committed with a mistake`:                                   commitBroken,
			`moved to the namespace NAME`:                                moveClaims,
			`removed`:                                                    removeClaims,
			`removed by a commit that (is not signed|a stranger signed)`: removeUnsigned,
			`removed, and the same commit begins maintenance of NAME`:    removeAndMaintain,
			`renamed NAME`:                                               renameClaims,
		},
		`the file of claim NAME (is emptied|becomes a folder|moves to a hidden folder|is deleted)`: loseFile,
		`the Ignition of claim NAME is Butane with a mistake in line NUMBER`:                       butaneMistake,
		`maintenance of %s`: oneOf{
			`all servers is committed`: maintainAll,
			`NAME((?: that asks its owner)?(?: (?:and|that) leaves it (?:On|Off))?) is (committed|removed)`: commitMaintenance,
		},
		`boot configuration NAME for NAME is (committed|removed)`: commitBootConfiguration,
		`ServerReadinessRule NAME is %s`: oneOf{
			`committed, (Continuous|BootstrapOnly)`: commitRule,
			`removed`:                               removeRule,
		},
		`a commit %s`: oneOf{
			`adds 30 files of 190 wrong claims`:                    commitWrongClaims,
			`adds a file that cannot be a manifest`:                commitHello,
			`adds a file that is not a manifest`:                   commitReadme,
			`adds an unreadable manifest below the folder of NAME`: commitUnreadableBelow,
			`approves NAME`:                                     approve,
			`approves what is absent`:                           approveAbsent,
			`approves what the guard holds back`:                approveHeld,
			`chooses the (status branch|store)`:                 chooseCopy,
			`empties the repository`:                            emptyRepository,
			`names the folder of the claims in the ignore file`: commitIgnored,
			`renames the folder of the claims`:                  renameFolder,
		},
		`a commit adds a file of (\d+) MB, a manifest of (\d+) MB and the claims`: commitLarge,
		`the history is rewritten %s`: oneOf{
			`to end before claim NAME`:     setBranchBack,
			`with claim NAME switched Off`: rewriteOff,
			`without claim NAME`:           rewriteHistory,
			`without images.yaml`:          loseCatalog,
		},
		`the branch has commit NAME, commit NAME that disturbs every server, and commit NAME that undoes it`: pushDisturbance,
		`branch NAME has (?:all but claim NAME|everything)`:                                                  branchHas,
		`an operator %s in a clone what Ingot holds back`: oneOf{
			`approves`: approveInClone,
			`refuses`:  refuseInClone,
		},

		// pull requests
		`a pull request has the (claims|commits)`: proposeTable,
		`a pull request %s`: oneOf{
			`breaks the manifest of claim NAME`:  proposeBroken,
			`moves all claims to another folder`: proposeFolder,
			`moves claim NAME to namespace NAME`: proposeNamespace,
			`names image NAME as NAME`:           proposeImage,
			`removes claims? NAME`:               proposeRemoval,
			`takes the newest commit back`:       proposeRevert,
		},
		`it is merged(| as one commit| with a merge commit| commit by commit)`: mergeProposal,
		`its plan is (nothing|changes|destructive|wrong)`:                      planIs,
		`its plan is (changes|destructive)(?:, held back by the guard|):`:      planHas,
		`its plan for the (clone|configuration|comment) says NAME`:             planSays,
		`the (GitHub|GitLab|Forgejo) workflow runs twice`:                      runWorkflow,
		`the pull request has one comment, which says NAME`:                    oneComment,

		// Ingot's life
		`Ingot starts`:                        startIngot,
		`Ingot does not start, and says NAME`: startsNot,
		`Ingot does not start with another CA for Redis, and says NAME and NAME`: otherRedisCA,
		`Ingot is %s and started again`: oneOf{
			`killed`:  killIngot,
			`stopped`: restartIngot,
		},
		`Ingot is started again for (branch|folder) NAME`:                                      startElsewhere,
		`Ingot is killed and started again NUMBER times, each time once it has asked each BMC`: killOften,
		`Ingot is killed, %s, and Ingot is started again`: oneOf{
			`(the store is lost, |)NAME is edited out of the status branch`:        editOut,
			`a file of the status branch about NAME is garbled, the store is lost`: garbleStatus,
			`all servers are switched on, NUMBER minutes pass`:                     switchAllOn,
			`both copies are put back after an hour`:                               putBothBack,
			`its clock is set NUMBER hours ahead`:                                  startAhead,
			`its copy of the repository is lost`:                                   loseCopy,
			`store and status branch are lost`:                                     loseBoth,
			`the copy of the store is put back`:                                    putStoreBack,
			`the history is rewritten without claim NAME`:                          rewriteWhileDown,
			`the status branch is made by another`:                                 replaceStatus,
			`the store (loses|garbles) NAME`:                                       damageRecord,
			`the store and the seal key are lost`:                                  killAndLoseKey,
			`the store is emptied`:                                                 killAndEmpty,
			`the store loses all servers`:                                          loseServers,
			`the store's file is damaged`:                                          damageFile,
		},
		`Ingot is killed %s, and started again`: oneOf{
			`once NAME has half of its disk image`:       killWriting,
			`while it (fetches|converts) the disk image`: killPreparing,
		},
		`Ingot is killed, and NAME asks for the iPXE script of NAME until it has started again`: askWhileStarting,
		`claim NAME is (committed|removed), %s`: oneOf{
			`and Ingot is killed NUMBER times at random`:                           killAtRandom,
			`and Ingot is killed once (.+) and started again( without its store|)`: killOnce,
			`Ingot is killed once (.+), and started again once NAME has given up`:  killUntilStranded,
		},
		`claim NAME is committed, and the status branch is protected once Ignition is served`:         protectOnce,
		`NUMBER claims that name no server are committed, and Ingot is killed NUMBER times at random`: killAmongMany,
		`Ingot has nothing to do`: idle,
		`Ingot heals the power of NAME by the copy of the store until the Git host is back`: healByCopy,
		`Ingot never held more than NUMBER MB in memory`:                                    neverHeld,
		`(Ingot|the standby) is not ready because of its NAME(?:, and says NAME|)`:          notReady,
		`the log says NAME`:                           logSays,
		`the standby refuses connections of machines`: refusesMachines,

		// two that act
		`another Ingot %s`: oneOf{
			`is started with a copy of the state folder`: startCopy,
			`is on standby`:                                   standBy,
			`with a store of its own is started`:              startRival,
			`with a store of its own is started to take over`: takeOver,
		},
		`the Ingot that leads %s`: oneOf{
			`dies together with Redis, which comes back from its copy`: dieTogether,
			`is killed`:    killLeader,
			`is suspended`: suspend,
			`is stopped, and the standby leads before the connections of the first end`: stopLeader,
			`is suspended, and the standby takes over`:                                  suspendLeader,
		},
		`the first Ingot %s`: oneOf{
			`does not start again, with exit code NUMBER`: staysEnded,
			`ends with exit code NUMBER`:                  firstEnds,
			`goes on`:                                     resume,
		},
		`it ends with exit code NUMBER, and says NAME`: rivalEnds,

		// the store
		`the store %s`: oneOf{
			`comes back`:                          storeComesBack,
			`goes down`:                           storeGoesDown,
			`has another kind of value for a key`: replaceKey,
			`is copied`:                           copyStore,
			`is copied, and the status branch with it`: copyBoth,
			`is emptied`:       emptyStore,
			`loses NAME`:       makeHole,
			`takes more again`: storeTakesMore,
			`takes no more`:    storeTakesNoMore,
		},
		`Redis %s`: oneOf{
			`asks for a password`:                      redisAsksForPassword,
			`gets another password, and then its file`: redisPasswordChanges,
			`is reached by TLS`:                        redisOverTLS,
			`(becomes a replica|has too few replicas|has no memory left|accepts writes again)`: redisChanges,
		},
		`"ingot check" shows a fault of NAME: NAME`: checkShows,

		// requests of machines
		`(?:a stranger|(?:server )?NAME) asks for the THING of NAME(| from its own address)`:                       asksFor,
		`NAME asks for the THING of NAME, with (?:a|the) token (that was made up|that it had|of its command line)`: askWithToken,
		`Ignition of NAME is asked for %s`: oneOf{
			`from the address of NAME`: askIgnitionFrom,
			`with the token of NAME`:   askIgnitionWith,
		},
		`the firmware of NAME asks for %s`: oneOf{
			`its address on the network`: firmwareAsksDHCP,
			`its script`:                 firmwareAsks,
		},
		`NAME takes the script and Ignition of NAME`:        takeBoot,
		`NAME knows what it is to boot`:                     keepHandout,
		`NAME asks the metadata service for its name, (.+)`: askName,
		`a report for NAME that (.+) is sent`:               sendReport,
		`a stranger reports that NAME is wiped`:             strangerWipes,
		`reports of NAME are refused`:                       reportsRefused,
		`it is %s`: oneOf{
			`answered`:            isAnswered,
			`refused with NUMBER`: refusedWith,
		},
		`a stranger listens at NAME`:          strangerListens,
		`the stranger receives no connection`: toldStrangerNothing,

		// images
		`image NAME %s`: oneOf{
			`(has no initramfs|has two kernels|is for arm64 alone|was never pushed|is not what its digest says|is in a folder that claims may not name)`: imageIs,
			`is at the stranger's port`: imageAtStranger,
			`is pushed as it should be`: imageIsWhole,
			`is tagged as NAME`:         tagMoves,
		},
		`disk image NAME %s`: oneOf{
			`(is in the registry|is not what its digest says|has a backing file|says that it is of 8 TiB|has no partition table|starts nowhere|is raw and called a qcow2|has no digest at its URL)`: diskImageIs,
			`is at a URL(| with the digest of another file| and its server ends whole answers half way| of the stranger| that redirects to the stranger)`:                                           diskImagePublished,
		},
		`images are %s`: oneOf{
			`in a folder, and there is no registry`: imagesInFolder,
			`on a web server`:                       imagesPublished,
		},
		`the image registry goes down`:      registryGoesDown,
		`the image registry is (down|back)`: registryIs,
		`images.yaml %s`: oneOf{
			`has a mistake`:                         breakCatalog,
			`is committed below the folder of NAME`: commitCatalogBelow,
			`names image NAME as NAME`:              nameImage,
			`no longer names an image`:              nameNoImage,
		},
		`the fetch of disk image NAME went on where it was cut off`: fetchedInParts,
		`NAME asked for the rest of its disk image`:                 askedForRest,
		`each layer was fetched from its registry once`:             fetchedOnce,

		// what is promised
		`(?:server )?NAME (?:is|are) %s`: oneOf{
			`(Initial|Discovery|Available|Reserved|Cleanup|Released|Maintenance)`: serversAre,
			`forgotten`: isForgotten,
			`in Error, and its status names the disk`: inError,
			`powered (On|Off)`:                        poweredIs,
			`wiped again, and is in Error`:            wipedAgain,
		},
		`claim NAME is %s`: oneOf{
			`(Bound|Booted|Unconfirmed) on NAME`: claimIsOn,
			`not Unbound`:                        claimNotUnbound,
			`Unbound`:                            claimUnbound,
		},
		`all servers are %s`: oneOf{
			`found running, and are left alone`:                allFound,
			`as before two minutes after their BMCs are ready`: healed,
			`switched off again`:                               allOff,
			`switched off once a commit approves of them`:      allOffOnceApproved,
		},
		`each of NUMBER claims is Booted on a server of its own`: eachBooted,
		`nothing happens to NAME`:                                nothingHappens,
		`NAME was %s`: oneOf{
			`(?:powered on (once|\d+ times), |)installed (once|\d+ times) and wiped (once|\d+ times)`: wasDone,
			`(shut down|forced off)`:     lastReset,
			`restarted (once|\d+ times)`: wasRestarted,
		},
		`NAME runs %s`: oneOf{
			`from its disk again`: runsFromDisk,
			`image NAME`:          runsImage,
		},
		`the disk of NAME is %s`: oneOf{
			`as it was`: diskKept,
			`empty`:     diskEmpty,
		},
		`the disk of one server holds claim NAME%s`: oneOf{
			``: heldOnce,
			`, or Ingot reports that this is unknown`: heldOnceOrUnknown,
		},
		`it is not installed anywhere else`:                 heldNowhereElse,
		`the default user of NAME has the SSH keys of NAME`: defaultHasSSHKeys,
		`user NAME of NAME has the SSH keys of NAME`:        hasSSHKeys,
		`the (first|second) disk of NAME holds %s`: oneOf{
			`disk image NAME`: diskHolds,
			`nothing`:         diskHoldsNothing,
		},
		`the firmware of NAME boots from the (network|disk) first`: bootsFirst,
		`the indicator of NAME is (Lit|Blinking|Off)`:              indicatorIs,
		`the guard holds %s back`: oneOf{
			`nothing`:         guardHoldsNothing,
			`NUMBER releases`: guardHolds,
		},
		`BMC NAME has %s`: oneOf{
			`no request for a while`: leftInPeace,
			`no session`:             loggedOut,
		},
		`no BMC was asked to change anything since`: nothingAsked,

		// the status branch, and the Git host
		`the status branch is %s`: oneOf{
			`changed by another writer`:  foreignCommit,
			`deleted`:                    deleteStatus,
			`no longer protected`:        unprotectStatus,
			`protected`:                  protectStatus,
			`set back by NUMBER commits`: setStatusBack,
		},
		`the status branch shows %s: TEXT`: oneOf{
			`for (server|claim|BMC|endpoint|boot configuration) NAME`: statusSaysOf,
			`in the (problems|revision|README|picture of the racks)`:  statusSays,
			`in its history`: historySays,
		},
		`the status branch %s`: oneOf{
			`does not mention claim NAME`:      statusOmits,
			`has Ingot's files alone`:          statusIsOurs,
			`has Ingot's signed commits alone`: statusIsSigned,
			`shows that`:                       statusShows,
			`stays as it is`:                   statusStays,
		},
		`the problems name the line and column of option NAME`:                                 problemAtOption,
		`Ingot reports once, and as long as it is so, that the status branch is refused: NAME`: refusalSaidOnce,
		`the Git host %s`: oneOf{
			`(protects|finds a secret on) the status branch`: forgeRefuses,
			`shows NAME`:                     showCommit,
			`takes no commit status for now`: throttleForge,
			`takes the status branch again`:  forgeTakes,
		},
		`the Git host was asked at most NUMBER times`:                    askedAtMost,
		`pushes are announced with (another|the right) secret`:           announceWith,
		`the announcement is refused, and the repository was not polled`: announcementRefused,
		`the newest commit is a (success|failure): NAME`:                 newestCommitIs,
		`no commit has the same status twice`:                            saidOnce,
		`Ingot %s`: oneOf{
			`has NAME in force`:     commitInForce,
			`ignores NAME as older`: ignoredAsOlder,
		},

		// views of the fleet
		`"ingot explain" shows for (server|claim) NAME: TEXT`:     explainSays,
		`"ingot explain" shows for the network card of NAME`:      explainCardSays,
		`without Ingot a clone shows claim NAME as (\w+) on NAME`: cloneSays,
		`the page of PAGE %s`: oneOf{
			`contains TEXT`:                                     pageContains,
			`has a picture of its boot`:                         pageHasBoot,
			`has only its own script`:                           pageScripts,
			`is refused for another host name`:                  pageIsOurs,
			`loads nothing from other hosts and sets no cookie`: pageIsClosed,
			`shows server NAME as NAME in rack NAME`:            pageShowsInRack,
			`shows the line that approves it`:                   pageApproves,
		},
		`the list of the servers that are (\w+) has NAME alone`: listHas,
		`a search %s`: oneOf{
			`for server NAME opens its page`:             searchOpens,
			`of 10 kB in the list of servers is refused`: longSearchRefused,
		},
		`the API %s`: oneOf{
			`lists the servers with (\w+) NAME: NAME`:                 apiLists,
			`refuses the servers with (\w+) NAME: NAME`:               apiRefuses,
			`sends the servers once, and again only when one changed`: apiSendsOnce,
		},
		`the watcher receives claim NAME as (\w+)`: watcherReceives,
		`the metrics %s`: oneOf{
			`count a refused THING for NAME`:                   metricsCount,
			`count NUMBER boots? that (?:is|are) Booted`:       metricsCountBoots,
			`show claim NAME waiting for NAME`:                 metricsNameWaiting,
			`show network NAME as full`:                        metricsFull,
			`show since when the status branch is not written`: metricsSayUnpublished,
			`show that the users cannot be used`:               usersUnusable,
		},
		`the only metrics of NAME are state NAME and power NAME`: onlyMetricsOf,

		// access
		`a client %s`: oneOf{
			`on this machine gets the fleet`:                anybodySees,
			`that names another site is refused`:            rebindingRefused,
			`that names itself NAME is refused`:             namedWithoutProxy,
			`that the proxy names NAME gets the fleet`:      seesThroughProxy,
			`watches the API`:                               watchAPI,
			`without a password gets no metrics`:            metricsRefused,
			`without a password gets the metrics`:           metricsSeen,
			`without a password learns that Ingot is ready`: anybodyLearnsReady,
		},
		`"ingot status" %s`: oneOf{
			`(?:of user NAME|without a user) fails: NAME`:             userTold,
			`of user NAME shows the fleet`:                            userSees,
			`of user NAME shows the fleet, and the other certificate`: userSeesOther,
		},
		`the users %s`: oneOf{
			`are NAME`:                              usersAre,
			`have passwords that are hashed by MD5`: usersByMD5,
		},
		`the certificate is (broken|another)`: changeCertificate,
	} {
		register(sc, expression, do)
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
