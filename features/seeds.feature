Feature: What was written for metal-operator works as it stands

  Scenario: the manifests that our user handed us, to a Booted claim and back
    Given the repository is that of examples/seeds, with its machines
    Then claim "my-server-claim" is Booted on "my-server"
    And "my-server" runs image "linux"
    And the status branch shows for server "my-server": "default/my-server-claim"
    And the status branch shows for server "my-server": "spec.power Off of Server my-server"
    And the status branch shows for BMC "my-bmc": "state: Enabled"
    And the status branch shows for BMC "my-bmc-inline": "state: Enabled"
    And the status branch shows for boot configuration "defauilt/my-server-boot-config": "server my-server boots what ServerClaim default/my-server-claim says"
    When claim "my-server-claim" is removed
    Then "my-server" is Available
    And the disk of "my-server" is empty
    And the status branch shows for boot configuration "defauilt/my-server-boot-config": "Secret defauilt/my-ignition-secret is not in Git"
