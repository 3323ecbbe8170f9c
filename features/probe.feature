Feature: Nobody boots or reports what is not theirs
  (law 5)

  Scenario: a probe that reports as another server is not heard
    Given the machines
      | SERVER        | BMC  | FAULT            |
      | bmc1-system-0 | bmc1 |                  |
      | bmc2-system-0 | bmc2 | probe-other-uuid |
    When BMC "bmc1" is committed
    And BMC "bmc2" is committed
    Then "bmc1-system-0" is Available
    And reports of "bmc2-system-0" are refused
    And "bmc2-system-0" is Discovery

  Scenario Outline: a report that <FLAW> is refused
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    When a report for "s1" that <FLAW> is sent
    Then it is refused with <CODE>
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

    Examples:
      | FLAW                            | CODE |
      | bears no token                  | 403  |

    @long
    Examples:
      | FLAW                            | CODE |
      | bears the token of "s2"         | 403  |
      | bears the token of its discovery | 403 |
      | bears a token that was made up  | 403  |
      | is too large                    | 413  |
      | is malformed                    | 400  |

  Scenario: Ignition is given to nobody with another's token
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "db" runs on "s2"
    And "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    When Ignition of "s1" is asked for with the token of "s2"
    Then it is refused with 403

  Scenario: Ignition is given out no more once a server has booted
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    When Ignition of "s1" is asked for with the token of "s1"
    Then it is refused with 403
