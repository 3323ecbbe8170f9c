Feature: Machines become known without anybody typing

  Scenario: a BMC in Git is enough for its server to become Available
    Given the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And "bmc1-system-0" was powered on once, installed 0 times and wiped 0 times
    And "bmc1-system-0" is powered Off

  Scenario: two systems behind one BMC are two servers
    Given the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
      | bmc1-system-1 | bmc1 |
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And "bmc1-system-1" is Available

  @long
  Scenario: no registry is needed to begin
    Given images are in a folder, and there is no registry
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "bmc1-system-0"
    And "bmc1-system-0" runs image "linux"

  @long
  Scenario: a server whose BMC never shows a UUID is the one that Git gives it
    Given the machines
      | SERVER | BMC  | FAULT        |
      | s1     | bmc1 | uuid-missing |
    And BMC "bmc1" is committed
    And the status branch shows for BMC "bmc1": "write a Server with spec.bmcRef and, as spec.systemUUID, the one that its firmware has"
    When the servers are committed
      | SERVER | BEHIND |
      | s1     | bmc1   |
    Then "s1" is Available
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    When Ingot is killed, the store is emptied, and Ingot is started again
    And claim "web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: a server that describes its BMC is what that BMC shows
    (and without it the machine is left as it is)
    Given the machines
      | SERVER | BMC  |
      | s1     | bmc1 |
    When server "s1" is committed with its BMC in it
    Then "s1" is Available
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    When server "s1" is taken out of Git
    Then the status branch shows for server "s1": "its BMC s1 is not in Git"
    And "s1" is powered On
    And "s1" was powered on 2 times, installed once and wiped 0 times

  Scenario: a server found running is left alone
    (law 1: it runs somebody's work, and no commit names it)
    Given the machines
      | SERVER        | BMC  | RUNS            |
      | bmc1-system-0 | bmc1 | somebody's work |
      | bmc2-system-0 | bmc2 |                 |
    When BMC "bmc1" is committed
    And BMC "bmc2" is committed
    Then "bmc2-system-0" is Available
    And "bmc1-system-0" is Initial
    And the status branch shows for server "bmc1-system-0": "FoundRunning"
    And nothing happens to "bmc1-system-0"

  Scenario: a server found running is discovered once Git asks for it
    Given the servers
      | SERVER | RUNS            | STATE   |
      | s1     | somebody's work | Initial |
    And the status branch shows for server "s1": "FoundRunning"
    When the servers are committed
      | SERVER | DISCOVER |
      | s1     | please   |
    Then "s1" is Available
    And "s1" is powered Off

  @long
  Scenario: a server found running is not taken for off by a moment's Off
    (law 1: some BMCs say so for seconds)
    Given the servers
      | SERVER | RUNS            | STATE   |
      | s1     | somebody's work | Initial |
    And the status branch shows for server "s1": "FoundRunning"
    When "s1" suffers from "false-off" 3 times
    Then nothing happens to "s1"
    And "s1" is Initial
    And the status branch shows for server "s1": "FoundRunning"

  @long
  Scenario: a server found running that does not shut down is not forced off
    Given the servers
      | SERVER | RUNS            | STATE   |
      | s1     | somebody's work | Initial |
    And the status branch shows for server "s1": "FoundRunning"
    And "s1" suffers from "graceful-ignored"
    When the servers are committed
      | SERVER | DISCOVER |
      | s1     | please   |
    Then the status branch shows for server "s1": "it is not forced off"
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times
    And "s1" is powered On

  @long
  Scenario: a server that a person switches on is not Ingot's to discover
    Given the machines
      | SERVER        | BMC  | FAULT             |
      | bmc1-system-0 | bmc1 | override-not-kept |
    When BMC "bmc1" is committed
    Then the status branch shows for server "bmc1-system-0": "override"
    When the power button of "bmc1-system-0" is pressed
    Then the status branch shows for server "bmc1-system-0": "FoundRunning"
    And "bmc1-system-0" is Initial
    And "bmc1-system-0" was powered on once, installed 0 times and wiped 0 times
    And "bmc1-system-0" is powered On

  Scenario: a server whose name is in Git bears that name
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
    Then the status branch shows for server "s1": "rack: \"7\""
