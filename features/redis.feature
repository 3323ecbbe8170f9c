@redis
Feature: Redis may be away for a while, and may be shared

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"

  Scenario: nobody loses a server by that
    (law 3)
    When the store goes down
    And the store comes back
    Then nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  Scenario: what is committed meanwhile is done when Redis is back
    Given the store goes down
    When the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    And the store comes back
    Then claim "db" is Booted on "s2"
    And "s2" was powered on once, installed once and wiped 0 times
    And nothing happens to "s1"

  Scenario: an Ingot that is cut off from Redis does not claim that another leads
    When the store goes down
    Then Ingot is not ready because of its "leadership", and says "nobody knows who leads"
    When the store comes back
    Then nothing happens to "s1, s2"

  Scenario Outline: Ingot and "ingot check" show why Redis refuses writes: it <FAULT>
    (law 9)
    When Redis <FAULT>
    Then Ingot is not ready because of its "store", and says "<REASON>"
    And "ingot check" shows a fault of "redis.url": "<REASON>"
    When Redis accepts writes again
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And nothing happens to "s1"

    Examples:
      | FAULT                | REASON                                      |
      | becomes a replica    | it is a read-only replica                   |
      | has too few replicas | it refuses writes because fewer replicas    |
      | has no memory left   | it refuses writes because its memory is full |

  Scenario: an Ingot that stands by says who leads
    When another Ingot is on standby
    Then the standby is not ready because of its "leadership", and says "another ingot leads"
    And the standby refuses connections of machines

  Scenario: an Ingot that is stopped gives up its lead before its machines are done with it
    Given another Ingot is on standby
    When the Ingot that leads is stopped, and the standby leads before the connections of the first end
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And "s2" was powered on once, installed once and wiped 0 times
    And nothing happens to "s1"
    And claim "web" is Booted on "s1"

  Scenario: an Ingot that stands by takes over
    Given another Ingot is on standby
    When the Ingot that leads is killed
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And "s2" was powered on once, installed once and wiped 0 times
    And nothing happens to "s1"
    And claim "web" is Booted on "s1"

  Scenario: a leader that slept while another took over does nothing when it wakes up
    (law 6)
    Given another Ingot is on standby
    When the Ingot that leads is suspended, and the standby takes over
    And claim "web" is removed
    And "s1" is Available
    And the first Ingot goes on
    Then the first Ingot ends with exit code 1
    And nothing happens to "s2"
    And the disk of "s1" is empty

  Scenario: a password that changes is read again
    Given Redis asks for a password
    When Redis gets another password, and then its file
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And nothing happens to "s1"

  Scenario: Redis is reached by TLS, and nobody else is taken for it
    Given Redis is reached by TLS
    When the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And Ingot does not start with another CA for Redis, and says "certificate signed by unknown authority" and "redis.caFile"
    And nothing happens to "s1"
