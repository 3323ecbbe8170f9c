Feature: A new release goes on where the old one stopped
  (laws 1 and 3) An older release left servers "s1" and "s2" to claims "web" and "db", a
  power cycle of "s2" that is done, "s3" Released as it was, "s4" Available, and "s5" found
  running.

  Scenario: it touches no machine, and serves what is committed then
    Given the fleet that an older release left
    When Ingot starts
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And "s3" is Released
    And "s4" is Available
    And nothing happens to "s1, s2, s3, s4, s5"
    When claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s4     |
    Then "s1" is Available
    And the disk of "s1" is empty
    And claim "shop" is Booted on "s4"
    And nothing happens to "s2, s3, s5"

  Scenario: nor does it when only the status branch is left
    Given the fleet that an older release left, which has lost its store since
    When Ingot starts
    Then claim "web" is not Unbound
    And claim "db" is not Unbound
    And "s3" is Released
    And nothing happens to "s1, s2, s3, s4, s5"
