@git
Feature: Only what is signed changes the fleet
  (law 1) Who may push, but has no key that may sign, changes nothing.

  Background:
    Given Ingot is configured so that commits have to be signed
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"

  Scenario Outline: a commit that <HOW> does not come into force
    When claim "web" is removed by a commit that <HOW>
    Then the status branch shows in the revision: "NotVerified"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

    Examples:
      | HOW               |
      | is not signed     |

    @long
    Examples:
      | HOW               |
      | a stranger signed |

  Scenario: what the operators signed does, and so does Ingot sign
    When the claims are committed
      | CLAIM | SERVER |
      | shop  | s2     |
    Then claim "shop" is Booted on "s2"
    And the status branch shows in the revision: "signedBy: operators"
    And the status branch has Ingot's signed commits alone

  Scenario: a key that is taken away signs nothing new, and what it signed stays
    When the keys that may sign are taken away
    And claim "web" is removed
    Then the status branch shows in the revision: "holds no key that may sign"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  @long
  Scenario: what was signed before cannot be brought back
    When the history is rewritten to end before claim "web"
    Then the status branch shows in the revision: "does not descend from main@sha1:"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"

  @long
  Scenario: a restart makes nothing good that was not
    When claim "web" is removed by a commit that is not signed
    And Ingot is killed, its copy of the repository is lost, and Ingot is started again
    Then the status branch shows in the revision: "NotVerified"
    And nothing happens to "s1, s2"
    And claim "web" is Booted on "s1"
