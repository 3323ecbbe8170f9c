Feature: A ServerReadinessRule keeps new claims off servers until its conditions hold

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |

  Scenario: a server is offered once a commit sets the label, and until then the claim says why
    Given ServerReadinessRule "burn-in" is committed, Continuous
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "2 servers: 2 tainted by ServerReadinessRule burn-in"
    And the status branch shows for server "s2": "passed is Unknown and has to be True"
    And "ingot explain" shows for server "s2": "ServerReadinessRule burn-in"
    And nothing happens to "s1, s2"
    When the servers are committed
      | SERVER | BURN-IN |
      | s2     | true    |
    Then claim "web" is Booted on "s2"
    And nothing happens to "s1"

  Scenario: what is bound is left alone when its conditions hold no more
    Given claim "web" runs on "s1"
    When ServerReadinessRule "burn-in" is committed, Continuous
    Then the status branch shows for server "s1": "passed is Unknown and has to be True"
    And claim "web" is Booted on "s1"
    And nothing happens to "s1, s2"

  Scenario: a BootstrapOnly rule is done for a server for good
    Given the servers are committed
      | SERVER | BURN-IN |
      | s1     | true    |
    And ServerReadinessRule "burn-in" is committed, BootstrapOnly
    And the status branch shows for server "s1": "bootstrap-completed-burn-in"
    And the servers are committed
      | SERVER | BURN-IN |
      | s1     |         |
    When the claims are committed
      | CLAIM |
      | web   |
      | db    |
    Then claim "db" is Booted on "s1"
    And claim "web" is Unbound
    And the status branch shows for claim "web": "1 tainted by ServerReadinessRule burn-in"
    And nothing happens to "s2"

  Scenario: a rule that is removed keeps nobody off
    Given ServerReadinessRule "burn-in" is committed, Continuous
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "server s1 is tainted by ServerReadinessRule burn-in"
    When ServerReadinessRule "burn-in" is removed
    Then claim "web" is Booted on "s1"
