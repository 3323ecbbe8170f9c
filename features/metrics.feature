Feature: Metrics say how long it takes, and what waits

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |

  Scenario: a boot is counted once, though Ingot is started again
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then claim "web" is Booted on "s1"
    And the metrics count 1 boot that is Booted
    When Ingot is stopped and started again
    Then claim "web" is Booted on "s1"
    And the metrics count 0 boots that are Booted

  Scenario: a server without a problem has one series for its state and one for its power state
    Then the only metrics of "s1" are state "Available" and power "Off"

  Scenario: what waits is named, with its reason
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s9     |
    Then claim "web" is Unbound
    And the metrics show claim "web" waiting for "ServerUnknown"
