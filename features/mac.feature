Feature: A server's MAC addresses are those that Git gives it or its BMC shows
  (law 5)

  Scenario: a report adds none, so who sent it is not served what a claim boots
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the machines
      | SERVER        | BMC  | FAULT            |
      | bmc1-system-0 | bmc1 | probe-other-uuid |
    And BMC "bmc1" is committed
    And reports of "bmc1-system-0" are refused
    And device "neighbour" is plugged in
    When device "neighbour" reports as "bmc1-system-0"
    And "bmc1-system-0" no longer suffers from "probe-other-uuid"
    Then "bmc1-system-0" is Available
    And the status branch shows for server "bmc1-system-0": "identifiedBy: BMC"
    And "bmc1-system-0" does not have the MAC address of "neighbour"
    When "bmc1-system-0" suffers from "hang-after-kernel"
    And the claims are committed
      | CLAIM | SERVER        |
      | web   | bmc1-system-0 |
    And the status branch shows for claim "web": "last seen fetching kernel"
    And "bmc1-system-0" is plugged in
    And "neighbour" asks for the Ignition of "bmc1-system-0"
    Then it is refused with 403
    When "bmc1-system-0" asks for the Ignition of "bmc1-system-0"
    Then it is answered

  Scenario: those that Git gives it count beside those of its BMC
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the servers are committed
      | SERVER | MACS                                 |
      | s1     | 02-AA-00-00-00-0A, 02aa.0000.000b    |
    Then the status branch shows for server "s1": "macAddress: 02:aa:00:00:00:0a identifiedBy: Git"
    And the status branch shows for server "s1": "identifiedBy: BMC"
    And "ingot explain" shows for server "s1": "02:aa:00:00:00:0a, 02:aa:00:00:00:0b (Git)"
    And nothing happens to "s1"

  Scenario Outline: a list that <FLAW> does not count
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    When the servers are committed
      | SERVER | MACS              |
      | s1     | <MACS>            |
      | s2     | 02:aa:00:00:00:0b |
    Then the status branch shows in the problems: "<PROBLEM>"
    And "s1" does not have the MAC address "02:aa:00:00:00:0a"
    And nothing happens to "s1, s2"

    Examples:
      | FLAW                | MACS                                 | PROBLEM                                                      |
      | holds a wrong one   | 02:aa:00:00:00:0a, 02:aa:00:00:00    | want MAC addresses such as 00:1a:2b:3c:4d:5e                 |

    @long
    Examples:
      | FLAW                | MACS                                 | PROBLEM                                                      |
      | holds a group's     | 02:aa:00:00:00:0a, 01:00:5e:00:00:01 | want the address of one device                               |
      | names another's too | 02:aa:00:00:00:0a, 02aa0000000b      | has the MAC address 02:aa:00:00:00:0b of Server s2           |

  Scenario: where its BMC shows none, those count that its firmware was seen to ask with
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the machines
      | SERVER        | BMC  | FAULT       |
      | bmc1-system-0 | bmc1 | macs-hidden |
    And the firmware of "bmc1-system-0" asks for its address on the network
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And the status branch shows for server "bmc1-system-0": "identifiedBy: sighting"
    When the claims are committed
      | CLAIM | SERVER        |
      | web   | bmc1-system-0 |
    Then claim "web" is Booted on "bmc1-system-0"

  Scenario: another card that asks as the server makes it ambiguous, until Git says which is its own
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the machines
      | SERVER        | BMC  | FAULT       |
      | bmc1-system-0 | bmc1 | macs-hidden |
    And the firmware of "bmc1-system-0" asks for its address on the network
    And device "neighbour" asks what to boot whenever "bmc1-system-0" does
    When BMC "bmc1" is committed
    Then the status branch shows for server "bmc1-system-0": "MachineAmbiguous"
    And "bmc1-system-0" is powered Off
    When the servers are committed
      | SERVER        | MACS    |
      | bmc1-system-0 | its own |
    Then "bmc1-system-0" is Available
    And the status branch shows for server "bmc1-system-0": "identifiedBy: Git"
