Feature: The web page shows the fleet

  Background:
    Given the servers
      | SERVER | RACK | STATE     |
      | s1     | 7    | Available |
      | s2     | 8    | Available |

  Scenario: each server is in its rack, with the letter of its state
    Then the page of the fleet shows server "s1" as "A" in rack "7"

  Scenario: a waiting claim shows the cause and who has to act
    When the claims are committed
      | CLAIM | RACK |
      | web   | 9    |
    Then the page of the fleet contains "no server has label rack=9"
    And the page of the fleet contains "rack operator"

  Scenario: a claim without a server shows how many servers lack which label
    Given claim "db" runs on "s1"
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then the page of claim "web" contains "lack label rack=7"

  Scenario: a server shows its history and its boot
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then claim "web" is Booted on "s1"
    And the page of server "s1" contains "default/web: Booted on s1"
    And the page of server "s1" has a picture of its boot
    And the page of claim "web" has a picture of its boot

  Scenario: the URL of a list selects a state
    When the claims are committed
      | CLAIM | RACK |
      | web   | 7    |
    Then claim "web" is Booted on "s1"
    And the list of the servers that are Reserved has "s1" alone
    And the list of the servers that are Available has "s2" alone

  Scenario: the exact name of an object opens its page
    Then a search for server "s1" opens its page

  Scenario: a search of 10 kB is refused
    Then a search of 10 kB in the list of servers is refused

  Scenario: a label with a script is shown as text
    When server "s1" is committed with a script in a label
    Then the page of the problems contains "&lt;script&gt;"
    And the page of the problems has only its own script

  Scenario: the page loads nothing from other hosts and sets no cookie
    Then the page of the fleet loads nothing from other hosts and sets no cookie

  Scenario: another site in a browser on this machine cannot read the page
    Then the page of the fleet is refused for another host name
