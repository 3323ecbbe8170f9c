Feature: A removal is a commit, never an absence
  (law 1) What is merely absent, because history was rewritten or Ingot looks elsewhere,
  stays in force, is listed, and goes only by approval.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"

  Scenario: the commit after a rewritten history removes nothing
    When the history is rewritten without claim "web"
    And a commit adds a file that is not a manifest
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  @long
  Scenario: nor does the commit after an older head that was pushed
    When the history is rewritten to end before claim "web"
    And a commit adds a file that is not a manifest
    Then nothing happens to "s1, s2"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  @long
  Scenario: a rewritten history changes the power of nothing
    When the history is rewritten with claim "web" switched Off
    And a commit adds a file that is not a manifest
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: what is absent goes once a commit approves that
    Given the history is rewritten without claim "web"
    And the status branch shows for claim "web": "AbsentWithoutCommit"
    When a commit approves what is absent
    Then "s1" is Available
    And the disk of "s1" is empty
    And the status branch does not mention claim "web"

  Scenario: what comes back is no longer absent
    Given the history is rewritten without claim "web"
    And the status branch shows for claim "web": "AbsentWithoutCommit"
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
    When claim "web" is removed
    Then "s1" is Available

  Scenario: a rewritten history and a lost copy of it remove nothing
    Given the history is rewritten without claim "web"
    And the status branch shows for claim "web": "AbsentWithoutCommit"
    When Ingot is killed, its copy of the repository is lost, and Ingot is started again
    Then nothing happens to "s1, s2"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  Scenario: a history that was rewritten while Ingot was down removes nothing
    When Ingot is killed, the history is rewritten without claim "web", and Ingot is started again
    And a commit adds a file that is not a manifest
    Then nothing happens to "s1, s2"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  @long
  Scenario: another branch removes nothing
    Given branch "other" has all but claim "web"
    When Ingot is started again for branch "other"
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  @long
  Scenario: another folder removes nothing
    When Ingot is started again for folder "servers"
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
    And the status branch shows for claim "web": "AbsentWithoutCommit"

  @long
  Scenario: another branch that has the same asks for nothing
    Given branch "other" has everything
    When Ingot is started again for branch "other"
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: a lost copy of the repository removes nothing, and what was removed stays so
    When Ingot is killed, its copy of the repository is lost, and Ingot is started again
    Then nothing happens to "s1, s2"
    When claim "web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  @long
  Scenario: a renamed claim keeps its server
    When claim "web" is renamed "shop"
    Then claim "shop" is Booted on "s1"
    And nothing happens to "s1, s2"
    And the status branch does not mention claim "web"

  Scenario: claims that get the names of one another in one commit keep their servers
    Given claim "db" runs on "s2"
    When claims "web, db" are renamed "db, shop"
    Then claim "db" is Booted on "s1"
    And claim "shop" is Booted on "s2"
    And nothing happens to "s1, s2"
    And the status branch shows in the problems: "problems: []"

  Scenario Outline: a claim whose file <LOSES> stays until a commit deletes the file
    When the file of claim "web" <LOSES>
    Then the status branch shows in the problems: "<PROBLEM>"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

    Examples:
      | LOSES                    | PROBLEM   |
      | is emptied               | is empty  |
      | moves to a hidden folder | is hidden |

    @long
    Examples:
      | LOSES                    | PROBLEM     |
      | becomes a folder         | is a folder |

  Scenario: the deletion of an empty file releases the server
    Given the file of claim "web" is emptied
    And the status branch shows in the problems: "is empty"
    When the file of claim "web" is deleted
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: a file that is no manifest holds up nobody
    (law 4)
    Given a commit adds a file that cannot be a manifest
    When claim "web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  @redis
  Scenario: an Ingot that takes over after a history was rewritten removes nothing
    When the history is rewritten without claim "web"
    Then the status branch shows for claim "web": "AbsentWithoutCommit"
    When another Ingot is on standby
    And the Ingot that leads is killed
    Then nothing happens to "s1, s2"
    And the status branch shows for claim "web": "AbsentWithoutCommit"
