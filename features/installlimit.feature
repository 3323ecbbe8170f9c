Feature: So many disk images are written at a time, and no more
  (N41)

  Background:
    Given Ingot is configured so that 1 disk image is written at a time
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And disk image "debian" is in the registry

  Scenario: a server waits until another is written, and says so
    Given "s1" suffers from "install-hangs"
    And the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And the status branch shows for claim "web": "Installing"
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | db    | s2     | debian |
    Then the status branch shows for claim "db": "InstallsLimited"
    And nothing happens to "s2"
    When "s1" no longer suffers from "install-hangs"
    Then claim "web" is Booted on "s1"
    And claim "db" is Booted on "s2"
    And "s1" was installed once and wiped 0 times
    And "s2" was installed once and wiped 0 times
