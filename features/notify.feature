Feature: Who is on call is told of what needs somebody, wherever they are
  Once for each trouble, whatever becomes of Ingot meanwhile; and nothing waits for it.

  Scenario: a server that could not be wiped is told of once, over a restart too
    Given a webhook for those on call
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And those on call are told of ClaimBooted of claim "web"
    And "s1" suffers from "wipe-fails"
    When claim "web" is removed
    Then those on call are told of CleanupFailed of server "s1"
    And Ingot has noted that they were told of CleanupFailed
    When Ingot is killed and started again
    And Ingot has nothing to do
    Then those on call were told of CleanupFailed of server "s1" once
    And those on call were told of ClaimBooted of claim "web" once

  @redis
  Scenario: an Ingot that takes over tells nothing that the other told
    Given a webhook for those on call
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And "s1" suffers from "wipe-fails"
    And another Ingot stands by
    When claim "web" is removed
    Then those on call are told of CleanupFailed of server "s1"
    When Ingot has nothing to do
    And the Ingot that leads is killed
    And the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And those on call are told of ClaimBooted of claim "db"
    And those on call were told of CleanupFailed of server "s1" once

  Scenario: those who want to know are told that trouble has ended
    Given a webhook for those on call
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"
    And "s1" suffers from "wipe-fails"
    And claim "web" is removed
    And those on call are told of CleanupFailed of server "s1"
    And "s1" no longer suffers from "wipe-fails"
    When the servers are committed
      | SERVER | OPERATION |
      | s1     | retry#1   |
    Then those on call are told of the end of CleanupFailed of server "s1"

  Scenario Outline: a webhook that <FAILS> holds up neither machines nor other webhooks
    Given a webhook for those on call
    And a webhook that <FAILS>
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then claim "web" is Booted on "s1"
    And those on call are told of ClaimBooted of claim "web"
    And the other webhook was asked, and the metrics count it as unavailable
    And no webhook's secret is in the log

    Examples:
      | FAILS                      |
      | has trouble of its own     |
      | never answers              |

  Scenario: what a webhook does not take for a while it is told later
    Given a webhook for those on call
    And the webhook takes nothing for now
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then claim "web" is Booted on "s1"
    When the webhook takes notices again
    Then those on call are told of ClaimBooted of claim "web"
    And those on call were told of ClaimBooted of claim "web" once
