Feature: The guard sees all that is disruptive, for as long as its window
  (law 2)

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
      | s4     | Available |
    And claims "a, b, c, d" run on "s1, s2, s3, s4"

  Scenario: two commits are counted together
    When claims "a, b" are removed
    And "s1, s2" are Available
    And claims "c, d" are removed
    Then nothing happens to "s3, s4"
    And the status branch shows for server "s3": "GuardHeld"
    And the status branch shows for server "s4": "GuardHeld"

  @file
  Scenario: a clock that is ahead at a start opens no window
    Given claims "a, b" are removed
    And "s1, s2" are Available
    And the status branch shows that
    When Ingot is killed, its clock is set 3 hours ahead, and Ingot is started again
    Then nothing happens to "s3, s4"
    When claims "c, d" are removed
    Then nothing happens to "s3, s4"
    And the status branch shows for server "s3": "GuardHeld"
    And the status branch shows for server "s4": "GuardHeld"

  Scenario: what was held is done once a commit after it approves
    Given claims "a, b" are removed
    And "s1, s2" are Available
    And claims "c, d" are removed
    And the status branch shows for server "s3": "GuardHeld"
    When a commit approves what the guard holds back
    Then "s3, s4" are Available

  @long
  Scenario: maintenance of many is held back
    Given Ingot is configured so that the guard lets 3 servers be switched off
    When maintenance of all servers is committed
    Then nothing happens to "s1, s2, s3, s4"
    And the status branch shows for server "s1": "GuardHeld"

  @long
  Scenario: operations on many are held back
    Given Ingot is configured so that the guard lets 3 servers be switched off
    When the servers are committed
      | SERVER | OPERATION            |
      | s1     | power-cycle-server#1 |
      | s2     | power-cycle-server#1 |
      | s3     | power-cycle-server#1 |
      | s4     | power-cycle-server#1 |
    Then nothing happens to "s1, s2, s3, s4"
    And the status branch shows for server "s1": "GuardHeld"

  @long
  Scenario: claims that are switched off are held back
    Given Ingot is configured so that the guard lets 3 servers be switched off
    When the claims are committed
      | CLAIM | POWER |
      | a     | Off   |
      | b     | Off   |
      | c     | Off   |
      | d     | Off   |
    Then nothing happens to "s1, s2, s3, s4"
    And the status branch shows for server "s1": "GuardHeld"

  Scenario: releases leave room for operations
    (each has a limit of its own)
    When claims "a, b, c" are removed
    And "s1, s2, s3" are Available
    And the servers are committed
      | SERVER | OPERATION            |
      | s4     | power-cycle-server#1 |
    Then "s4" runs from its disk again
