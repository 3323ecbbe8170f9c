Feature: What is wrong in Git stays where it is wrong

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"

  Scenario: a broken manifest delays nobody else
    (law 4)
    When claim "db" is committed with a mistake
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s2     |
    Then claim "shop" is Booted on "s2"
    And the status branch shows in the problems: "claims/db.yaml"
    And nothing happens to "s1"

  @long
  Scenario: an ignore file takes nothing away that is in force
    (law 1)
    When a commit names the folder of the claims in the ignore file
    Then the status branch shows in the problems: "is left out by .ingotignore, but what it defined is in force and stays so"
    And nothing happens to "s1"
    When claim "web" is removed
    Then "s1" is Available

  @git @long
  Scenario: large files delay nobody else, and are never held in memory
    (law 4, G06)
    When a commit adds a file of 1000 MB, a manifest of 2 MB and the claims
      | CLAIM | SERVER |
      | shop  | s2     |
    Then claim "shop" is Booted on "s2"
    And the status branch shows in the problems: "is larger than 1 MiB"
    And nothing happens to "s1"
    And Ingot never held more than 300 MB in memory

  Scenario: a claim whose manifest breaks keeps its server
    (law 1: it is no deletion)
    When claim "web" is committed with a mistake
    Then the status branch shows in the problems: "claims/web.yaml"
    And nothing happens to "s1"
    And claim "web" is Booted on "s1"

  Scenario: a name that is taken twice keeps what was there first
    When claim "web" is committed a second time, for "s2"
    Then the status branch shows in the problems: "claims/again/web.yaml"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: an emptied repository deletes nothing
    (law 1)
    When a commit empties the repository
    Then the status branch shows in the revision: "EmptySource"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: a rewritten history deletes nothing
    (law 1)
    When the history is rewritten without claim "web"
    Then the status branch shows in the revision: "HistoryRewritten"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: a BMC that leaves Git leaves its server as it is
    When BMC "bmc-s1" is removed
    Then the status branch shows for server "s1": "Orphaned"
    And nothing happens to "s1"
    And BMC "bmc-s1" has no session

  Scenario: a server that nobody has is forgotten some time after its BMC left Git
    When BMC "bmc-s2" is removed
    And server "s2" is taken out of Git
    Then server "s2" is forgotten
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then nothing happens to "s1, s2"
    And server "s2" is forgotten
    When the servers are committed
      | SERVER |
      | s2     |
    And BMC "bmc-s2" is committed
    Then "s2" is Available

  @long
  Scenario: a server with something on its disks is forgotten once a person says so
    (law 1)
    When BMC "bmc-s1" is removed
    And claim "web" is removed
    Then the status branch shows for server "s1": "its disks may hold what claim default/web left there"
    And "ingot explain" shows for server "s1": "give Server s1 annotation metal.ironcore.dev/operation: forget#1"
    When the servers are committed
      | SERVER | OPERATION |
      | s1     | forget#1  |
    Then server "s1" is forgotten
    And nothing happens to "s1, s2"
