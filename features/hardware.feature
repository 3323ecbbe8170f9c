Feature: What Git says of a server's hardware is so, or the server says why it is not

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |

  Scenario: an indicator that Git has lit is lit, of a server that runs and without disturbing it
    (law 1)
    Given claim "web" runs on "s1"
    When the servers are committed
      | SERVER | INDICATOR |
      | s1     | Blinking  |
    Then the indicator of "s1" is Blinking
    And the status branch shows for server "s1": "indicatorLED: Blinking"
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times
    And the indicator of "s2" is Off

  @long
  Scenario: an indicator of which Git says nothing any more stays as it is
    Given the servers are committed
      | SERVER | INDICATOR |
      | s1     | Lit       |
    And the indicator of "s1" is Lit
    When the servers are committed
      | SERVER | INDICATOR |
      | s1     | Unknown   |
      | s2     | Lit       |
    Then the indicator of "s2" is Lit
    And the indicator of "s1" is Lit

  Scenario: a BMC that does not switch its indicator holds nothing else up
    (law 4)
    Given "s1" suffers from "indicator-not-kept"
    When the servers are committed
      | SERVER | INDICATOR |
      | s1     | Lit       |
    Then the status branch shows for server "s1": "SettingNotKept"
    And claim "web" runs on "s1"
    Given "s1" no longer suffers from "indicator-not-kept"
    When the servers are committed
      | SERVER | OPERATION |
      | s1     | retry#1   |
    Then the indicator of "s1" is Lit

  Scenario: a boot order is set of servers that nobody has, and not of one that runs a claim
    (law 1)
    Given claim "web" runs on "s1"
    When the servers are committed
      | SERVER | BOOTS FIRST         |
      | s1     | Network Card 1 IPv4 |
      | s2     | Network Card 1 IPv4 |
    Then the firmware of "s2" boots from the network first
    And the firmware of "s1" boots from the disk first
    And "s1" was powered on 0 times, installed 0 times and wiped 0 times

  @long
  Scenario: a boot order that a BMC takes for the next start is pending until then, and not "not kept"
    (law 4)
    Given "s1" suffers from "boot-order-in-settings"
    When the servers are committed
      | SERVER | BOOTS FIRST         |
      | s1     | Network Card 1 IPv4 |
    Then the status branch shows for server "s1": "SettingPending"
    And the firmware of "s1" boots from the disk first
    And claim "web" runs on "s1"
    And the firmware of "s1" boots from the network first

  @long
  Scenario: a boot order that names what the machine does not have is told what there is
    (law 4)
    When the servers are committed
      | SERVER | BOOTS FIRST |
      | s1     | Floppy      |
    Then the status branch shows for server "s1": "BootOptionUnknown"
    When the servers are committed
      | SERVER | BOOTS FIRST |
      | s1     | boot0002    |
    Then the firmware of "s1" boots from the network first
