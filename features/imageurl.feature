Feature: A disk image at a URL is what its digest says, or is not installed

  Background:
    Given images are on a web server
    And the servers
      | SERVER | STATE     |
      | s1     | Available |

  Scenario: a file with the digest that the claim names is installed
    Given disk image "debian" is at a URL
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "debian"
    And "s1" was installed once and wiped 0 times

  Scenario: a file with another digest is told of, and its server stays off
    (N03, N15)
    Given disk image "debian" is at a URL with the digest of another file
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then the status branch shows for claim "web": "DigestMismatch"
    And nothing happens to "s1"

  Scenario Outline: a host that the configuration does not allow is not asked for an image
    Given a stranger listens at "127.0.0.9"
    And disk image "debian" is at a URL <WHERE>
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Unbound
    And the status branch shows for claim "web": "RegistryNotAllowed"
    And the status branch shows for claim "web": "<BECAUSE>"
    And the stranger receives no connection
    And nothing happens to "s1"

    Examples:
      | WHERE                          | BECAUSE                             |
      | of the stranger                | is not allowed; boot.registries has |
      | that redirects to the stranger | boot.registries must list it        |

  Scenario: a fetch that is cut off goes on where it was
    Given disk image "debian" is at a URL and its server ends whole answers half way
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "debian"
    And the fetch of disk image "debian" went on where it was cut off
