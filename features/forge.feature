Feature: The Git host tells of pushes, and is told what became of them

  Scenario Outline: a push that <HOST> announces is in force at once, and its commit says so
    Given the repository is at <HOST>, and polled once an hour
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the newest commit is a success: "in force"
    When claim "db" is committed with a mistake
    Then the newest commit is a failure: "1 error, the first in claims/db.yaml:"
    And no commit has the same status twice

    Examples:
      | HOST    |
      | GitHub  |

    @long
    Examples:
      | HOST    |
      | GitLab  |
      | Gitea   |
      | Forgejo |

  @long
  Scenario: a push that somebody else announces does nothing
    Given the repository is at GitHub, and polled once an hour
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And pushes are announced with another secret
    When the claims are committed
      | CLAIM |
      | web   |
    Then the announcement is refused, and the repository was not polled
    When pushes are announced with the right secret
    And a commit adds a file that is not a manifest
    Then claim "web" is Booted on "s1"

  @long
  Scenario: what was said of a commit is not said again after a restart
    Given the repository is at Forgejo, and polled once an hour
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And the newest commit is a success: "in force"
    And Ingot has nothing to do
    When Ingot is killed and started again
    And Ingot has nothing to do
    And the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the newest commit is a success: "in force"
    And no commit has the same status twice

  @long
  Scenario: a Git host that is asked too often is left alone, and told later
    (G12)
    Given the repository is at GitLab, and polled once an hour
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And the newest commit is a success: "in force"
    When the Git host takes no commit status for now
    And the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s1"
    And the newest commit is a success: "in force"
    And the Git host was asked at most 10 times

  Scenario Outline: a status branch that the Git host refuses is said once, and not pushed all the time
    (S03 and S07: with what the Git host says)
    Given the repository is at Gitea, and polled once an hour
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And the Git host <REFUSES>
    When the claims are committed
      | CLAIM |
      | web   |
    Then "ingot explain" shows for server "s1": "WaitingForStatusBranch"
    And Ingot reports once, and as long as it is so, that the status branch is refused: "<TEXT>"
    When the Git host takes the status branch again
    Then claim "web" is Booted on "s1"
    And the status branch has Ingot's files alone

    Examples:
      | REFUSES                             | TEXT                           |
      | protects the status branch          | this branch is protected       |

    @long
    Examples:
      | REFUSES                             | TEXT                           |
      | finds a secret on the status branch | holds what looks like a secret |
