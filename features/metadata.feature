Feature: A server is told who it is by the metadata service
  (only a server that is bound, and only of itself)

  Background:
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
      | s2     | Available |
    And claim "web" runs on "s1"
    And "s1" is plugged in
    And "s2" is plugged in

  Scenario Outline: a bound server reads its name <WAY>
    When "s1" asks the metadata service for its name, <WAY>
    Then it receives the name "s1"

    Examples:
      | WAY                 |
      | as metaldata has it |
      | as EC2 has it       |

  Scenario: a server that is not bound is told nothing
    When "s2" asks the metadata service for its name, as metaldata has it
    Then it is refused with 404

  Scenario: who speaks for another is told nothing of it
    (Y03)
    When "s2" asks the metadata service for its name, in the name of "s1"
    Then it is refused with 404

  Scenario: who forgets the header is refused
    When "s1" asks the metadata service for its name, without the header
    Then it is refused with 403

  Scenario: a server that was released is told nothing any more
    Given claim "web" is removed
    And "s1" is Available
    When "s1" asks the metadata service for its name, as metaldata has it
    Then it is refused with 404
