Feature: A server is given what its own boot ticket stands for
  (law 5) UUIDs are no secret, and on one segment everybody hears everybody.

  Background:
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And "s1" suffers from "hang-after-kernel"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching kernel"
    And "s1" is plugged in
    And "s2" is plugged in

  Scenario Outline: another server's <THING> is refused
    When "s2" asks for the <THING> of "s1"
    Then it is refused with 403
    And the status branch shows for server "s1": "its MAC address is another server's"
    And the metrics count a refused <THING> for "OtherServer"
    When "s1" asks for the <THING> of "s1"
    Then it is answered

    Examples:
      | THING       |
      | iPXE script |

    @long
    Examples:
      | THING       |
      | Ignition    |
      | image       |
      | boot state  |

  Scenario: another server's script is refused while Ingot starts
    When Ingot is killed, and "s2" asks for the iPXE script of "s1" until it has started again
    Then it is refused with 403

  Scenario: who asked is told by name
    When "s2" asks for the Ignition of "s1"
    Then it is refused with 403
    And "ingot explain" shows for server "s1": "refused: its MAC address is another server's"

  Scenario: a token that was made up is refused, and counted
    When "s1" asks for the Ignition of "s1", with a token that was made up
    Then it is refused with 403
    And the metrics count a refused Ignition for "WrongToken"

  Scenario: the token on a kernel's command line fetches, and reports nothing
    When "s1" asks for the boot state of "s1", with the token of its command line
    Then it is refused with 403
    And the metrics count a refused boot state for "WrongToken"
    When "s1" asks for the Ignition of "s1"
    Then it is answered

  Scenario: what a ticket gave is not given once it is spent
    Given "s1" knows what it is to boot
    And claim "web" is removed
    And "s1" no longer suffers from "hang-after-kernel"
    And "s1" is Available
    When "s1" asks for the Ignition of "s1", with the token that it had
    Then it is refused with 403
    And the metrics count a refused Ignition for "Spent"
