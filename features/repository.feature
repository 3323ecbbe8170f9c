Feature: A repository is begun

  Scenario: what "ingot init" makes is a repository that Ingot follows
    Given the repository is what "ingot init" makes
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the status branch says of the problems: "problems: []"
