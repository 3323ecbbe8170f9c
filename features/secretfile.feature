Feature: Nobody has to write a password down in the clear
  (law 5) BMCSecrets and Secrets are encrypted in Git, or stand in a folder outside Git. What
  cannot be decrypted or read leaves what was there before in force.

  Scenario: a BMC is logged in to with what SOPS encrypted
    Given the BMCSecrets are encrypted with SOPS
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And nothing that Ingot keeps holds the password of a BMC

  Scenario: a key that comes later opens what is in Git by then
    Given the BMCSecrets are encrypted with SOPS, for a key that Ingot does not have
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is committed
    Then the status branch shows for BMC "bmc1": "reason: SecretMissing"
    And the status branch shows in the problems: "the file is encrypted for age1"
    When Ingot is given the key
    Then "bmc1-system-0" is Available

  Scenario Outline: a BMCSecret <HOW> leaves the one before in force, over a restart too
    Given the BMCSecrets are encrypted with SOPS
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    And BMC "bmc1" is committed
    And "bmc1-system-0" is Available
    When the BMCSecret of BMC "bmc1" is committed <HOW>
    Then the status branch shows in the problems: "<WHY>"
    When Ingot is stopped and started again
    And the servers are committed
      | SERVER        | INDICATOR |
      | bmc1-system-0 | Lit       |
    Then the indicator of "bmc1-system-0" is Lit
    And nothing that Ingot keeps holds the password of a BMC

    Examples:
      | HOW                       | WHY                               |
      | encrypted for another key | the file is encrypted for age1    |

    @long
    Examples:
      | HOW                       | WHY                               |
      | in plain text             | a secret in plain text is refused |

  Scenario: a password outside Git is put where the BMC's status says, and changes without a commit
    Given the BMCSecrets are in a folder outside Git
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is committed
    Then the status branch shows for BMC "bmc1": "neither in Git nor in secretFiles"
    When the folder is given the wrong password of BMC "bmc1"
    Then the status branch shows for BMC "bmc1": "AuthenticationFailed"
    When the folder is given the right password of BMC "bmc1"
    Then "bmc1-system-0" is Available
    And nothing that Ingot keeps holds the password of a BMC

  Scenario Outline: a folder that is <HOW> leaves the passwords in use that were there
    Given the BMCSecrets are in a folder outside Git
    And the folder is given the right password of BMC "bmc1"
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    And BMC "bmc1" is committed
    And "bmc1-system-0" is Available
    When the folder is <HOW>
    Then the status branch shows in the problems: "<WHY>"
    When the claims are committed
      | CLAIM | SERVER        |
      | web   | bmc1-system-0 |
    Then claim "web" is Booted on "bmc1-system-0"

    Examples:
      | HOW        | WHY                                              |
      | lost       | secretFiles cannot be read                       |

    @long
    Examples:
      | HOW        | WHY                                              |
      | half empty | has no password; what it was before stays in use |
