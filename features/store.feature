Feature: The store may die
  (law 3: no server changes hands or power)

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
    And claims "web, db" run on "s1, s2"

  Scenario: it is emptied under a running Ingot
    When the store is emptied
    Then nothing happens to "s1, s2, s3"
    And claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"

  Scenario: it is emptied while Ingot is down
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then claim "web" is not Unbound
    And claim "db" is not Unbound
    And nothing happens to "s1, s2, s3"

  Scenario: it is emptied under a running Ingot that then dies
    When the store is emptied
    And Ingot is killed and started again
    Then claim "web" is not Unbound
    And claim "db" is not Unbound
    And nothing happens to "s1, s2, s3"

  Scenario: life goes on afterwards
    Given Ingot is killed, the store is emptied, and Ingot is started again
    When claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And "s1" is Available
    And the disk of "s1" is empty
    And nothing happens to "s2"

  Scenario: power that failed meanwhile comes back, from disk
    Given the status branch shows for claim "web": "state: Booted"
    When Ingot is killed, the store is emptied, and Ingot is started again
    And the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times
