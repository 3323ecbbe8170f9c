Feature: images.yaml gives images names

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And images.yaml names image "linux" as "debian-13"

  Scenario: the name of an image is resolved when a claim gets a server
    Given the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debian-13 |
    Then claim "web" is Booted on "s1"
    And "s1" runs image "linux"
    And the status branch shows for claim "web": "images/linux@sha256:"
    And "ingot explain" shows for claim "web": "images/linux@sha256:"

    When images.yaml names image "newer-linux" as "debian-13"
    Then nothing happens to "s1"
    When images.yaml no longer names an image
    Then nothing happens to "s1"
    And the status branch shows for claim "web": "images/linux@sha256:"

    When images.yaml names image "newer-linux" as "debian-13"
    And the claims are committed
      | CLAIM | REPROVISION |
      | web   | 1           |
    Then "s1" runs image "newer-linux"
    And claim "web" is Booted on "s1"
    And the status branch shows for claim "web": "images/newer-linux@sha256:"
    And "s1" was installed once and wiped 0 times

  Scenario: a plan shows which claims get another image
    Given the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debian-13 |
      | db    | s9     | debian-13 |
    And claim "web" is Booted on "s1"
    When a pull request names image "newer-linux" as "debian-13"
    Then its plan is changes:
      | EFFECT | SERVER | CLAIM |
      | image  |        |       |
    And its plan for the clone says "images/newer-linux@sha256:"
    And its plan for the clone says "claims without a server get it: default/db"
    And its plan for the clone says "claims with a server keep their image until ingot/reprovision has a new value: 1"
    When it is merged
    Then nothing happens to "s1"

  Scenario: an unknown name takes no server
    When the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debain-13 |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "did you mean"
    And the status branch shows for claim "web": "to act: tenant"
    And nothing happens to "s1"
    When the claims are committed
      | CLAIM | IMAGE     |
      | web   | debian-13 |
    Then claim "web" is Booted on "s1"

  Scenario: an images.yaml that is lost without a commit concerns only claims without a server
    Given the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debian-13 |
    And claim "web" is Booted on "s1"
    When the history is rewritten without images.yaml
    And the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | db    | s2     | debian-13 |
    Then the status branch shows for claim "db": "AbsentWithoutCommit"
    And the status branch shows for claim "db": "to act: rack operator"
    And nothing happens to "s1, s2"
    When images.yaml names image "linux" as "debian-13"
    Then claim "db" is Booted on "s2"
    And nothing happens to "s1"

  @long
  Scenario: an images.yaml with a mistake concerns only claims without a server
    Given the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debian-13 |
    And claim "web" is Booted on "s1"
    When images.yaml has a mistake
    And the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | db    | s2     | debian-13 |
    Then the status branch shows for claim "db": "ManifestUnreadable"
    And nothing happens to "s1, s2"
    When images.yaml names image "linux" as "debian-13"
    Then claim "db" is Booted on "s2"

  @long
  Scenario: a claim waits while the registry of its image is down
    Given the image registry is down
    When the claims are committed
      | CLAIM | SERVER | IMAGE     |
      | web   | s1     | debian-13 |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "RegistryUnreachable"
    And the status branch shows for claim "web": "to act: rack operator"
    And nothing happens to "s1"
    When Ingot is killed and started again
    Then the status branch shows for claim "web": "RegistryUnreachable"
    And nothing happens to "s1"
    When the image registry is back
    Then claim "web" is Booted on "s1"

  Scenario: a tenant cannot define an images.yaml
    Given Ingot is started again with the tenants
      | TENANT |
      | alpha  |
    When images.yaml is committed below the folder of "alpha"
    And the claims are committed
      | CLAIM     | SERVER | IMAGE     |
      | alpha/web | s1     | debian-13 |
      | alpha/db  | s2     | own-image |
    Then claim "alpha/web" is Booted on "s1"
    And "s1" runs image "linux"
    And the status branch shows in the problems: "the fleet has one ImageCatalog, in images.yaml at the root of git.path"
    And the status branch shows for claim "alpha/db": "ImageUnknown"
    And nothing happens to "s2"
