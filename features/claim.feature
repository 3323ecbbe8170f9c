Feature: A claim is served by one server that matches

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: by reference
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s2     |
    Then claim "web" is Booted on "s2"
    And "s2" was powered on once, installed once and wiped 0 times
    And nothing happens to "s1"

  Scenario: a claim that is removed and made anew for another server does not get the one that was kept
    Given claim "web" runs on "s1"
    And the servers are committed
      | SERVER | RECLAIM | RACK |
      | s1     | Retain  | 7    |
    And claim "web" is removed
    And "s1" is Released
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s2     |
    Then claim "web" is Booted on "s2"
    And "s1" is Released

  @long
  Scenario: an image is fetched from its registry once, however many servers boot it
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
      | db    | s2     |
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And each layer was fetched from its registry once

  Scenario: by labels
    When the claims are committed
      | CLAIM | RACK |
      | web   | 8    |
    Then claim "web" is Booted on "s2"
    And nothing happens to "s1"

  Scenario: a server that hangs after its boot script is power-cycled
    Given Ingot is configured so that a boot may take 5 seconds
    And "s1" suffers from "hang-after-script"
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then "ingot explain" shows for server "s1": "attempt 2 of 3"
    When "s1" no longer suffers from "hang-after-script"
    Then claim "web" is Booted on "s1"

  Scenario: a claim whose label no server has says so, also while all servers are Reserved
    Given claim "db" runs on "s1"
    And claim "web" runs on "s2"
    When the claims are committed
      | CLAIM | RACK |
      | gpu   | 70   |
    Then claim "gpu" is Unbound
    And the status branch shows for claim "gpu": "no server has label rack=70 (2 servers)"

  Scenario: a claim for which nothing is free says why, by count
    Given claim "db" runs on "s1"
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "2 servers: 1 Reserved, 1 lack label rack=7"
    And nothing happens to "s1, s2"

  @long
  Scenario: a reference to a server that is not known says so
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s3     |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "server s3 is not known"

  Scenario: of two claims for one server the one with priority gets it
    When the claims are committed
      | CLAIM | SERVER | PRIORITY |
      | db    | s1     |          |
      | web   | s1     | 10       |
    Then claim "web" is Booted on "s1"
    And claim "db" is Unbound
    And the status branch shows for claim "db": "server s1 is Reserved for default/web"
    And "s1" was powered on once, installed once and wiped 0 times

  Scenario: a claim that waits is served when a server becomes free
    Given claim "db" runs on "s1"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    When claim "db" is removed
    Then claim "web" is Booted on "s1"
    And "s1" was powered on 2 times, installed once and wiped once

  @long
  Scenario: a claim with power Off keeps its server off
    When the claims are committed
      | CLAIM | SERVER | POWER |
      | web   | s1     | Off   |
    Then claim "web" is Bound on "s1"
    And nothing happens to "s1"

  @long
  Scenario: a cordoned server is passed over
    Given the servers are committed
      | SERVER | CORDONED |
      | s1     | yes      |
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "s2"
    And nothing happens to "s1"

  Scenario: a tainted server takes only a claim that tolerates it
    Given the servers are committed
      | SERVER | TAINT |
      | s1     | gpu   |
      | s2     | fpga  |
    When the claims are committed
      | CLAIM | TOLERATES |
      | db    |           |
      | web   | fpga      |
    Then claim "web" is Booted on "s2"
    And claim "db" is Unbound
    And the status branch shows for claim "db": "1 tainted"
    And nothing happens to "s1"
