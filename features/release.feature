Feature: A server whose claim leaves Git is wiped before anybody else has it

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"

  Scenario: its disks are wiped, and then it is Available
    When claim "web" is removed
    Then "s1" is Available
    And "s1" is powered Off
    And "s1" was powered on once, installed 0 times and wiped once
    And the disk of "s1" is empty
    And the status branch does not mention claim "web"

  Scenario: a wipe that does not boot is tried three times, then the server is off and in Error
    (the firmware boots the disk of the former tenant instead)
    Given Ingot is configured so that a boot may take 4 seconds
    And "s1" suffers from "override-ignored"
    When claim "web" is removed
    Then "ingot explain" shows for server "s1": "in 3 attempts, it has not asked for its boot script"
    And "s1" is powered Off
    And the disk of "s1" is as it was

  Scenario: a wipe that fails ends in Error, with the disk's serial number
    Given "s1" suffers from "wipe-fails"
    When claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s1     |
    Then "s1" is in Error, and its status names the disk
    And claim "db" is Unbound

  Scenario: a server in Error is wiped again once Git asks for it
    Given "s1" suffers from "wipe-fails"
    And claim "web" is removed
    And "s1" is in Error, and its status names the disk
    And "s1" no longer suffers from "wipe-fails"
    When the servers are committed
      | SERVER | OPERATION |
      | s1     | retry#1   |
    Then "s1" is Available
    And the disk of "s1" is empty

  @long
  Scenario: a disk that the wipe does not see is an Error, though the wipe reports no failure
    Given "s1" suffers from "disk-hidden"
    When claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s1     |
    Then "s1" is in Error, and its status names the disk
    And claim "db" is Unbound

  @long
  Scenario: nor does asking for another wipe let it pass
    Given "s1" suffers from "disk-hidden"
    And claim "web" is removed
    And "s1" is in Error, and its status names the disk
    When the servers are committed
      | SERVER | OPERATION |
      | s1     | retry#1   |
    Then "s1" is wiped again, and is in Error

  @long
  Scenario: a person may say that it is to be passed over
    Given "s1" suffers from "disk-hidden"
    And claim "web" is removed
    And "s1" is in Error, and its status names the disk
    When the servers are committed
      | SERVER | DISKS       |
      | s1     | as-reported |
    Then "s1" is Available

  @long
  Scenario: a wipe says how far it is
    Given "s1" suffers from "wipe-hangs"
    When claim "web" is removed
    Then the status branch shows for server "s1": "percent: 50"
    And "s1" is Cleanup
    When "s1" no longer suffers from "wipe-hangs"
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: with Retain it is switched off and kept as it is
    Given the servers are committed
      | SERVER | RECLAIM |
      | s1     | Retain  |
    When claim "web" is removed
    Then "s1" is Released
    And "s1" is powered Off
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times
    And the disk of "s1" is as it was

  Scenario: what was to be kept is kept although the server leaves Git before that is done
    Given the servers are committed
      | SERVER | RECLAIM |
      | s1     | Retain  |
    And BMC "bmc-s1" suffers from "refuse"
    And claim "web" is removed
    And the status branch shows for server "s1": "release"
    And server "s1" is taken out of Git
    When BMC "bmc-s1" no longer suffers from "refuse"
    Then "s1" is Released
    And the disk of "s1" is as it was

  Scenario: a cordon does not disturb who is there
    When the servers are committed
      | SERVER | CORDONED | TAINT |
      | s1     | yes      | gpu   |
    Then nothing happens to "s1"
    And claim "web" is Booted on "s1"
