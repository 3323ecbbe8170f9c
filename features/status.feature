Feature: The status branch is Ingot's own

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |

  Scenario: a commit of somebody else on it does no harm and does not stay
    Given somebody else commits to the status branch
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch is Ingot's again

  Scenario: a status branch that was deleted is written again
    Given somebody else deletes the status branch
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch is Ingot's again

  Scenario: a claim waits while the status branch cannot be written
    (law 3: it is written down before a machine is touched)
    Given the status branch is protected
    When the claims are committed
      | CLAIM |
      | web   |
    Then Ingot says of server "s1": "WaitingForStatusBranch"
    When the status branch is no longer protected
    Then claim "web" is Booted on "s1"
    And the status branch is Ingot's again
    And "s1" was powered on once, installed once and wiped 0 times

  Scenario: an idle fleet costs no commit
    When Ingot has nothing to do
    Then the status branch stays as it is
