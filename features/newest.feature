Feature: The newest record wins, wherever it was kept
  (law 3) The store may be older than it was, have holes, or be damaged: nobody loses a
  server or what is on it.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
    And the store is copied
    And claims "web, db" run on "s1, s2"
    And the status branch shows that

  Scenario: an older copy of the store changes no machine
    When Ingot is killed, the copy of the store is put back, and Ingot is started again
    Then nothing happens to "s1, s2, s3"
    And claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"

  Scenario: an older copy of the store does not give a server back to whom it had before
    Given the store is copied
    And claim "web" is removed
    And "s1" is Available
    And claim "shop" runs on "s1"
    And the status branch shows that
    When Ingot is killed, the copy of the store is put back, and Ingot is started again
    Then nothing happens to "s1, s2, s3"
    And claim "shop" is Booted on "s1"

  @long
  Scenario: life goes on with an older copy of the store
    Given Ingot is killed, the copy of the store is put back, and Ingot is started again
    When claim "web" is removed
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And "s1" is Available
    And nothing happens to "s2"

  @long
  Scenario: a record that the store lost comes back from the status branch
    When Ingot is killed, the store loses "s1", and Ingot is started again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1, s2, s3"

  Scenario: a record that cannot be read comes back from the status branch
    When Ingot is killed, the store garbles "s1", and Ingot is started again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1, s2, s3"

  Scenario: a store that lost all records of servers gets them from the status branch
    When Ingot is killed, the store loses all servers, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2, s3"

  @long
  Scenario: one dead BMC holds up its own server alone
    (law 4)
    Given "s1" suffers from "refuse"
    And Ingot is killed, the store is emptied, and Ingot is started again
    When the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And nothing happens to "s1, s2"

  Scenario: a status branch that was set back is noticed, and changes no machine
    When the status branch is set back by 2 commits
    And Ingot is killed and started again
    Then the log says "BranchReset"
    And claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2, s3"

  Scenario: when store and status branch are both lost, nothing that runs is touched
    When Ingot is killed, store and status branch are lost, and Ingot is started again
    Then the status branch shows for claim "web": "FleetUnknown"
    And nothing happens to "s1, s2"
    When the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And nothing happens to "s1, s2"

  @long
  Scenario: when both are lost, what ran is nobody's once its power is cut, too
    When Ingot is killed, store and status branch are lost, and Ingot is started again
    Then the status branch shows for server "s1": "FoundRunning"
    When the power of "s1" is cut
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And "s1" is Initial
    And the disk of "s1" is as it was
    And nothing happens to "s2"

  @long
  Scenario: a status branch with a garbled file costs nobody a server
    When Ingot is killed, a file of the status branch about "s2" is garbled, the store is lost, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1, s3"
    And the disk of "s2" is as it was

  Scenario: many wrong claims do not make the status branch unreadable
    Given a commit adds 30 files of 190 wrong claims
    And the status branch shows in the problems: "wrong/"
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2, s3"
    And the status branch shows in the problems: "problemsLeftOut"

  @file
  Scenario: a damaged file is put aside, and nobody loses a server
    When Ingot is killed, the store's file is damaged, and Ingot is started again
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2, s3"

  @redis
  Scenario: a hole is noticed while Ingot runs
    When the store loses "s1"
    And Ingot is killed and started again
    Then claim "web" is Booted on "s1"
    And nothing happens to "s1, s2, s3"

  @redis
  Scenario: a key that somebody else uses is Ingot's again
    When the store has another kind of value for a key
    And the claims are committed
      | CLAIM | SERVER |
      | shop  | s3     |
    Then claim "shop" is Booted on "s3"
    And nothing happens to "s1, s2"

  @redis
  Scenario: an Ingot that takes over keeps what it knows newer than an older replica
    Given another Ingot is on standby
    When the Ingot that leads dies together with Redis, which comes back from its copy
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And nothing happens to "s1, s2, s3"

  @redis
  Scenario: a store that is away is what keeps Ingot from being ready
    When the store goes down
    Then Ingot is not ready because of its "store"
