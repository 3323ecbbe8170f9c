Feature: The page shows the fleet to whoever looks

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: each server stands in its rack, by the letter of its state
    Then the page of the fleet shows server "s1" as "A" in rack "7"

  Scenario: it says what a claim waits for, and who has to act
    When the claims are committed
      | CLAIM | RACK |
      | web   | 9    |
    Then the page of the fleet says: "no server has label rack=9"
    And the page of the fleet says: "rack operator"

  Scenario: a claim without a server says of how many servers what they lack
    Given claim "db" runs on "s1"
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then the page of claim "web" says: "lack label rack=7"

  Scenario: a server says what happened to it
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then claim "web" is Booted on "s1"
    And the page of server "s1" says: "default/web: Booted on s1"
    And the page of server "s1" has a picture of its boot
    And the page of claim "web" has a picture of its boot

  Scenario: a list is filtered by its address
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then claim "web" is Booted on "s1"
    And the list of the servers that are Reserved has "s1" alone
    And the list of the servers that are Available has "s2" alone

  Scenario: a filter that is too long is refused
    Then a filter of 10 kB of the list of servers is refused

  Scenario: a label that is a script is text
    When a label that is a script is committed for server "s1"
    Then the page of the problems says: "&lt;script&gt;"
    And the page of the problems has no script but its own

  Scenario: nothing is fetched from elsewhere, and no reader is remembered
    Then the page of the fleet allows nothing from elsewhere, and sets no cookie

  Scenario: a page of another name in a browser of this machine cannot read it
    Then the page of the fleet is refused to whoever asks for another host
