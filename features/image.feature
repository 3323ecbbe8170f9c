Feature: An image that cannot be booted takes no server

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |

  Scenario Outline: an image that <FLAW> is told of, and its server stays off
    Given image "bad" <FLAW>
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "<MESSAGE>"
    And the status branch shows for claim "web": "to act: tenant"
    And nothing happens to "s1"

    Examples:
      | FLAW                                   | MESSAGE                               |
      | has no initramfs                       | no initramfs layer                    |

    @long
    Examples:
      | FLAW                                   | MESSAGE                               |
      | has two kernels                        | two kernel layers                     |
      | is for arm64 alone                     | no image for architecture amd64       |
      | was never pushed                       | no such repository, tag or digest     |
      | is in a folder that claims may not name | none of the folders of boot.imageDirs |

  @long
  Scenario: a server is not powered on for an image that is not what its digest says
    (which is known once the image is fetched for the server)
    Given image "bad" is not what its digest says
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then the status branch shows for claim "web": "other bytes than"
    And nothing happens to "s1"

  Scenario Outline: an image that <FLAW> is tried again once it is pushed
    Given image "bad" <FLAW>
    And the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    And the status branch shows for claim "web": "<MESSAGE>"
    When image "bad" is pushed as it should be
    Then claim "web" is Booted on "s1"

    Examples:
      | FLAW             | MESSAGE                           |
      | was never pushed | no such repository, tag or digest |

    @long
    Examples:
      | FLAW             | MESSAGE            |
      | has no initramfs | no initramfs layer |

  Scenario: a tag that moves while a server boots is not followed
    (I02)
    Given "s1" suffers from "hang-after-script"
    And the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    And the status branch shows for claim "web": "last seen fetching iPXE script"
    When image "newer-linux" is tagged as "linux"
    And "s1" no longer suffers from "hang-after-script"
    And the power of "s1" is cut
    Then claim "web" is Booted on "s1"
    And "s1" runs image "linux"

  Scenario: an image that is cached boots servers while its registry is down
    (I12)
    Given claim "web" runs on "s1"
    And the image registry goes down
    When the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    Then claim "db" is Booted on "s2"
    And "s2" runs image "linux"

  Scenario: a mistake in Ignition is told of with its line, and not with its text
    (also of keys, which values become by a wrong indentation)
    Given the Ignition of claim "web" is Butane with a mistake in line 5
    When the claims are committed
      | CLAIM | SERVER |
      | web   | s1     |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "line 5"
    And the status branch shows for claim "web": "to act: tenant"
    And nothing happens to "s1"

  Scenario: an image at a port of this machine that the configuration does not name is not asked for
    (or a claim could find out what listens there)
    Given a stranger listens at "127.0.0.9"
    And image "bad" is at the stranger's port
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "RegistryNotAllowed"
    And the status branch shows for claim "web": "boot.registries must list it"
    And the stranger receives no connection
    And nothing happens to "s1"
