Feature: Many claims at once get one server each

  Scenario: 100 claims that name no server, for 100 servers
    Given 100 servers
    When 100 claims that name no server are committed
    Then each of 100 claims is Booted on a server of its own

  Scenario: 12 claims for 12 servers, from an Ingot that is killed again and again
    Given 12 servers
    When 12 claims that name no server are committed, and Ingot is killed 5 times at random
    Then each of 12 claims is Booted on a server of its own
