Feature: A disk that cannot take the image is told of while its server is off

  Scenario Outline: a disk that is <FLAW>
    (N13, N14)
    Given the servers
      | SERVER | FAULT   | STATE     |
      | s1     | <FAULT> | Available |
    And disk image "debian" is in the registry
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE    |
      | web   | s1     | debian | the first disk |
    Then the status branch shows for claim "web": "<REASON>"
    And nothing happens to "s1"

    Examples:
      | FLAW                      | FAULT      | REASON             |
      | too small                 | disk-small | DiskTooSmall       |

    @long
    Examples:
      | FLAW                      | FAULT      | REASON             |
      | one of 4096-byte sectors  | sectors-4k | SectorSizeMismatch |

  Scenario: another disk that can take the image is installed on
    Given the servers
      | SERVER | FAULT      | STATE     |
      | s1     | disk-small | Available |
    And disk image "debian" is in the registry
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And the second disk of "s1" holds disk image "debian"
    And the first disk of "s1" holds nothing
