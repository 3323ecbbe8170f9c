Feature: A BMC that is plugged in is found, and keeps its address

  Background:
    Given the networks
      | NETWORK | FOR  |
      | oob     | BMCs |
      | lab     | BMCs |
    And the MAC prefix database
      | PREFIX   | PASSWORDS |
      | 02:1e:07 | right     |
    And the machines
      | SERVER        | BMC  |
      | bmc1-system-0 | bmc1 |
      | bmc2-system-0 | bmc2 |

  Scenario: a BMC becomes a server that is Available without anybody typing
    When BMC "bmc1" is plugged in
    Then "bmc1-system-0" is Available
    And "bmc1-system-0" was powered on once, installed 0 times and wiped 0 times
    And the status branch shows for endpoint "bmc1": "reason: MACPrefix"
    And the status branch shows for BMC "bmc1": "state: Enabled"

  @long
  Scenario: a device that no entry is for is an Endpoint, and says why it is no BMC
    When device "camera" is plugged in
    Then the status branch shows for endpoint "camera": "no entry of the MAC prefix database is for"
    And the status branch shows in the README: "no entry of the MAC prefix database"

  Scenario: a claim is served by a server that nobody typed
    Given BMC "bmc1" is plugged in
    And "bmc1-system-0" is Available
    When the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "bmc1-system-0"
    And "bmc1-system-0" was powered on once, installed once and wiped 0 times

  @long
  Scenario: a BMC in Git with the same MAC address wins, and its servers stay as they are
    Given BMC "bmc1" is plugged in
    And claim "web" runs on "bmc1-system-0"
    When BMC "bmc1" is committed
    Then the status branch shows for endpoint "bmc1": "BMC bmc1 in Git describes this device"
    And nothing happens to "bmc1-system-0"
    And claim "web" is Booted on "bmc1-system-0"

  @long
  Scenario: an Endpoint in Git reserves its address
    Given BMC "bmc1" is plugged in
    And "bmc1-system-0" is Available
    When an Endpoint that reserves an address for BMC "bmc1" is committed
    Then BMC "bmc1" gets the address that is reserved for it
    And nothing happens to "bmc1-system-0"

  Scenario: a network card has the address that is reserved for it on each of its networks
    Given an Endpoint that reserves an address for device "camera" on network "oob" is committed
    And an Endpoint that reserves an address for device "camera" on network "lab" is committed
    When device "camera" is plugged in to network "oob"
    Then device "camera" gets the address that is reserved for it
    When device "camera" is plugged in to network "lab"
    Then device "camera" gets the address that is reserved for it
    And the status branch shows for endpoint "camera-oob": "is shown as Endpoint camera-lab"

  Scenario: an address that is reserved for a port of a relay goes to what is plugged in there
    Given an Endpoint that reserves an address for port "eth7" of a relay is committed
    When device "camera" is plugged in to port "eth8"
    And device "switch" is plugged in to port "eth7"
    Then device "switch" has the address that is reserved for its port
    And device "camera" has another address

  @long
  Scenario: a BMC keeps its address, whatever client it says that it is
    Given BMC "bmc1" is plugged in
    And BMC "bmc2" is plugged in
    When BMC "bmc1" asks for an address again
    Then BMC "bmc1" has the address that it had

  Scenario: a BMC keeps its address when Ingot is killed
    Given BMC "bmc1" is plugged in
    And BMC "bmc2" is plugged in
    When Ingot is killed and started again
    And BMC "bmc2" asks for an address again
    Then BMC "bmc2" has the address that it had

  Scenario: a BMC keeps its address when the store is lost
    (law 3: its servers stay as they are, too)
    Given BMC "bmc1" is plugged in
    And BMC "bmc2" is plugged in
    And claim "web" runs on "bmc2-system-0"
    When Ingot is killed, the store is emptied, and Ingot is started again
    And BMC "bmc2" asks for the address that it had
    Then BMC "bmc2" has the address that it had
    And nothing happens to "bmc2-system-0"
    And claim "web" is not Unbound

  Scenario: a BMC whose address changes is followed
    Given BMC "bmc1" is plugged in
    And "bmc1-system-0" is Available
    When BMC "bmc1" moves to another address
    And the claims are committed
      | CLAIM |
      | web   |
    Then claim "web" is Booted on "bmc1-system-0"
    And "bmc1-system-0" was powered on once, installed once and wiped 0 times

  Scenario: another BMC at a new address is not taken for the one that is known
    (or the power of a stranger would be switched)
    Given BMC "bmc1" is plugged in
    And "bmc1-system-0" is Available
    When BMC "bmc1" moves to another address, where BMC "bmc2" answers
    And the claims are committed
      | CLAIM |
      | web   |
    Then the status branch shows for BMC "bmc1": "the BMC's certificate has changed"
    And claim "web" is Unbound
    And nothing happens to "bmc1-system-0, bmc2-system-0"

  @long
  Scenario: without its entry a BMC that is known is left as it is
    Given BMC "bmc1" is plugged in
    And claim "web" runs on "bmc1-system-0"
    When the MAC prefix database is taken away
    Then the status branch shows for endpoint "bmc1": "its servers are left as they are"
    And nothing happens to "bmc1-system-0"
    And claim "web" is Bound on "bmc1-system-0"

  @redis
  Scenario: while the store is away, those who have an address keep it
    (law 3: a lease that is not stored is not promised)
    Given BMC "bmc1" is plugged in
    And the store goes down
    When BMC "bmc1" asks for the address that it had
    Then BMC "bmc1" has the address that it had
    And device "camera" gets no address
    When the store comes back
    And device "camera" is plugged in
    Then the status branch shows for endpoint "camera": "NoMACPrefix"
