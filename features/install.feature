Feature: A disk image is installed on the right disk, and nowhere else

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And disk image "debian" is in the registry

  Scenario Outline: an image that <FLAW> is told of, and its server stays off
    (N03, N05, N07, N11, N12)
    Given disk image "bad" <FLAW>
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then the status branch says of claim "web": "<REASON>"
    And nothing happens to "s1"

    Examples:
      | FLAW                        | REASON            |
      | is not what its digest says | DigestMismatch    |
      | has a backing file          | ImageUnsafe       |
      | says that it is of 8 TiB    | ImageTooLarge     |
      | has no partition table      | ImageNoPartitions |
      | starts nowhere              | ImageCannotBoot   |

  Scenario: an image at a URL without a digest is refused in its file
    (N01)
    Given disk image "bad" has no digest at its URL
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then the status branch says of the problems: "DigestMissing"
    And nothing happens to "s1"

  Scenario Outline: a hint that fits <DISKS> is told of with all disks, and the server stays off
    (N18, N19)
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE |
      | web   | s1     | debian | <HINT>      |
    Then the status branch says of claim "web": "<REASON>"
    And nothing happens to "s1"

    Examples:
      | DISKS    | HINT                     | REASON              |
      | two      | any serial number        | RootDeviceAmbiguous |
      | no disks | a disk that is not there | RootDeviceMissing   |

  Scenario: a release wipes what was installed
    Given the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE     |
      | web   | s1     | debian | the second disk |
    And claim "web" is Booted on "s1"
    And the second disk of "s1" holds disk image "debian"
    And the first disk of "s1" holds nothing
    When claim "web" is removed
    Then "s1" is Available
    And the second disk of "s1" holds nothing
