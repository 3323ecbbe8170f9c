Feature: One Ingot acts
  (law 6) Whoever meets a newer fence stops before its next request to a BMC.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And the status branch shows that

  Scenario: a second Ingot with a store of its own does not start while the first lives
    When another Ingot with a store of its own is started
    Then it ends with exit code 4, and says "--take-over"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  @file
  Scenario: it takes over when it is told to, and the first ends
    When another Ingot with a store of its own is started to take over
    Then the first Ingot ends with exit code 4
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
    When the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"

  @file
  Scenario: a first Ingot that slept meanwhile does nothing when it wakes up
    When the Ingot that leads is suspended
    And another Ingot with a store of its own is started to take over
    And claim "web" is removed
    And "s1" is Available
    And the first Ingot goes on
    Then the first Ingot ends with exit code 4
    And nothing happens to "s2"
    And the disk of "s1" is empty

  Scenario: an ordinary restart needs nobody
    When Ingot is stopped and started again
    And Ingot is killed and started again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1, s2"
