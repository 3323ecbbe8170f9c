Feature: A server that no claim has boots once what a ServerBootConfiguration says

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |

  Scenario: it boots that once, and is wiped when the file is gone
    When boot configuration "burn-in" for "s1" is committed
    Then claim "ServerBootConfiguration default/burn-in" is Booted on "s1"
    And the status branch shows for boot configuration "burn-in": "Ready"
    And "s1" was powered on once, installed once and wiped 0 times
    When the power of "s1" is cut
    And Ingot has nothing to do
    Then "s1" is powered Off
    When boot configuration "burn-in" for "s1" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: what a claim says comes first
    Given claim "web" runs on "s1"
    When boot configuration "burn-in" for "s1" is committed
    Then claim "ServerBootConfiguration default/burn-in" is Unbound
    And the status branch shows for boot configuration "burn-in": "server s1 boots what ServerClaim default/web says"
    And nothing happens to "s1"
    When claim "web" is removed
    Then claim "ServerBootConfiguration default/burn-in" is Booted on "s1"
    And "s1" was installed once and wiped once

  Scenario: a lost store changes nothing for it
    Given boot configuration "burn-in" for "s1" is committed
    And claim "ServerBootConfiguration default/burn-in" is Booted on "s1"
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then claim "ServerBootConfiguration default/burn-in" is not Unbound
    And nothing happens to "s1"
