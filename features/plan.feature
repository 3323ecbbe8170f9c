Feature: Before a merge everybody sees what it does

  Background:
    Given the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
      | s3     | Available |
      | s4     | Available |
    And claim "web" runs on "s1"

  Scenario: a claim that is added gets a server
    When a pull request has the claims
      | CLAIM | SERVER |
      | db    | s2     |
    Then its plan is changes:
      | EFFECT | SERVER | CLAIM |
      | bind   | s2     | db    |
    When it is merged
    Then claim "db" is Booted on "s2"
    And nothing happens to "s1, s3, s4"

  Scenario Outline: a claim that no server can boot gets none: <DOCUMENT>
    When a pull request has the claims
      | CLAIM | SERVER | CONFIGURED BY |
      | db    | s2     | <DOCUMENT>    |
    Then its plan is wrong
    And its plan for the clone says "claim default/db waits for a server: <MESSAGE>"
    When it is merged
    Then claim "db" is Unbound
    And the status branch shows for claim "db": "<MESSAGE>"
    And nothing happens to "s2"

    Examples:
      | DOCUMENT   | MESSAGE                                                           |
      | Ignition 2 | ignition: Ignition specification 1 and 2 are not supported        |

    @long
    Examples:
      | DOCUMENT                   | MESSAGE                                           |
      | cloud-init in base64 twice | user-data: it is encoded with base64 twice        |

  Scenario: a claim that is removed gives up its server
    When a pull request removes claim "web"
    Then its plan is destructive:
      | EFFECT  | SERVER | CLAIM |
      | release | s1     | web   |
    And its plan for the clone says "its disks are wiped (cleanup quick)"
    And its plan for the configuration says "its disks are wiped (cleanup quick)"
    And its plan for the comment says "**Something that runs is disturbed"
    When it is merged
    Then "s1" is Available

  Scenario: another image waits until it is asked for
    When a pull request has the claims
      | CLAIM | IMAGE       |
      | web   | newer-linux |
    Then its plan is changes:
      | EFFECT  | SERVER | CLAIM |
      | pending | s1     | web   |
    And its plan for the clone says "ingot/reprovision"
    When it is merged
    Then nothing happens to "s1"

  Scenario Outline: a branch that renames a claim in two commits is a rename if it is merged <MERGED>
    When a pull request has the commits
      | REMOVES | ADDS | LIKE |
      | web     |      |      |
      |         | shop | web  |
    Then its plan for the clone says "if the commits are merged one by one"
    When it is merged <MERGED>
    Then claim "shop" is Booted on "s1"
    And nothing happens to "s1"

    Examples:
      | MERGED              |
      | as one commit       |
      | with a merge commit |

  Scenario: a branch that renames a claim in two commits is a removal if they are merged one by one
    Given the claims are committed
      | CLAIM | SERVER | POWER |
      | web   | s1     | Off   |
    And "s1" is powered Off
    When a pull request has the commits
      | REMOVES | ADDS | LIKE |
      | web     |      |      |
      |         | shop | web  |
    Then its plan is destructive:
      | EFFECT  | SERVER | CLAIM |
      | release | s1     | web   |
      | bind    | s1     | shop  |
    And its plan for the clone says "removes ServerClaim default/web"
    When it is merged commit by commit
    Then claim "shop" is Bound on "s1"
    And "s1" was installed 0 times and wiped once

  @long
  Scenario: another image that is asked for is installed
    When a pull request has the claims
      | CLAIM | IMAGE       | REPROVISION |
      | web   | newer-linux | 1           |
    Then its plan is destructive:
      | EFFECT      | SERVER | CLAIM |
      | reprovision | s1     | web   |

  Scenario: how disks are wiped once their claim goes is said beforehand
    (law 2)
    When a pull request has the claims
      | CLAIM | CLEANUP |
      | web   | secure  |
    Then its plan is changes:
      | EFFECT  | SERVER | CLAIM |
      | cleanup | s1     | web   |
    And its plan for the clone says "has its disks wiped (cleanup secure) when it is next released"
    And its plan for the comment says "1 server has its disks treated otherwise at its release"
    When it is merged
    And a pull request removes claim "web"
    Then its plan for the clone says "its disks are wiped (cleanup secure)"
    And nothing happens to "s1"

  @long
  Scenario: a claim that is to boot from the network each time waits until that is asked for
    (law 1)
    When a pull request has the claims
      | CLAIM | BOOT   |
      | web   | always |
    Then its plan is changes:
      | EFFECT  | SERVER | CLAIM |
      | pending | s1     | web   |
    When it is merged
    Then nothing happens to "s1"

  @long
  Scenario: a folder that is renamed changes nothing
    (law 1)
    When a pull request moves all claims to another folder
    Then its plan is nothing
    When it is merged
    Then nothing happens to "s1"

  @long
  Scenario: a manifest that breaks takes nothing away
    (law 1)
    When a pull request breaks the manifest of claim "web"
    Then its plan is wrong
    And its plan for the clone says "claims/web.yaml"
    When it is merged
    Then nothing happens to "s1"

  @long
  Scenario: a claim that moves to another namespace is another claim
    When a pull request moves claim "web" to namespace "shop"
    Then its plan is destructive:
      | EFFECT  | SERVER | CLAIM    |
      | release | s1     | web      |
      | bind    | s1     | shop/web |

  @long
  Scenario: a commit that is taken back takes back what it did
    Given the claims are committed
      | CLAIM | SERVER |
      | db    | s2     |
    And claim "db" is Booted on "s2"
    When a pull request takes the newest commit back
    Then its plan is destructive:
      | EFFECT  | SERVER | CLAIM |
      | release | s2     | db    |

  Scenario: what the guard will hold back is said
    (law 2)
    Given claims "a, b, c" run on "s2, s3, s4"
    When a pull request removes claims "web, a, b, c"
    Then its plan is destructive, held back by the guard:
      | EFFECT  | SERVER | CLAIM | HELD |
      | release | s1     | web   | yes  |
      | release | s2     | a     | yes  |
      | release | s3     | b     | yes  |
      | release | s4     | c     | yes  |
    And its plan for the clone says "Ingot-Approve:"
    When it is merged
    Then the guard holds 4 releases back
    And nothing happens to "s1, s2, s3, s4"

  Scenario Outline: a workflow keeps one comment up to date
    Given a pull request removes claim "web"
    And its plan is destructive
    When the <FORGE> workflow runs twice
    Then the pull request has one comment, which says "Something that runs is disturbed"

    Examples:
      | FORGE   |
      | GitHub  |

    @long
    Examples:
      | FORGE   |
      | GitLab  |
      | Forgejo |
