@git
Feature: An older commit changes nothing
  (law 1) A Git host that lags behind and catches up shows old commits again, one after the
  other. They have been acted upon, so nothing happens because of them.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
      | s4     | Available |
    And claim "web" runs on "s1"
    And claim "db" runs on "s2"
    And claim "shop" runs on "s4"
    And the branch has commit "C1", commit "C2" that disturbs every server, and commit "C3" that undoes it

  Scenario Outline: a Git host catches up, <WHILE>
    When the Git host shows "C1"
    Then Ingot ignores "C1" as older
    When Ingot is <WHILE>
    And the Git host shows "C2"
    Then Ingot ignores "C2" as older
    And nothing happens to "s1, s2, s3, s4"
    When the Git host shows "C3"
    Then Ingot has "C3" in force
    And nothing happens to "s1, s2, s3, s4"
    And claim "web" is Booted on "s1"
    When claim "web" is removed
    Then "s1" is Available

    Examples:
      | WHILE                     |
      | stopped and started again |

    @long
    Examples:
      | WHILE                                                    |
      | killed, the store is emptied, and Ingot is started again |

  Scenario: nothing is in force while a lost copy of the repository cannot be fetched again
    When the Git host shows "C1"
    And Ingot is killed, its copy of the repository is lost, and Ingot is started again
    Then Ingot ignores "C1" as older
    When the Git host shows "C2"
    Then Ingot ignores "C2" as older
    When the Git host shows "C3"
    Then Ingot has "C3" in force
    And nothing happens to "s1, s2, s3, s4"
    And claim "web" is Booted on "s1"

  Scenario: a new commit on top of an older one counts
    When the Git host shows "C2"
    Then Ingot ignores "C2" as older
    When a commit adds a file that is not a manifest
    Then the status branch shows for claim "web": "AbsentWithoutCommit"
    When the Git host shows "C3"
    Then Ingot has "C3" in force
    And nothing happens to "s1, s2, s4"
    And claim "web" is Booted on "s1"
