Feature: Ingot may be killed at any moment and ends where it would have

  Background:
    Given Ingot keeps its default intervals
    And the servers
      | SERVER | STATE     |
      | s1     | Available |

  Scenario Outline: killed in a claim, once <MOMENT>
    When claim "web" is committed, and Ingot is killed once <MOMENT> and started again
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

    Examples:
      | MOMENT                       |
      | its binding is stored        |
      | its image is looked up       |
      | the boot override is set     |
      | power-on is asked for        |
      | the boot script is served    |
      | the kernel is served         |
      | Ignition is served           |
      | the boot state is reported   |
      | it is Booted                 |

  Scenario Outline: killed in a release, once <MOMENT>
    Given claim "web" runs on "s1"
    When claim "web" is removed, and Ingot is killed once <MOMENT> and started again
    Then "s1" is Available
    And "s1" is powered Off
    And the disk of "s1" is empty
    And "s1" was installed 0 times and wiped once

    Examples:
      | MOMENT                    |
      | the release is decided    |
      | power-off is asked for    |
      | Cleanup has begun         |
      | the boot override is set  |
      | power-on is asked for     |
      | the boot script is served |
      | Ignition is served        |
      | the wipe is reported      |

  Scenario: killed again and again in a claim
    When claim "web" is committed, and Ingot is killed 6 times at random
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  Scenario: killed again and again in a release
    Given claim "web" runs on "s1"
    When claim "web" is removed, and Ingot is killed 6 times at random
    Then "s1" is Available
    And the disk of "s1" is empty
    And "s1" was installed 0 times and wiped once
