Feature: A BMC that misbehaves delays nobody but its own servers
  (law 4)

  Scenario Outline: a BMC that <FAULT>
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And BMC "bmc-s1" suffers from "<FAULT>"
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s2     |
    Then claim "web" is Booted on "s2"
    And nothing happens to "s1"

    Examples:
      | FAULT        |
      | hang         |

    @long
    Examples:
      | FAULT        |
      | refuse       |
      | server-error |
      | unauthorized |

  Scenario: a server behind a BMC that came back is served
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And BMC "bmc-s1" suffers from "refuse"
    And the status branch shows for BMC "bmc-s1": "ConnectionFailed"
    And the claims are committed
      | CLAIM |
      | web   |
    When BMC "bmc-s1" no longer suffers from "refuse"
    Then claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

  @long
  Scenario: after a power cut of 50 BMCs that share a password, all is as before
    (a BMC that starts shows many things that are not so)
    Given Ingot is configured so that it keeps its default intervals
    And 50 servers, each with a BMC of its own
    When 50 claims that name no server are committed
    Then each of 50 claims is Booted on a server of its own
    When the power of all BMCs, servers and Ingot fails, and the BMCs start one after the other
    Then all servers are as before two minutes after their BMCs are ready

  Scenario Outline: a BMC that cannot be read, by <FAULT>, leaves its server's claim Booted
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    When BMC "bmc-s1" suffers from "<FAULT>"
    Then the status branch shows for claim "web": "type: BMCReadable"
    And claim "web" is Booted on "s1"
    When Ingot is stopped and started again
    Then the status branch shows for claim "web": "type: BMCReadable"
    And claim "web" is Booted on "s1"

    Examples:
      | FAULT           |
      | refuse          |

    @long
    Examples:
      | FAULT           |
      | unauthorized    |
      | new-certificate |

  Scenario Outline: a BMC that shows no systems, by <FAULT>, makes its server nothing else
    (a reading that lacks what is there is no reading)
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And BMC "bmc-s1" suffers from "<FAULT>"
    When Ingot is stopped and started again
    Then the status branch shows for <OBJECT>: "<REASON>"
    And "s1" is Reserved
    When BMC "bmc-s1" no longer suffers from "<FAULT>"
    And the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times

    Examples:
      | FAULT            | OBJECT       | REASON        |
      | ok-error         | BMC "bmc-s1" | HalfAnswer    |

    @long
    Examples:
      | FAULT            | OBJECT       | REASON        |
      | collection-empty | BMC "bmc-s1" | HalfAnswer    |
      | no-systems       | server "s1"  | SystemMissing |

  Scenario: of swapped blades, each is what it was
    (a server is its machine, wherever that is plugged in)
    Given the servers
      | SERVER | BMC | STATE     |
      | s1     | b   | Available |
      | s2     | b   | Available |
    And claims "one, two" run on "s1, s2"
    And BMC "b" suffers from "blades-swapped"
    When claim "one" is removed
    Then "s1" is Available
    And the disk of "s1" is empty
    And claim "two" is Booted on "s2"
    And "s2" was powered on 0 times, installed 0 times and wiped 0 times

  Scenario Outline: a server whose BMC shows another machine in its place, or does not say which, is left alone
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And "s1" suffers from "<FAULT>"
    When claim "web" is removed
    Then the status branch shows for server "s1": "<REASON>"
    And nothing happens to "s1"
    When "s1" no longer suffers from "<FAULT>"
    Then "s1" is Available
    And the disk of "s1" is empty

    Examples:
      | FAULT        | REASON           |
      | uuid-swapped | IdentityMismatch |
      | uuid-missing | IdentityUnknown  |

  Scenario: nothing is done to the servers of a BMC that is not the one that Git names
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And BMC "bmc-s1" is committed with another UUID
    And the status branch shows for BMC "bmc-s1": "IdentityMismatch"
    And the power of "s1" is cut
    When claim "web" is removed
    Then the status branch shows for server "s1": "spec.bmcUUID of BMC bmc-s1 (bmcs/bmc-s1.yaml:1) is 0b5e55ed-0000-4000-8000-000000000000"
    And nothing happens to "s1"
    When BMC "bmc-s1" is committed with its own UUID
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario Outline: a server that is not <WHAT> that Git says is left alone until Git is corrected
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the servers are committed
      | SERVER | BEHIND   | UUID   |
      | s1     | <BEHIND> | <UUID> |
    When claim "web" is removed
    Then the status branch shows for server "s1": "<WHY>"
    And nothing happens to "s1"
    When the servers are committed
      | SERVER | BEHIND | UUID |
      | s1     | bmc-s1 |      |
    Then "s1" is Available
    And the disk of "s1" is empty

    Examples:
      | WHAT            | BEHIND | UUID                                 | WHY                                                    |
      | behind the BMC  | bmc-s2 |                                      | says that it is behind BMC bmc-s2, and BMC bmc-s1 shows it |
      | the machine     |        | 0b5e55ed-0000-4000-8000-000000000000 | no server has that, while the server of this name has  |

  Scenario: a BMC that refuses its password is not asked again and again
    (or its account would be locked)
    Given the machines
      | SERVER        | BMC  | FAULT        |
      | bmc1-system-0 | bmc1 | unauthorized |
      | bmc2-system-0 | bmc2 |              |
    When BMC "bmc2" is committed
    Then "bmc2-system-0" is Available
    When BMC "bmc1" is committed
    Then the status branch shows for BMC "bmc1": "AuthenticationFailed"
    And "bmc2-system-0" is Available
    And BMC "bmc1" has no request for a while

  @long
  Scenario: a BMC that forgets its sessions is logged in to again
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And BMC "bmc-s1" suffers from "drop-sessions"
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

  Scenario: an Ingot that is killed again and again leaves no sessions behind
    (or the BMC would soon have none left for it)
    Given a BMC keeps 3 sessions
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When Ingot is killed and started again 5 times, each time once it has asked each BMC
    And the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

  @long
  Scenario: a server whose boot override is not kept is not switched on
    (it would boot something else than it should)
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" suffers from "override-not-kept"
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Bound on "s1"
    And the status branch shows for server "s1": "override"
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times

  @long
  Scenario: a server whose firmware ignores the override is not taken for booted
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" suffers from "override-ignored"
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Bound on "s1"
    And the status branch shows for claim "web": "it has not asked for its boot script"
    And "s1" was powered on once, installed 0 times and wiped 0 times

  Scenario Outline: a BMC with <PECULIARITY> is understood
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" suffers from "<PECULIARITY>"
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

    Examples:
      | PECULIARITY          |
      | override-needs-mode  |

    @long
    Examples:
      | PECULIARITY          |
      | override-in-settings |
      | power-flaps          |

  @long
  Scenario: an operating system that ignores the request to shut down is switched off
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And "s1" suffers from "graceful-ignored"
    When the claims are committed
      | CLAIM | POWER |
      | web   | Off   |
    Then "s1" is powered Off
    And the disk of "s1" is as it was

  @long
  Scenario: a power-on that is carried out and answered with an error is not repeated
    Given the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    And "bmc1-system-0" suffers from "reset-answers-500"
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And "bmc1-system-0" is powered Off
    And "bmc1-system-0" was powered on once, installed 0 times and wiped 0 times

  Scenario: a power-on that the BMC accepts and does not carry out is reported
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And Ingot is configured so that a boot may take 10 seconds
    And "s1" suffers from "power-on-ignored"
    When the power of "s1" is cut
    Then the status branch shows for server "s1": "PowerOnRefused"
    And the status branch shows for server "s1": "stays Off"
