Feature: The status branch is the record
  (laws 1 and 3) At a start Ingot compares its store with the status branch, and one of them counts.

  @file
  Scenario: store and status branch are an hour old, and a server runs what neither knows
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And the store is copied, and the status branch with it
    And claim "web" runs on "s1"
    When Ingot is killed, both copies are put back after an hour, and Ingot is started again
    Then "ingot explain" shows for server "s1": "FoundRunning"
    And the status branch shows for claim "web": "FoundRunning"
    And nothing happens to "s1, s2"

  @file
  Scenario: store and status branch are an hour old, and a server runs another claim than they say
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the store is copied, and the status branch with it
    And claim "web" is removed
    And "s1" is Available
    And claim "db" runs on "s1"
    When Ingot is killed, both copies are put back after an hour, and Ingot is started again
    Then "ingot explain" shows for server "s1": "GuardHeld"
    And the status branch shows for claim "db": "GuardHeld"
    And nothing happens to "s1, s2"

  @file
  Scenario Outline: a rack's power returns, its free servers come up On, and Ingot with them after <MINUTES> minutes
    Given 20 servers
    When Ingot is killed, all servers are switched on, <MINUTES> minutes pass, and Ingot is started again
    Then all servers <END>

    Examples:
      | MINUTES | END                    |
      | 5       | are switched off again |

    @file @long
    Examples:
      | MINUTES | END                                             |
      | 60      | are found running, and are left alone           |
      | 60      | are switched off once a commit approves of them |

  @file
  Scenario: a status branch with an edited commit is written again from the store
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the status branch shows that
    When Ingot is killed, "s1" is edited out of the status branch, and Ingot is started again
    Then the log says "BranchEdited"
    And claim "web" is Booted on "s1"
    And nothing happens to "s1, s2"

  @file
  Scenario: the store is lost, the status branch lacks a server, and a person chooses
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claims "web, db" run on "s1, s2"
    And the status branch shows that
    When Ingot is killed, the store is lost, "s1" is edited out of the status branch, and Ingot is started again
    Then the log says "nothing is done until a person chooses"
    When a commit chooses the status branch
    Then claim "db" is Booted on "s2"
    And nothing happens to "s1, s2"

  @file
  Scenario: while a person's choice is awaited, the power of bound servers is restored
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the status branch shows that
    When Ingot is killed, the status branch is made by another, and Ingot is started again
    Then the log says "nothing is done until a person chooses"
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    When a commit chooses the store
    Then claim "web" is Booted on "s1"
    And "s1" was installed 0 times and wiped 0 times

  @file
  Scenario: a copy of the state folder takes over, and the one that had it before stays ended
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the status branch shows that
    When another Ingot is started with a copy of the state folder
    Then the first Ingot ends with exit code 4
    And nothing happens to "s1, s2"
    When the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And the first Ingot does not start again, with exit code 4
