Feature: Where Ingot does not see leases, a boot ticket is its first client's

  Background:
    Given Ingot is configured so that boot tickets are bound to their first client
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" suffers from "hang-after-kernel"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching kernel"

  Scenario Outline: another client is refused the <THING>
    When a stranger asks for the <THING> of "s1"
    Then it is refused with 403
    And the metrics count a refused <THING> for "WrongAddress"

    Examples:
      | THING       |
      | iPXE script |
      | Ignition    |
