Feature: A server is told what its boot ticket allows, and nothing else

  Background:
    Given the networks
      | NETWORK | FOR     | ADDRESSES | REFUSES  |
      | rack1   | servers | 2         | 02:de:ad |
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |

  Scenario Outline: with a ticket, <FIRMWARE> is told <FILE>
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    When "s1" asks what to boot, as <FIRMWARE>
    Then it receives <FILE>

    Examples:
      | FIRMWARE         | FILE                   |
      | BIOS             | undionly.kpxe by TFTP  |

    @long
    Examples:
      | FIRMWARE         | FILE                   |
      | UEFI x64         | ipxe.efi by TFTP       |
      | UEFI arm64       | snp-arm64.efi by TFTP  |
      | UEFI x64 by HTTP | ipxe.efi by HTTP       |
      | iPXE             | its own script by HTTP |

  Scenario: a long option that a relay adds takes nothing from the answer
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    And "s1" is plugged in to a port with a name of 240 bytes
    When "s1" asks what to boot, as UEFI x64
    Then it receives ipxe.efi by TFTP

  Scenario: a machine that takes the address of another DHCP server is noticed
    (it may boot what that server says)
    When "s1" asks another DHCP server what to boot, as UEFI x64
    Then the log says "another DHCP server interferes with booting"
    And the log says "192.0.2.9"

  Scenario: a machine that is switched on before its binding is shown boots nothing
    (laws 2 and 3)
    Given "s1" boots from the network first
    When the status branch is protected
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And "ingot explain" shows for server "s1": "WaitingForStatusBranch"
    And the power button of "s1" is pressed
    Then "s1" was powered on once, installed 0 times and wiped 0 times
    When the power of "s1" is cut
    And the status branch is no longer protected
    Then claim "web" is Booted on "s1"
    And "s1" was powered on 2 times, installed once and wiped 0 times

  Scenario Outline: without a ticket, <FIRMWARE> is told nothing
    (and boots from its disk)
    When "s1" asks what to boot, as <FIRMWARE>
    Then it receives an address and no boot file

    Examples:
      | FIRMWARE         |
      | BIOS             |

    @long
    Examples:
      | FIRMWARE         |
      | UEFI x64 by HTTP |
      | iPXE             |

  Scenario: an installed server is told nothing
    (law 1)
    Given claim "web" runs on "s1"
    When "s1" asks what to boot, as UEFI x64
    Then it receives an address and no boot file

  Scenario: a machine that asks beside a server with a ticket is told nothing
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    When "s2" asks what to boot, as iPXE
    Then it receives an address and no boot file

  @long
  Scenario: a server that hangs says where
    Given "s1" suffers from "override-ignored"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And "s1" is powered On
    When "s1" asks what to boot, as UEFI x64
    Then the status branch shows for claim "web": "last seen asking DHCP"
    And the status branch shows for server "s1": "last seen: DHCP"
    And "ingot explain" shows for server "s1": "it received the name of its boot file and did not fetch it"

  @long
  Scenario: a server that hangs later says so
    Given "s1" suffers from "hang-after-kernel"
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then the status branch shows for server "s1": "last seen: kernel"
    And "ingot explain" shows for server "s1": "look at its memory and at its console"

  Scenario: a tenant's Ignition is given to nobody who lacks its token
    (law 5) Who forges a MAC address may take over a lease.
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    And "s1" is plugged in
    And "s2" is plugged in
    When Ignition of "s1" is asked for from the address of "s2"
    Then it is refused with 403
    When Ignition of "s1" is asked for from the address of "s1"
    Then it is refused with 403

  @long
  Scenario: what a network card asked, and how it was answered, is one timeline
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    When "s1" asks what to boot, as iPXE
    And Ignition of "s1" is asked for from the address of "s1"
    Then "ingot explain" shows for the network card of "s1"
      | BY     | ASKED            | RESULT   | ANSWER               |
      | DHCPv4 | DISCOVER by ipxe | answered | boots its script     |
      | DHCPv4 | REQUEST by ipxe  | served   | boots its script     |
      | HTTP   | Ignition         | refused  | the token is missing |

  Scenario: a MAC address that is refused gets nothing
    Then device "02:de:ad:00:00:01" gets no address
    And device "02:de:ae:00:00:01" is plugged in

  @long
  Scenario: a network without addresses says so
    (H17: and nobody loses one)
    Given "s1" is plugged in
    And "s2" is plugged in
    Then device "camera" gets no address
    And the status branch shows in the revision: "none of the 2 addresses of its range is left"
    And the status branch shows in the README: "DHCP network rack1"
    And the metrics show network "rack1" as full
    When "s1" asks for an address again
    Then "s1" has the address that it had
