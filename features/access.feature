Feature: Those who may look at the fleet can, and nobody else
  Ingot's admin listener shows what is where and what it waits for. It is this machine's
  alone until somebody says who may look from elsewhere.

  Scenario: a page of the web that takes this machine's name for its own reads nothing
    When Ingot starts
    Then a client on this machine gets the fleet
    And a client that names another site is refused

  Scenario: where others reach it, it does not start until it is said who may look
    Given the admin listener is reached from other machines
    Then Ingot does not start, and says "admin.openMetrics"

  Scenario: those with a password see the fleet, over TLS
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    When Ingot starts
    Then "ingot status" of user "anna" shows the fleet
    And "ingot status" of user "eve" fails: "does not take the password of user eve"
    And "ingot status" without a user fails: "answers to its users alone"

  Scenario: what watches over Ingot learns whether it is ready, and nothing of the fleet
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    When Ingot starts
    Then a client without a password learns that Ingot is ready
    And a client without a password gets no metrics

  @long
  Scenario: metrics may be left open
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot is configured so that metrics are public
    When Ingot starts
    Then a client without a password gets the metrics
    And "ingot status" without a user fails: "answers to its users alone"

  @long
  Scenario: a user who is added may look without a restart
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the users are "anna, eve"
    Then "ingot status" of user "eve" shows the fleet

  @long
  Scenario: users that cannot be read leave those before, and a metric says so
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the users have passwords that are hashed by MD5
    Then the metrics show that the users cannot be used
    And "ingot status" of user "anna" shows the fleet

  @long
  Scenario: users that cannot be read keep Ingot from starting
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And the users have passwords that are hashed by MD5
    Then Ingot does not start, and says "htpasswd -B users anna"

  Scenario: a new certificate is shown without a restart, and a broken one is not
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the certificate is broken
    Then "ingot status" of user "anna" shows the fleet
    When the certificate is another
    Then "ingot status" of user "anna" shows the fleet, and the other certificate

  Scenario: a proxy that knows its users names them, and nobody else does
    Given the admin listener is reached by a proxy that names the users
    When Ingot starts
    Then a client that the proxy names "anna" gets the fleet
    And a client that names itself "anna" is refused
