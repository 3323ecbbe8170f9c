Feature: Those who may look at the fleet can, and nobody else
  Ingot's admin listener shows what is where and what it waits for. It is this machine's
  alone until somebody says who may look from elsewhere.

  Scenario: a page of the web that takes this machine's name for its own reads nothing
    When Ingot starts
    Then whoever asks on this machine sees the fleet
    And a browser that asks under the name of another site is refused

  Scenario: where others reach it, it does not start until it is said who may look
    Given the admin listener is reached from other machines
    Then Ingot does not start, and says "admin.openMetrics"

  Scenario: those with a password see the fleet, over TLS
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    When Ingot starts
    Then "ingot status" of "anna" shows the fleet
    And "ingot status" of "eve" is told: "does not take the password of user eve"
    And "ingot status" of nobody is told: "answers to its users alone"

  Scenario: what watches over Ingot learns whether it is ready, and nothing of the fleet
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    When Ingot starts
    Then whoever asks learns that Ingot is ready
    And whoever asks for the metrics is refused

  @long
  Scenario: metrics may be left open
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And metrics are for everybody
    When Ingot starts
    Then whoever asks sees the metrics
    And "ingot status" of nobody is told: "answers to its users alone"

  @long
  Scenario: a user who is added may look without a restart
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the users are "anna, eve"
    Then "ingot status" of "eve" shows the fleet

  @long
  Scenario: users that cannot be read leave those before, and a metric says so
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the users get passwords that are hashed by MD5
    Then the metrics say that the users cannot be used
    And "ingot status" of "anna" shows the fleet

  @long
  Scenario: users that cannot be read keep Ingot from starting
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And the users get passwords that are hashed by MD5
    Then Ingot does not start, and says "htpasswd -B users anna"

  Scenario: a new certificate is shown without a restart, and a broken one is not
    Given the admin listener is reached from other machines, over TLS, by user "anna"
    And Ingot starts
    When the certificate is broken
    Then "ingot status" of "anna" shows the fleet
    When the certificate is another
    Then "ingot status" of "anna" shows the fleet, and the other certificate

  Scenario: a proxy that knows its users names them, and nobody else does
    Given a proxy names the users of the admin listener
    When Ingot starts
    Then "anna" sees the fleet through the proxy
    And who names "anna" without the proxy is refused
