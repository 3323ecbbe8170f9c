package sim

import (
	"strconv"
	"strings"
)

// cardID is the ID of the one network card of a machine, whose ports are its NICs.
const cardID = "1"

func nicIDs(v view) []string {
	if v.bmc.rack.kind.emptyNICs {
		return nil
	}
	return numbered("NIC", v.server().build.NICs)
}

func getNIC(v view) object {
	s := v.server()
	nic := object{
		"Id": v.id(), "Name": v.id(), "Description": s.build.Hardware.NICModel, "InterfaceEnabled": true, "LinkStatus": "LinkUp",
		"SpeedMbps": s.build.Hardware.NICMbps, "FullDuplex": true, "MTUSize": 1500, "Status": status(),
	}
	if !s.faults.has(FaultMACsHidden) {
		mac := strings.ToUpper(s.MAC(v.index()))
		nic["MACAddress"], nic["PermanentMACAddress"] = mac, mac
	}
	return nic
}

// getNetworkInterface is the card as its system sees it: all that is in it is the chassis'.
func getNetworkInterface(v view) object {
	card := root + "/Chassis/" + v.server().chassisID() + "/NetworkAdapters/" + v.id()
	return object{
		"Id": v.id(), "Name": "Network Card", "NetworkDeviceFunctions": link(card + "/NetworkDeviceFunctions"), "Ports": link(card + "/Ports"),
		"Links": object{"NetworkAdapter": link(card)}, "Status": status(),
	}
}

// cardNode is the card as its chassis sees it.
func cardNode() *node {
	ports := func(v view) []string { return numbered("", v.chassisServer().build.NICs) }
	return &node{
		schema: "NetworkAdapter.v1_10_0", get: getCard,
		child: map[string]*node{
			"NetworkDeviceFunctions": collection("NetworkDeviceFunction", "Network Device Functions", ports, &node{schema: "NetworkDeviceFunction.v1_9_1", get: getFunction}),
			"Ports":                  collection("Port", "Ports", ports, &node{schema: "Port.v1_10_0", get: getPort}),
		},
	}
}

func getCard(v view) object {
	hw := v.chassisServer().build.Hardware
	return object{
		"Id": v.id(), "Name": "Network Card", "Manufacturer": hw.NICVendor, "Model": hw.NICModel, "SerialNumber": v.chassisServer().identity().part(25),
		"NetworkDeviceFunctions": v.link("NetworkDeviceFunctions"), "Ports": v.link("Ports"), "Status": status(),
	}
}

// portMAC is the MAC address of the port or function that v is, and false where a fault
// hides it.
func (v view) portMAC() (string, bool) {
	s := v.chassisServer()
	n, _ := strconv.Atoi(v.id())
	return strings.ToUpper(s.MAC(n - 1)), !s.faults.has(FaultMACsHidden)
}

func getFunction(v view) object {
	ethernet := object{"MTUSize": 1500}
	if mac, shown := v.portMAC(); shown {
		ethernet["MACAddress"], ethernet["PermanentMACAddress"] = mac, mac
	}
	return object{
		"Id": v.id(), "Name": "Function " + v.id(), "NetDevFuncType": "Ethernet", "NetDevFuncCapabilities": []string{"Ethernet"}, "DeviceEnabled": true,
		"Ethernet": ethernet, "Status": status(),
	}
}

func getPort(v view) object {
	gbps := float64(v.chassisServer().build.Hardware.NICMbps) / 1000
	o := object{
		"Id": v.id(), "Name": "Port " + v.id(), "PortId": v.id(), "LinkStatus": "LinkUp", "CurrentSpeedGbps": gbps, "MaxSpeedGbps": gbps, "Status": status(),
	}
	if mac, shown := v.portMAC(); shown {
		o["Ethernet"] = object{"AssociatedMACAddresses": []string{mac}}
	}
	return o
}
