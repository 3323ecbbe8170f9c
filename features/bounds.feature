Feature: What the world reports does not make the status branch unreadable
  (laws 3 and 4) Documents are bounded when they are written.

  Scenario: a probe that sees more neighbours than a switch has ports
    Given the probe of a server reports 1500 neighbours
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claims "web, db" run on "s1, s2"
    And the status branch shows that
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2"
