Feature: A disk image is installed on the right disk, and nowhere else

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
    And disk image "debian" is in the registry

  Scenario: the disk that the claim names is written, and the other is not
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE     |
      | web   | s1     | debian | the second disk |
    Then claim "web" is Booted on "s1"
    And the second disk of "s1" holds disk image "debian"
    And the first disk of "s1" holds nothing
    And "s1" was installed once and wiped 0 times

  @long
  Scenario: without a hint it is the smallest disk that is large enough
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "debian"
    And the second disk of "s1" holds nothing

  @long
  Scenario: an image that is called something else is installed as what it is, and a note says so
    (N04)
    Given disk image "misnamed" is raw and called a qcow2
    When the claims are committed
      | CLAIM | SERVER | IMAGE    |
      | web   | s1     | misnamed |
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "misnamed"
    And the status branch shows for server "s1": "it is called qcow2 and is raw"

  @long
  Scenario: Ignition goes to a config drive where an image shows no way of its own, and a note says so
    (N64)
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And the status branch shows for server "s1": "that is on a config drive (label config-2)"
    And "ingot explain" shows for server "s1": "annotation ingot/seed of the claim names another way"

  @long
  Scenario Outline: an image that <FLAW> is told of, and its server stays off
    (N03, N05, N07, N11, N12)
    Given disk image "bad" <FLAW>
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | bad   |
    Then the status branch shows for claim "web": "<REASON>"
    And nothing happens to "s1"

    Examples:
      | FLAW                        | REASON            |
      | is not what its digest says | DigestMismatch    |

    @long
    Examples:
      | FLAW                        | REASON            |
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
    Then the status branch shows in the problems: "DigestMissing"
    And nothing happens to "s1"

  Scenario Outline: a hint that fits <DISKS> is told of with all disks, and the server stays off
    (N18, N19)
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE |
      | web   | s1     | debian | <HINT>      |
    Then the status branch shows for claim "web": "<REASON>"
    And nothing happens to "s1"

    Examples:
      | DISKS    | HINT                     | REASON              |
      | two      | any serial number        | RootDeviceAmbiguous |

    @long
    Examples:
      | DISKS    | HINT                     | REASON              |
      | no disks | a disk that is not there | RootDeviceMissing   |

  Scenario: a power cut while the disk is written installs again
    (N44)
    Given "s1" suffers from "install-hangs"
    And the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And the status branch shows for claim "web": "Installing"
    When the power of "s1" is cut
    And "s1" no longer suffers from "install-hangs"
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "debian"

  @long
  Scenario: a power cut after the disk was verified boots from it
    Given "s1" suffers from "bootstate-silent"
    And the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And the first disk of "s1" holds disk image "debian"
    When the power of "s1" is cut
    And "s1" no longer suffers from "bootstate-silent"
    Then claim "web" is Booted on "s1"
    And "s1" was installed 0 times and wiped 0 times

  @long
  Scenario: an image that never says that it is up is told of, and not installed again
    (N57)
    Given "s1" suffers from "bootstate-silent"
    And the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And the status branch shows for claim "web": "InstalledNotSeen"
    When the power of "s1" is cut
    Then "s1" runs from its disk again
    And claim "web" is Unconfirmed on "s1"
    And "s1" was installed 0 times and wiped 0 times

  @long
  Scenario: firmware that switched the boot option of the disk off boots it all the same
    (N49)
    Given "s1" suffers from "disk-option-off"
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  Scenario: user-data in gzip is unpacked, checked and served
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | CONFIGURED BY      |
      | web   | s1     | debian | cloud-init in gzip |
    Then claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  @long
  Scenario: user-data that is encoded twice has a message that says so
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | CONFIGURED BY              |
      | web   | s1     | debian | cloud-init in base64 twice |
    Then the status branch shows for claim "web": "user-data: it is encoded with base64 twice"
    And nothing happens to "s1"

  @long
  Scenario: cloud-init that ended in error is told of, and the claim keeps its server
    (N60)
    Given "s1" suffers from "cloud-init-fails"
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | CONFIGURED BY |
      | web   | s1     | debian | cloud-init    |
    Then claim "web" is Booted on "s1"
    And the status branch shows for claim "web": "CloudInitFailed"
    And "ingot explain" shows for claim "web": "module scripts_user: Runparts: 1 failures (runcmd)"
    And claim "web" is Booted on "s1"
    And "s1" was installed once and wiped 0 times

  @long
  Scenario: Ingot is killed while a disk is written, and the rest of the chunks follow
    (N39)
    When the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And Ingot is killed once "s1" has half of its disk image, and started again
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "debian"
    And "s1" asked for the rest of its disk image
    And "s1" was powered on 2 times, installed once and wiped 0 times
    And each layer was fetched from its registry once

  @long
  Scenario Outline: Ingot is killed while it <PREPARES> an image, and begins anew
    Given disk image "large" is in the registry
    When the claims are committed
      | CLAIM | SERVER | IMAGE |
      | web   | s1     | large |
    And Ingot is killed while it <PREPARES> the disk image, and started again
    Then claim "web" is Booted on "s1"
    And the first disk of "s1" holds disk image "large"
    And "s1" was installed once and wiped 0 times

    Examples:
      | PREPARES |
      | fetches  |

    @long
    Examples:
      | PREPARES |
      | converts |

  @long
  Scenario: another disk that the system could take for its own is told of, and nothing is written
    (N35)
    Given "s1" suffers from "duplicate-labels"
    When the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE     |
      | web   | s1     | debian | the second disk |
    Then the status branch shows for claim "web": "DuplicateIdentity"
    And "s1" was installed 0 times and wiped 0 times
    And the second disk of "s1" holds nothing

  Scenario: a disk that holds something is refused until the claim gives it up
    (N25)
    Given "s1" suffers from "disk-holds-data"
    And the claims are committed
      | CLAIM | SERVER | IMAGE  |
      | web   | s1     | debian |
    And the status branch shows for claim "web": "RootDeviceNotBlank"
    When the claims are committed
      | CLAIM | OVERWRITE |
      | web   | 1         |
    Then claim "web" is Booted on "s1"

  Scenario: another image goes to the same disk, once the claim asks for that
    (N61)
    Given disk image "rocky" is in the registry
    And the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE     |
      | web   | s1     | debian | the second disk |
    And claim "web" is Booted on "s1"
    And the claims are committed
      | CLAIM | IMAGE |
      | web   | rocky |
    And the status branch shows for claim "web": "PendingReprovision"
    When the claims are committed
      | CLAIM | REPROVISION |
      | web   | 1           |
    Then the second disk of "s1" holds disk image "rocky"
    And claim "web" is Booted on "s1"
    And the first disk of "s1" holds nothing

  Scenario: a release wipes what was installed
    Given the claims are committed
      | CLAIM | SERVER | IMAGE  | ROOT DEVICE     |
      | web   | s1     | debian | the second disk |
    And claim "web" is Booted on "s1"
    When claim "web" is removed
    Then "s1" is Available
    And the second disk of "s1" holds nothing
    And the first disk of "s1" holds nothing
