Feature: A claim is Booted when its server says so, and never by time alone
  (law 1) What was served to a server may be installed there: one that says nothing is left
  to its disk, and is not Ready.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" suffers from "bootstate-silent"

  Scenario: one that does not report is Unconfirmed, and is told what to add
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then claim "web" is Unconfirmed on "s1"
    And the status branch shows for claim "web": "ingot/booted: served"
    And "s1" was powered on once, installed once and wiped 0 times

  Scenario: it is taken for installed: after a power cut it boots from its disk
    Given the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And claim "web" is Unconfirmed on "s1"
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times
    And claim "web" is Unconfirmed on "s1"

  @long
  Scenario: it stays so over a lost store
    Given the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And claim "web" is Unconfirmed on "s1"
    And the status branch shows for claim "web": "Unconfirmed"
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then claim "web" is Unconfirmed on "s1"
    And nothing happens to "s1"

  Scenario: a late report makes it Booted
    Given "s1" no longer suffers from "bootstate-silent"
    And what machines report is lost
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And claim "web" is Unconfirmed on "s1"
    When what machines report arrives again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1"

  @long
  Scenario: a claim may say that having been served its Ignition is enough
    When the claims are committed
      | CLAIM | SERVER | BOOTED |
      | web   | s1     | served |
    Then claim "web" is Booted on "s1"
    And "s1" was powered on once, installed once and wiped 0 times

  @long
  Scenario: it may say so afterwards
    Given the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And claim "web" is Unconfirmed on "s1"
    When the claims are committed
      | CLAIM | BOOTED |
      | web   | served |
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1"

  @long
  Scenario: or that its kernel is, which is all that some installers fetch
    Given "s1" suffers from "configures-itself"
    And "s1" boots from the network first
    And the claims are committed
      | CLAIM | SERVER | BOOTED |
      | web   | s1     | kernel |
    And claim "web" is Booted on "s1"
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    And "s1" was powered on once, installed 0 times and wiped 0 times
    And claim "web" is Booted on "s1"
