Feature: Programs read the fleet by the API

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: servers are selected by labels and by any short text
    When the claims are committed
      | CLAIM | RACK |
      | web   | 8    |
    Then claim "web" is Booted on "s2"
    And the API lists the servers with labelSelector "rack=8": "s2"
    And the API lists the servers with q "available": "s1"
    And the API lists the servers with q "default/web": "s2"

  Scenario: an invalid query lists the valid parameters
    Then the API refuses the servers with state "Available": "labelSelector"

  Scenario: an unchanged list is not sent again
    Then the API sends the servers once, and again only when one changed

  Scenario: a watcher receives updates of a claim
    Given a client watches the API
    When the claims are committed
      | CLAIM |
      | web   |
    Then the watcher receives claim "web" as Booted

  Scenario: a watcher reconnects after a restart
    Given a client watches the API
    When Ingot is stopped and started again
    And the claims are committed
      | CLAIM |
      | web   |
    Then the watcher receives claim "web" as Booted
