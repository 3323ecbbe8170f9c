Feature: Secrets cannot be guessed from Git
  (law 5) The status branch says of each server what was installed, by a digest under a key
  that only Ingot has: a guess of a weak password in somebody's Ignition is not confirmed.

  Scenario: what a claim boots is shown by no digest that others could compute
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    When claim "web" runs on "s1"
    Then what claim "web" boots is shown by no digest that others could compute

  Scenario: a key that is lost with the store has no machine reinstalled
    (law 1)
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claims "web, db" run on "s1, s2"
    And the status branch shows that
    When Ingot is killed, the store and the seal key are lost, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2"
    And claims "web, db" ask for nothing but what is installed
