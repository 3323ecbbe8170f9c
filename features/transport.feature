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

    @long
    Examples:
      | TRANSPORT             |
      | SSH with a key        |
      | HTTPS as a GitHub App |
      | HTTPS through a proxy |

  Scenario Outline: a proxy that <DOES> is shown, and nothing happens meanwhile
    Given the repository is reached over HTTPS through a proxy
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    When the proxy <DOES>
    Then Ingot is not ready because of its "git", and says "<SAYS>"
    And nothing happens to "s1"
    When the proxy lets Ingot through
    And the claims are committed
      | CLAIM |
      | db    |
    Then claim "db" is Booted on "s2"

    Examples:
      | DOES            | SAYS          |
      | refuses Ingot   | Forbidden     |
      | does not answer | no answer for |
