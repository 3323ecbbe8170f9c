Feature: A ticket that somebody else used up is armed anew
  (law 5) Where tickets are not bound to their machines, whoever asks first is served.

  Background:
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And Ingot is configured so that boot tickets are bound to nothing
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And "s1" is plugged in
    And device "thief" is plugged in
    And what machines ask for is lost

  Scenario: its server boots in the end, and the claim says whose Secret to rotate
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And "thief" takes the script and Ignition of "s1"
    And what machines ask for arrives again
    And the firmware of "s1" asks for its script
    Then the status branch shows for claim "web": "Secret web was served to"
    And claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  Scenario: the third time a person is asked
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And "thief" takes the script and Ignition of "s1"
    And the firmware of "s1" asks for its script
    And "thief" takes the script and Ignition of "s1"
    And the firmware of "s1" asks for its script
    And "thief" takes the script and Ignition of "s1"
    And the firmware of "s1" asks for its script
    Then the status branch shows for server "s1": "its boot tickets were used up by others 3 times"
    And "s1" was installed 0 times and wiped 0 times

  Scenario: a server that was installed is left alone
    Given what machines ask for arrives again
    And "s1" suffers from "bootstate-silent"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And claim "web" is Unconfirmed on "s1"
    When the firmware of "s1" asks for its script
    Then nothing happens to "s1"
    And claim "web" is Unconfirmed on "s1"
