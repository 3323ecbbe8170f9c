Feature: A tenant logs in with the SSH keys of the claim
  (law 8) A public key is not a secret: it needs no Secret, and a changed key causes no installation.

  Background:
    Given the networks
      | NETWORK | FOR     | ADDRESSES |
      | rack1   | servers | 2         |
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And disk image "debian" is in the registry

  Scenario: cloud-init installs the keys of a claim without a Secret, and the status shows how to log in
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | CONFIGURED BY | SSH KEYS   |
      | web   | s1     | debian | nothing       | alice, bob |
    Then claim "web" is Booted on "s1"
    And the default user of "s1" has the SSH keys of "alice, bob"
    And the status branch shows for claim "web": "login: ssh debian@"
    And the status branch shows in the README: "`ssh debian@"
    And "ingot explain" shows for claim "web": "log in: ssh debian@"
    And the page of claim "web" contains "ssh debian@"

  Scenario: Ignition installs the keys of a claim without a Secret for core
    When the claims are committed
      | CLAIM | SERVER | IMAGE | CONFIGURED BY | SSH KEYS |
      | web   | s1     | linux | nothing       | alice    |
    Then claim "web" is Booted on "s1"
    And user "core" of "s1" has the SSH keys of "alice"

  Scenario: keys of the configuration are added to those of a claim
    Given Ingot is configured so that "ada, alice" may log in to every server
    And Ingot is stopped and started again
    When the claims are committed
      | CLAIM | SERVER | IMAGE | SSH KEYS |
      | web   | s1     | linux | alice    |
    Then claim "web" is Booted on "s1"
    And user "core" of "s1" has the SSH keys of "ada, alice"
    And the disk of one server holds claim "web"
    And the status branch shows for claim "web": "login: ssh core@"

  Scenario: a changed key changes nothing on the server, and the next installation has it
    Given the claims are committed
      | CLAIM | SERVER | IMAGE  | CONFIGURED BY | SSH KEYS |
      | web   | s1     | debian | cloud-init    | alice    |
    And claim "web" is Booted on "s1"
    And the default user of "s1" has the SSH keys of "alice"
    When the claims are committed
      | CLAIM | SSH KEYS |
      | web   | bob      |
    Then the status branch shows for claim "web": "SSHKeysChanged"
    And the default user of "s1" has the SSH keys of "alice"
    And nothing happens to "s1"
    When the claims are committed
      | CLAIM | REPROVISION |
      | web   | again       |
    Then the default user of "s1" has the SSH keys of "bob"
    And claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  Scenario: a malformed key is a problem at its line, and the server stays as it is
    Given claim "web" runs on "s1"
    When the claims are committed
      | CLAIM | SSH KEYS        |
      | web   | alice, mallory! |
    Then the status branch shows in the README: "claims/web.yaml:7"
    And the status branch shows in the problems: "options such as from= and command= are not allowed"
    And nothing happens to "s1"

  Scenario: a tenant chooses the keys of its own claims
    Given Ingot is started again with the tenants
      | TENANT |
      | alpha  |
    When the claims are committed
      | CLAIM     | SERVER | IMAGE  | CONFIGURED BY | SSH KEYS |
      | alpha/web | s1     | debian | nothing       | alice    |
    Then claim "alpha/web" is Booted on "s1"
    And the default user of "s1" has the SSH keys of "alice"
