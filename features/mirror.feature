Feature: What is asked for is written down before a machine is touched
  (laws 1 and 3) Ingot may die, and its store with it, at any moment.

  Background:
    Given Ingot is configured so that it keeps its default intervals
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |

  Scenario Outline: a claim is never on two machines, though the store is lost once <MOMENT>
    When claim "web" is committed, and Ingot is killed once <MOMENT> and started again without its store
    Then the disk of one server holds claim "web", or Ingot reports that this is unknown
    And it is not installed anywhere else

    Examples:
      | MOMENT                     |
      | its binding is stored      |

    @long
    Examples:
      | MOMENT                     |
      | power-on is asked for      |
      | Ignition is served         |
      | the boot state is reported |
      | it is Booted               |

  @long
  Scenario: a server keeps its claim, though the store is lost at once
    When claim "web" is committed, and Ingot is killed once it is Booted and started again without its store
    Then claim "web" is not Unbound
    And the disk of one server holds claim "web"

  Scenario: an older copy of the store costs no server its claim, though nobody waited for the status branch
    Given the store is copied
    And claim "web" runs on "s1"
    When Ingot is killed, the copy of the store is put back, and Ingot is started again
    Then claim "web" is not Unbound
    And nothing happens to "s1, s2"

  Scenario: while the status branch cannot be written nothing is released
    Given claim "web" runs on "s1"
    When the status branch is protected
    And claim "web" is removed
    Then Ingot is not ready because of its "status"
    And the metrics show since when the status branch is not written
    And "ingot explain" shows for server "s1": "WaitingForStatusBranch"
    And nothing happens to "s1, s2"
    When the status branch is no longer protected
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: nor is anything bound, restarted or switched off
    Given claim "web" runs on "s1"
    When the status branch is protected
    And the claims are committed
      | CLAIM | SERVER | POWER |
      | web   | s1     | Off   |
      | db    | s2     | On    |
    And the servers are committed
      | SERVER | OPERATION            |
      | s1     | power-cycle-server#1 |
    Then "ingot explain" shows for server "s1": "WaitingForStatusBranch"
    And nothing happens to "s1, s2"

  @long
  Scenario: what runs has its power healed all the same
    Given claim "web" runs on "s1"
    When the status branch is protected
    And claim "web" is removed
    And the power of "s1" is cut
    Then "s1" runs from its disk again

  @long
  Scenario: an older copy of the store does not win because power was restored by it
    Given Ingot is configured so that power may be restored without the status branch
    And claim "web" runs on "s1"
    And the store is copied
    And claim "web" is removed
    And "s1" is Available
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s1     |
    And claim "db" is Booted on "s1"
    And the status branch shows that
    When Ingot heals the power of "s1" by the copy of the store until the Git host is back
    Then claim "db" is Booted on "s1"
    And the disk of one server holds claim "db"

  @long
  Scenario: what was done while the status branch was protected is not undone by a lost store
    Given claim "web" runs on "s1"
    And the status branch is protected
    And claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    When Ingot is killed, the store is emptied, and Ingot is started again
    And the status branch is no longer protected
    Then "s1" is Available
    And claim "db" is Booted on "s2"
    And the disk of one server holds claim "db"

  Scenario: an install that the status branch does not show is not repeated
    When claim "web" is committed, and the status branch is protected once Ignition is served
    And claim "web" is Booted on "s1"
    And Ingot is killed, the store is emptied, and Ingot is started again
    And the status branch is no longer protected
    Then "s1" was powered on once, installed once and wiped 0 times
    And the disk of one server holds claim "web"
