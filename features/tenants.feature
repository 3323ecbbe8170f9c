Feature: A tenant's releases hold up nobody else's
  (laws 2 and 4) The guard leaves room for claims of other namespaces.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
      | s4     | Available |
    And claims "shop/a, shop/b, shop/c, db" run on "s1, s2, s3, s4"

  Scenario: what is too much of one namespace is held back, and another's is done
    When claims "shop/a, shop/b, shop/c" are removed
    Then the guard holds 3 releases back
    When claim "db" is removed
    Then "s4" is Available
    And the disk of "s4" is empty
    And nothing happens to "s1, s2, s3"

  Scenario: what one namespace did leaves room for another's
    When claims "shop/a, shop/b" are removed
    And "s1, s2" are Available
    And claim "shop/c" is removed
    Then the status branch shows for server "s3": "GuardHeld"
    When claim "db" is removed
    Then "s4" is Available
    And nothing happens to "s3"
