Feature: A device that is no server has the address and the options that Git says

  Background:
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
    And Ingot starts

  Scenario: an address that is reserved for a client identifier goes to whoever shows it
    (whatever its network card is)
    Given an Endpoint that reserves an address for client identifier "leaf-1" is committed
    When device "camera" is plugged in
    And device "switch" is plugged in, as client "leaf-1"
    Then device "switch" gets the address that is reserved for it
    And device "camera" has another address

  Scenario: an Endpoint whose device is not known yet says what it waits for
    When an Endpoint that reserves an address for client identifier "leaf-1" is committed
    Then the status branch shows for endpoint "leaf-1": "no lease yet for the device with client identifier leaf-1"

  Scenario: a device is told the options of its Endpoint
    When an Endpoint of device "switch" is committed with the options
      | OPTION    | VALUE     |
      | host-name | leaf1     |
      | boot-file | leaf1.cfg |
    Then device "switch" receives host name "leaf1"
    And device "switch" receives boot file "leaf1.cfg"

  Scenario: no device is told the options of another's Endpoint
    Given an Endpoint of device "switch" is committed with the options
      | OPTION    | VALUE     |
      | boot-file | leaf1.cfg |
    And device "switch" receives boot file "leaf1.cfg"
    When device "camera" is plugged in
    Then device "camera" receives no boot file

  Scenario Outline: a value that option <OPTION> cannot have is a problem at its line and column
    When an Endpoint of device "switch" is committed with the options
      | OPTION   | VALUE   |
      | <OPTION> | <VALUE> |
    Then the problems name the line and column of option "<OPTION>"

    Examples:
      | OPTION | VALUE                  |
      | mtu    | 67                     |

    @long
    Examples:
      | OPTION | VALUE                  |
      | routes | 10.0.0.0/8 by 10.0.0.1 |
      | wpad   | here                   |

  Scenario: two Endpoints with one address are a conflict on both
    (and the one that was there before stays)
    Given an Endpoint that reserves an address for client identifier "leaf-1" is committed
    When an Endpoint that reserves an address for client identifier "leaf-2" is committed
    Then the status branch shows in the problems: "of Endpoint leaf-1"
    And the status branch shows in the problems: "of Endpoint leaf-2"
    When device "switch" is plugged in, as client "leaf-1"
    Then device "switch" gets the address that is reserved for it

  Scenario: two Endpoints of one network card in one subnet are a conflict on both
    Given an Endpoint that reserves an address for device "switch" on network "oob" is committed
    When an Endpoint of device "switch" is committed with the options
      | OPTION    | VALUE |
      | host-name | leaf1 |
    Then the status branch shows in the problems: "in 127.10.0.0/24 of Endpoint switch-oob"
    And the status branch shows in the problems: "in 127.10.0.0/24 of Endpoint switch "

  Scenario: a refused lease does not count as an address conflict
    Given device "camera" is plugged in
    When device "camera" declines its address with the message "Lease is denied upon entering bound"
    Then the log says "a device refused its lease"
    And the log says "Lease is denied upon entering bound"
    And device "camera" is plugged in

  Scenario: a lease is listed with the port of the relay that its device is plugged into
    When device "switch" is plugged in to port "eth7"
    Then "ingot leases" lists device "switch" on port "eth7"

  Scenario: imported devices keep their addresses
    Given another DHCP server leased addresses to device "switch" and device "camera"
    When Endpoints that "ingot import endpoints" makes of them are committed
    Then device "camera" gets the address of the other DHCP server
    And device "switch" gets the address of the other DHCP server

  Scenario: a device that asks too much is held back, and nobody else is
    When device "camera" asks for an address 100 times at once
    And device "switch" is plugged in
    Then "ingot explain" shows for the network card of "camera"
      | RESULT  | ANSWER                         |
      | limited | more than 8 packets per second |
