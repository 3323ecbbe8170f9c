Feature: Ingot may be killed at any moment and ends where it would have
  (the points within Ingot, at each effect and each save, are enumerated by the test of
  kill points; here are moments of the machine)

  Background:
    Given Ingot is configured so that it keeps its default intervals
    And the servers
      | SERVER | STATE     |
      | s1     | Available |

  Scenario Outline: killed in a claim, once <MOMENT>
    When claim "web" is committed, and Ingot is killed once <MOMENT> and started again
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

    Examples:
      | MOMENT                       |
      | the boot script is served    |
      | Ignition is served           |

  Scenario: killed when its server is powered on, which then meets a closed port
    When claim "web" is committed, Ingot is killed once power-on is asked for, and started again once "s1" has given up
    Then claim "web" is Booted on "s1"
    And "s1" was powered on 2 times, installed once and wiped 0 times

  Scenario Outline: killed in a release, once <MOMENT>
    Given claim "web" runs on "s1"
    When claim "web" is removed, and Ingot is killed once <MOMENT> and started again
    Then "s1" is Available
    And "s1" is powered Off
    And the disk of "s1" is empty
    And "s1" was installed 0 times and wiped once

    Examples:
      | MOMENT                    |
      | the boot script is served |
      | the wipe is reported      |

  Scenario: killed again and again in a claim
    When claim "web" is committed, and Ingot is killed 6 times at random
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  @long
  Scenario: killed again and again in a release
    Given claim "web" runs on "s1"
    When claim "web" is removed, and Ingot is killed 6 times at random
    Then "s1" is Available
    And the disk of "s1" is empty
    And "s1" was installed 0 times and wiped once
