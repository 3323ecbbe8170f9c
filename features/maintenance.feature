Feature: A maintenance does to a server that serves a claim what it says, once whoever has to agree does

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"

  Scenario: one that asks the owner of the claim waits for the answer, and what runs goes on
    When maintenance of "s1" that asks its owner is committed
    Then the status branch shows for claim "web": "waits for the approval of the owner of claim default/web"
    And nothing happens to "s1"
    And claim "web" is Booted on "s1"

  Scenario: it begins once the claim approves it
    Given maintenance of "s1" that asks its owner is committed
    And the status branch shows for claim "web": "ApprovalAwaited"
    When the claims are committed
      | CLAIM | APPROVES |
      | web   | s1       |
    Then "s1" is Maintenance
    And "s1" is powered Off
    When maintenance of "s1" is removed
    Then "s1" runs from its disk again
    And claim "web" is Booted on "s1"
    And "s1" was powered on once, installed 0 times and wiped 0 times

  @long
  Scenario: approval of another maintenance is none
    Given maintenance of "s1" that asks its owner is committed
    And the status branch shows for claim "web": "ApprovalAwaited"
    When the claims are committed
      | CLAIM | APPROVES |
      | web   | s2       |
    Then nothing happens to "s1"
    And claim "web" is Booted on "s1"

  Scenario: a server whose claim the same commit removes is wiped after its maintenance
    (law 1)
    When claim "web" is removed, and the same commit begins maintenance of "s1"
    Then "s1" is Maintenance
    And "s1" is powered Off
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times
    When maintenance of "s1" is removed
    Then "s1" is Available
    And the disk of "s1" is empty

  Scenario: one that leaves the server on does nothing to it, and heals nothing either
    Given maintenance of "s1" that leaves it On is committed
    And "s1" is Maintenance
    And "s1" is powered On
    When the power of "s1" is cut
    Then "s1" was powered on 0 times, installed 0 times and wiped 0 times
    And "s1" is powered Off

  @long
  Scenario: an owner who agreed that it leaves his server on is asked again before it shuts it down
    (law 2: an approval covers what was shown when it was given)
    Given maintenance of "s1" that asks its owner and leaves it On is committed
    And the status branch shows for claim "web": "it will leave the server on"
    And the claims are committed
      | CLAIM | APPROVES |
      | web   | s1       |
    And "s1" is Maintenance
    When maintenance of "s1" that asks its owner and leaves it Off is committed
    Then the status branch shows for claim "web": "it will power off the server until it ends"
    And nothing happens to "s1"
    And "s1" is powered On
    When the claims are committed
      | CLAIM | APPROVES |
      | web   | s1#Off   |
    Then "s1" is powered Off
    And "s1" is Maintenance

  @long
  Scenario: what it does to the power of its server may change while it goes on
    (law 1)
    Given maintenance of "s1" that leaves it Off is committed
    And "s1" is Maintenance
    And "s1" is powered Off
    When maintenance of "s1" that leaves it On is committed
    Then "s1" runs from its disk again
    And "s1" is Maintenance
    When maintenance of "s1" that leaves it Off is committed
    Then "s1" is powered Off
    And "s1" was powered on once, installed 0 times and wiped 0 times
