Feature: An installed server is never installed again without a commit that names it

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"

  Scenario: after a power cut it is switched on, and boots from its disk
    (law 1)
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times
    And claim "web" is Booted on "s1"

  @long
  Scenario: even firmware that asks the network first finds nothing there to install
    (law 1)
    Given "s1" boots from the network first
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times

  Scenario: a claim that is switched off in Git is switched off
    When the claims are committed
      | CLAIM | POWER |
      | web   | Off   |
    Then "s1" is powered Off
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times
    And the disk of "s1" is as it was

  Scenario: a shutdown that was withdrawn cuts the power of nothing later
    Given "s1" suffers from "graceful-ignored"
    And the claims are committed
      | CLAIM | POWER |
      | web   | Off   |
    And "s1" was shut down
    When the claims are committed
      | CLAIM | POWER |
      | web   | On    |
    And "s1" no longer suffers from "graceful-ignored"
    Then nothing happens to "s1"
    And nothing happens to "s1"
    When the claims are committed
      | CLAIM | POWER |
      | web   | Off   |
    Then "s1" is powered Off
    And "s1" was shut down

  @long
  Scenario: a new image waits for leave
    (law 1)
    When the claims are committed
      | CLAIM | IMAGE       |
      | web   | newer-linux |
    Then the status branch shows for claim "web": "PendingReprovision"
    And nothing happens to "s1"

  Scenario: a new image is installed once the claim asks for it
    Given the claims are committed
      | CLAIM | IMAGE       |
      | web   | newer-linux |
    And the status branch shows for claim "web": "PendingReprovision"
    When the claims are committed
      | CLAIM | REPROVISION |
      | web   | monday      |
    Then "s1" runs image "newer-linux"
    And claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

  Scenario: a power cycle that Git asks for is done once
    When the servers are committed
      | SERVER | OPERATION            |
      | s1     | power-cycle-server#1 |
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times

  Scenario: a server under maintenance is switched off, and comes back as it was
    When maintenance of "s1" is committed
    Then "s1" is Maintenance
    And "s1" is powered Off
    When maintenance of "s1" is removed
    Then "s1" runs from its disk again
    And claim "web" is Booted on "s1"
    And "s1" was powered on once, installed 0 times and wiped 0 times

  @long
  Scenario: maintenance of a server that is not known is told, with the name that may be meant
    When maintenance of "s11" is committed
    Then the status branch shows in the problems: "server s11 is not known, did you mean"
    And nothing happens to "s1"

  Scenario: a restarted Ingot changes nothing
    When Ingot is stopped and started again
    Then nothing happens to "s1"
    And claim "web" is Booted on "s1"
