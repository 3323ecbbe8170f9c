Feature: A tenant's file stays a tenant's file
  (laws 1, 4 and 5) Who may merge below a folder asks for what its tenant may have, and for nothing else.

  Background:
    Given the tenants
      | TENANT | RACK |
      | alpha  | 7    |
      | beta   |      |
    And the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: a claim in another tenant's namespace does not count
    When claim "alpha/web" is committed below the folder of "beta"
    Then the status branch shows in the problems: "below claims/beta only namespace beta (git.tenants), not alpha"
    And nothing happens to "s1, s2"

  Scenario: a BMC in a tenant's folder does not count, and no password is sent to it
    Given a stranger listens at "127.0.0.9"
    When BMC "own" at the stranger's port is committed below the folder of "alpha", with the secret of BMC "bmc-s1"
    Then the status branch shows in the problems: "below claims/alpha only ServerClaim, Secret (git.tenants)"
    And the stranger receives no connection

  Scenario: a tenant's claims get the servers that are for it
    When the claims are committed
      | CLAIM   |
      | alpha/a |
      | alpha/b |
    Then claim "alpha/a" is Booted on "s1"
    And the status branch shows in the README: "1 not for claims/alpha (git.tenants)"
    And "ingot explain" shows for claim "alpha/b": "claims/alpha: kinds ServerClaim, Secret; namespaces alpha; servers with rack=7"
    And nothing happens to "s2"

  Scenario: a claim that another tenant writes down as well goes when its own tenant removes it
    Given claim "alpha/web" runs on "s1"
    When claim "alpha/web" is committed below the folder of "beta"
    Then the status branch shows in the problems: "below claims/beta only namespace beta (git.tenants), not alpha"
    When claim "alpha/web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: a tenant's file that cannot be read holds up no other tenant's release
    Given claim "alpha/web" runs on "s1"
    When a commit adds an unreadable manifest below the folder of "beta"
    And claim "alpha/web" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: what does not count any more stays as it is
    Given claim "beta/web" runs on "s1"
    When Ingot is started again with the tenants
      | TENANT | NAMESPACE |
      | beta   | sales     |
    Then the status branch shows in the problems: "below claims/beta only namespace sales (git.tenants), not beta"
    And the status branch shows for server "s1": "ClaimQuarantined"
    And nothing happens to "s1"

  Scenario: a claim that one tenant removes and another adds is not handed over
    Given Ingot is started again with the tenants
      | TENANT | NAMESPACE | RACK |
      | alpha  | shared    | 7    |
      | beta   | shared    |      |
    And claim "shared/web" is committed below the folder of "alpha"
    And claim "shared/web" is Booted on "s1"
    When a pull request has the commits
      | REMOVES    | FROM  | ADDS       | TO   |
      | shared/web | alpha |            |      |
      |            |       | shared/web | beta |
    And it is merged commit by commit
    Then claim "shared/web" is Booted on "s2"
    And "s1" is Available
    And the disk of "s1" is empty

  Scenario: a tenant hands a claim over by a commit, with its consent
    Given Ingot is started again with the tenants
      | TENANT | NAMESPACE | RACK |
      | alpha  | shared    | 7    |
      | beta   | shared    |      |
    And claim "shared/web" is committed below the folder of "alpha"
    And claim "shared/web" is Booted on "s1"
    When a pull request has the commits
      | REMOVES    | FROM  | ADDS       | TO    | HANDED TO |
      |            |       | shared/web | alpha | beta      |
      | shared/web | alpha | shared/web | beta  | beta      |
    And it is merged commit by commit
    Then the status branch shows for server "s1": "tenant: claims/beta"
    And nothing happens to "s1, s2"

  Scenario: the status branch says who may define what
    Then the status branch shows in the revision: "path: claims/alpha"
