Feature: The status branch is Ingot's own

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |

  Scenario: a commit of somebody else on it does no harm and does not stay
    Given the status branch is changed by another writer
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch has Ingot's files alone

  Scenario: a status branch that was deleted is written again
    Given the status branch is deleted
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch has Ingot's files alone

  Scenario: where no Ingot answers a clone of the repository says what is so
    Given claim "web" runs on "s1"
    Then without Ingot a clone shows claim "web" as Booted on "s1"

  Scenario: a claim waits while the status branch cannot be written
    (law 3: it is written down before a machine is touched)
    Given the status branch is protected
    When the claims are committed
      | CLAIM |
      | web   |
    Then "ingot explain" shows for server "s1": "WaitingForStatusBranch"
    When the status branch is no longer protected
    Then claim "web" is Booted on "s1"
    And the status branch has Ingot's files alone
    And "s1" was powered on once, installed once and wiped 0 times

  @long
  Scenario: the page says what a claim waits for and who has to act
    When the claims are committed
      | CLAIM | RACK |
      | web   | 9    |
    Then the status branch shows in the README: "| Unbound | | | | no server has label rack=9 (1 server)"
    And the status branch shows in the README: "| rack operator |"
    And the status branch shows in the picture of the racks: "<title>s1: Available</title>"

  @long
  Scenario: its history says who came to what
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch shows in its history: "default/web: Booted on s1"
    When claim "web" is removed
    Then "s1" is Available
    And the status branch shows in its history: "default/web: released s1"

  Scenario: an idle fleet costs no commit
    When Ingot has nothing to do
    Then the status branch stays as it is
