Feature: The repository is reached as people keep theirs

  Scenario Outline: a claim that comes over <TRANSPORT> is served
    Given the repository is reached over <TRANSPORT>
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"

    Examples:
      | TRANSPORT             |
      | HTTPS with a password |
      | SSH with a key        |
