Feature: Programs read what Ingot knows of the fleet

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: servers are listed by state, label and claim
    When the claims are committed
      | CLAIM | RACK |
      | web   | 8    |
    Then claim "web" is Booted on "s2"
    And the API lists the servers with state "Available": "s1"
    And the API lists the servers with label "rack=8": "s2"
    And the API lists the servers with claim "default/web": "s2"

  Scenario: a question that cannot be answered says what can be asked
    Then the API refuses the servers with stat "Available": "did you mean state?"

  Scenario: what did not change is not sent again
    Then the API sends the servers once, and again only when one changed

  Scenario: who watches is told what becomes of a claim
    Given somebody watches the API
    When the claims are committed
      | CLAIM |
      | web   |
    Then the watcher is told that claim "web" is Booted

  Scenario: who watches goes on when Ingot was started again
    Given somebody watches the API
    When Ingot is stopped and started again
    And the claims are committed
      | CLAIM |
      | web   |
    Then the watcher is told that claim "web" is Booted
