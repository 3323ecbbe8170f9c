Feature: Nothing destructive happens to many at once unseen

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
      | s4     | Available |
    And claims "a, b, c, d" run on "s1, s2, s3, s4"

  Scenario: as many releases as the limit are done
    When claims "a, b, c" are removed
    Then "s1, s2, s3" are Available
    And nothing happens to "s4"

  Scenario: more releases than the limit are held back, and listed
    (law 2)
    When claims "a, b, c, d" are removed
    Then the guard holds 4 releases back
    And nothing happens to "s1, s2, s3, s4"

  Scenario: they are done once a commit approves the list
    (law 2)
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When a commit approves what the guard holds back
    Then "s1, s2, s3, s4" are Available
    And the guard holds nothing back

  Scenario: who approves is shown the list first, and approves that alone
    (law 2)
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When an operator approves in a clone what Ingot holds back
    Then "s1, s2, s3, s4" are Available
    And the guard holds nothing back

  Scenario: they are refused by the command that the list shows
    (law 2)
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When an operator refuses in a clone what Ingot holds back
    Then the guard holds nothing back
    And nothing happens to "s1, s2, s3, s4"

  @long
  Scenario: the page shows the line that approves the list
    Given claims "a, b, c, d" are removed
    When the guard holds 4 releases back
    Then the page of the fleet shows the line that approves it

  @long
  Scenario: an approval of something else is none
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When a commit approves "0123456789ab"
    Then nothing happens to "s1, s2, s3, s4"

  @long
  Scenario: claims that come back are as if they had never gone
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When the claims are committed
      | CLAIM |
      | a     |
      | b     |
      | c     |
      | d     |
    Then the guard holds nothing back
    And nothing happens to "s1, s2, s3, s4"

  Scenario: a claim that is put back with a mistake is not released by the approval of the others
    (law 1)
    Given claims "a, b, c, d" are removed
    And the guard holds 4 releases back
    When claim "d" is committed with a mistake
    And a commit approves what the guard holds back
    Then "s1, s2, s3" are Available
    And nothing happens to "s4"

  @long
  Scenario: a folder that gets another name releases nothing
    When a commit renames the folder of the claims
    Then nothing happens to "s1, s2, s3, s4"
    And the guard holds nothing back

  @long
  Scenario: claims that move to another namespace are others, whose releases are held back
    (law 2)
    When claims "a, b, c, d" are moved to the namespace "prod"
    Then the guard holds 4 releases back
    And nothing happens to "s1, s2, s3, s4"

  Scenario: another image for all claims installs nothing
    (law 1)
    When the claims are committed
      | CLAIM | IMAGE       |
      | a     | newer-linux |
      | b     | newer-linux |
      | c     | newer-linux |
      | d     | newer-linux |
    Then the status branch shows for claim "d": "PendingReprovision"
    And nothing happens to "s1, s2, s3, s4"
    And the guard holds nothing back

  @long
  Scenario: a claim that leaves does nothing to a server that is suspended
    Given the servers are committed
      | SERVER | OPERATION |
      | s1     | ignore    |
    And the status branch shows for server "s1": "Ignored"
    When claims "a, b" are removed
    Then "s2" is Available
    And the status branch shows for server "s1": "Ignored"
    And "s1" is powered On

  Scenario: a release that waits for the end of a maintenance takes no room
    Given maintenance of all servers is committed
    And the status branch shows for server "s4": "GuardHeld"
    And a commit approves what the guard holds back
    And "s1, s2, s3, s4" are Maintenance
    And maintenance of "s1" is removed
    And maintenance of "s2" is removed
    And maintenance of "s3" is removed
    And "s1, s2, s3" are Reserved
    When claims "a, b, c, d" are removed
    Then "s1, s2, s3" are Available
    And "s4" is Maintenance
    And the guard holds nothing back

  Scenario: maintenances that left servers on switch no more of them off than the limit
    Given Ingot is configured so that the guard lets 3 servers be switched off
    And maintenance of "s1" that leaves it On is committed
    And maintenance of "s2" that leaves it On is committed
    And maintenance of "s3" that leaves it On is committed
    And maintenance of "s4" that leaves it On is committed
    And the status branch shows for server "s4": "GuardHeld"
    And a commit approves what the guard holds back
    And "s1, s2, s3, s4" are Maintenance
    When maintenance of "s1" that leaves it Off is committed
    And maintenance of "s2" that leaves it Off is committed
    And maintenance of "s3" that leaves it Off is committed
    Then "s1" is powered Off
    And "s2" is powered Off
    And "s3" is powered Off
    When maintenance of "s4" that leaves it Off is committed
    Then the status branch shows for server "s4": "GuardHeld"
    And "s4" is powered On
