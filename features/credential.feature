Feature: A BMC is opened by what the MAC prefix database says, and by nothing more

  Scenario: the longest prefix wins
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
    And the MAC prefix database
      | PREFIX     | PASSWORDS |
      | 02:1e      | wrong     |
      | 02:1e:07   | right     |
      | 02:1e:07:5 | wrong     |
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is plugged in
    Then "bmc1-system-0" is Available
    And no password was refused by BMC "bmc1"
    And the status branch shows for BMC "bmc1": "DefaultCredentials"

  Scenario: passwords are tried in their order
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
    And the MAC prefix database
      | PREFIX   | PASSWORDS                  |
      | 02:1e:07 | wrong, wrong, right, wrong |
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    When BMC "bmc1" is plugged in
    Then "bmc1-system-0" is Available
    And 2 passwords were refused by BMC "bmc1"

  Scenario: passwords that were refused are not tried again, not even by an Ingot that was killed
    (or the account would be locked)
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
    And the MAC prefix database
      | PREFIX   | PASSWORDS    |
      | 02:1e:07 | wrong, wrong |
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
      | bmc2-system-0 | bmc2 |
    And BMC "bmc2" is committed
    And "bmc2-system-0" is Available
    When BMC "bmc1" is plugged in
    Then the status branch shows for BMC "bmc1": "it refused 2 of the 2 credentials"
    When Ingot is killed and started again
    Then BMC "bmc1" has no request for a while
    And 2 passwords were refused by BMC "bmc1"

  Scenario: a BMCSecret in Git is used when all others were refused
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
    And the MAC prefix database
      | PREFIX   | PASSWORDS |
      | 02:1e:07 | wrong     |
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
    And BMC "bmc1" is plugged in
    And the status branch shows for BMC "bmc1": "AuthenticationFailed"
    When the BMCSecret of BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
    And one password was refused by BMC "bmc1"

  Scenario Outline: nothing is sent to a BMC <WHERE>, and its status says which line would change that
    (or a manifest could lead the password of a BMC to a host of its author's own)
    Given Ingot is configured so that BMCs are in network "127.0.0.1/32" alone
    And the servers
      | SERVER | STATE     |
      | s1     | Available |
    And a stranger listens at "<HOST>"
    When BMC "own" by <SCHEME> at "<HOST>" is committed, with the secret of BMC "bmc-s1"
    Then the status branch shows for BMC "own": "<LINE>"
    And the stranger receives no connection
    And nothing happens to "s1"

    Examples:
      | WHERE                    | SCHEME | HOST      | LINE                                            |
      | outside the BMC networks | https  | 127.0.0.9 | add 127.0.0.9/32 to bmc.networks                |

    @long
    Examples:
      | WHERE                    | SCHEME | HOST      | LINE                                            |
      | by http                  | http   | 127.0.0.1 | add {prefix: 127.0.0.1/32, plain: true} to bmc. |

  Scenario Outline: <WHAT> is no BMC unless it is named
    Given Ingot is configured so that BMCs may have any address
    And the machines
      | SERVER | BMC  |
      | s1     | bmc1 |
    And a stranger listens at "127.0.0.9"
    When BMC "own" by https at "<HOST>" is committed, with the secret of BMC "bmc1"
    Then the status branch shows for BMC "own": "write bmc.networks: [0.0.0.0/0, 0::/0, <HOST>/32]"
    And the stranger receives no connection

    Examples:
      | WHAT                    | HOST            |
      | this machine            | 127.0.0.9       |

    @long
    Examples:
      | WHAT                    | HOST            |
      | a cloud's metadata host | 169.254.169.254 |
