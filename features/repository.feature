Feature: A repository is begun, and a fleet that runs is taken over

  Scenario: what "ingot init" makes is a repository that Ingot follows
    Given the repository is the result of "ingot init"
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch shows in the problems: "problems: []"

  Scenario: what metal-operator runs is taken over as it runs, and released as usual
    (law 1: nobody asked for anything)
    Given the repository is the result of "ingot import" of a cluster of metal-operator
      | SERVER | RUNS            | CLAIM    |
      | s1     | a tenant's disk | shop/web |
      | s2     | a tenant's disk | shop/db  |
      | s3     |                 |          |
    When Ingot starts
    Then claim "shop/web" is Booted on "s1"
    And claim "shop/db" is Booted on "s2"
    And "s3" is Available
    And nothing happens to "s1, s2"
    And the status branch shows in the problems: "problems: []"
    When claim "shop/web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty
    And nothing happens to "s2"
