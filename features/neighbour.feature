Feature: Nobody boots what is not theirs, by default
  (law 5) Where Ingot leases no addresses, who asks is told apart all the same, or refused.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And "s1" suffers from "hang-after-kernel"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching kernel"

  Scenario Outline: who cannot be told apart is refused the <THING>, whatever it knows
    When a stranger asks for the <THING> of "s1"
    Then it is refused with 403
    And the metrics count a refused <THING> for "CannotTell"
    And the status branch shows for server "s1": "nothing shows its MAC address"

    Examples:
      | THING       |
      | iPXE script |

    @long
    Examples:
      | THING       |
      | Ignition    |
      | image       |

  Scenario Outline: another server is refused the <THING>, whatever it knows
    When server "s2" asks for the <THING> of "s1" from its own address
    Then it is refused with 403
    And the metrics count a refused <THING> for "OtherServer"
    And the status branch shows for server "s1": "its MAC address is another server's"

    Examples:
      | THING       |
      | iPXE script |

    @long
    Examples:
      | THING       |
      | Ignition    |
      | boot state  |

  Scenario: a forged wipe is refused
    Given claim "web" is removed
    And the status branch shows for server "s1": "waiting for the wipe"
    When a stranger reports that "s1" is wiped
    Then it is refused with 403
    And the metrics count a refused wipe result for "CannotTell"
