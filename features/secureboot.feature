Feature: Firmware that checks signatures is not sent what it would refuse
  (N53) What is signed is started, or refused, by the firmware alone.

  Background:
    Given the networks
      | NETWORK | FOR     |
      | rack1   | servers |
    And the machines
      | SERVER        | BMC  | FAULT       |
      | bmc1-system-0 | bmc1 | secure-boot |

  Scenario: a server is not powered on for a boot loader that has no signature
    Given the boot loaders have no signature
    When BMC "bmc1" is committed
    Then the status branch shows for server "bmc1-system-0": "SecureBootBlocksProbe"
    And "ingot explain" shows for server "bmc1-system-0": "sign what it boots, or switch Secure Boot off"
    And "bmc1-system-0" was powered on 0 times, installed 0 times and wiped 0 times

  Scenario: a server is powered on for one that has a signature
    Given the boot loaders have a signature
    When BMC "bmc1" is committed
    Then "bmc1-system-0" is Available
