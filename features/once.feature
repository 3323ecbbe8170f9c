Feature: What a commit asks for once is done at most once
  (law 1) An answer that was lost means unknown: Ingot looks, and repeats no restart.

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And claim "web" runs on "s1"

  Scenario Outline: a restart is not repeated with the BMC fault <FAULT>
    Given "s1" suffers from "<FAULT>"
    When the servers are committed
      | SERVER | OPERATION             |
      | s1     | hard-restart-server#1 |
    Then "s1" was restarted once
    And the status branch shows for server "s1": "OutcomeUnknown"

    Examples:
      | FAULT             |
      | reset-answers-500 |

    @long
    Examples:
      | FAULT                |
      | reset-answer-dropped |
      | reset-answer-hangs   |

  Scenario: nor when Ingot is killed while the BMC has the request
    Given "s1" suffers from "reset-answer-hangs"
    And the servers are committed
      | SERVER | OPERATION             |
      | s1     | hard-restart-server#1 |
    And "s1" was restarted once
    When Ingot is killed and started again
    And "s1" no longer suffers from "reset-answer-hangs"
    Then "s1" was restarted once

  Scenario: nor when the store is lost after it
    Given the servers are committed
      | SERVER | OPERATION             |
      | s1     | hard-restart-server#1 |
    And "s1" was restarted once
    When Ingot is killed, the store is emptied, and Ingot is started again
    Then "s1" was restarted once
    And claim "web" is Booted on "s1"

  Scenario: nothing is asked of a BMC that could not be written down before
    When the store takes no more
    And the power of "s1" is cut
    Then Ingot is not ready because of its "store"
    And no BMC was asked to change anything since
    When the store takes more again
    Then "s1" runs from its disk again

  Scenario: the next value is another request
    Given the servers are committed
      | SERVER | OPERATION             |
      | s1     | hard-restart-server#1 |
    And "s1" was restarted once
    When the servers are committed
      | SERVER | OPERATION             |
      | s1     | hard-restart-server#2 |
    Then "s1" was restarted 2 times

  Scenario: a power cut that the BMC only claims switches nothing off
    When "s1" suffers from "false-off" 6 times
    Then claim "web" is Booted on "s1"
    And the disk of "s1" is as it was
    And "s1" was restarted 0 times
