package sim

import "strconv"

// Hardware is what a machine is made of.
type Hardware struct {
	CPUVendor, CPUID, CPUModel string
	ARM                        bool // else x86
	Sockets, Cores             int  // cores per socket
	SingleThreaded             bool
	MHz                        int
	DIMMs                      int
	DIMMBytes                  int64
	DIMMVendor, DIMMPart       string
	DIMMMHz                    int
	NICVendor, NICModel        string
	NICFirmware                string
	NICMbps                    int
	Drives                     []Drive
	// GPUs are accelerators of one model.
	GPUs     int
	GPUModel string
}

func (hw *Hardware) threads() int {
	if hw.SingleThreaded {
		return hw.Cores
	}
	return 2 * hw.Cores
}

// architecture returns the architecture and the instruction set of the processors, and what
// iPXE calls them.
func (hw *Hardware) architecture() (family, instructions, buildarch string) {
	if hw.ARM {
		return "ARM", "ARM-A64", "arm64"
	}
	return "x86", "x86-64", "x86_64"
}

// Drive is one disk of a machine, as its system names it.
type Drive struct {
	Name     string // sda
	Model    string
	Vendor   string
	Protocol string // NVMe, SATA
	Media    string // SSD, HDD
	Bytes    uint64
}

func (d Drive) rotational() bool { return d.Media == "HDD" }

// The machines that there are: two of Intel and AMI's time, one with accelerators beside its
// processors, and one whose accelerators are a system of their own.
var (
	xeon = &Hardware{
		CPUVendor: "Intel(R) Corporation", CPUID: "GenuineIntel", CPUModel: "Intel(R) Xeon(R) Gold 6430",
		Sockets: 2, Cores: 32, MHz: 3400,
		DIMMs: 8, DIMMBytes: 32 << 30, DIMMVendor: "Samsung", DIMMPart: "M321R4GA3BB6-CQKET", DIMMMHz: 4800,
		NICVendor: "Intel Corporation", NICModel: "Ethernet Controller E810-XXV for SFP",
		NICFirmware: "4.40 0x8001c7d4", NICMbps: 25000,
		Drives: []Drive{
			{Name: "nvme0n1", Model: "INTEL SSDPE2KX010T8", Vendor: "Intel", Protocol: "NVMe", Media: "SSD", Bytes: 960197124096},
			{Name: "sda", Model: "ST4000NM024B", Vendor: "Seagate", Protocol: "SATA", Media: "HDD", Bytes: 4000787030016},
		},
	}
	epyc = &Hardware{
		CPUVendor: "Advanced Micro Devices, Inc.", CPUID: "AuthenticAMD", CPUModel: "AMD EPYC 9354 32-Core Processor",
		Sockets: 1, Cores: 32, MHz: 3800,
		DIMMs: 12, DIMMBytes: 16 << 30, DIMMVendor: "SK Hynix", DIMMPart: "HMCG78AGBRA190N", DIMMMHz: 4800,
		NICVendor: "Mellanox Technologies", NICModel: "MT2894 Family [ConnectX-6 Lx]",
		NICFirmware: "26.38.1002", NICMbps: 25000,
		Drives: []Drive{
			{Name: "nvme0n1", Model: "SAMSUNG MZQL2960HCJR-00A07", Vendor: "Samsung", Protocol: "NVMe", Media: "SSD", Bytes: 960197124096},
			{Name: "nvme1n1", Model: "SAMSUNG MZQL23T8HCLS-00A07", Vendor: "Samsung", Protocol: "NVMe", Media: "SSD", Bytes: 3840755982336},
		},
	}
	xeonGPU = with(xeon, func(hw *Hardware) { hw.GPUs, hw.GPUModel = 4, "NVIDIA L40S" })
	grace   = with(epyc, func(hw *Hardware) {
		hw.CPUVendor, hw.CPUID, hw.CPUModel = "NVIDIA", "ARM", "Grace A02"
		hw.ARM, hw.Sockets, hw.Cores, hw.SingleThreaded, hw.MHz = true, 1, 72, true, 3438
		hw.DIMMs, hw.DIMMBytes, hw.DIMMVendor, hw.DIMMPart = 1, 480<<30, "NVIDIA", "699-2G530-0200-RC1"
		hw.GPUs, hw.GPUModel = 1, "GH200 480GB"
	})
	trento = with(epyc, func(hw *Hardware) { hw.Sockets, hw.Cores, hw.Drives = 2, 64, nil })
)

func with(hw *Hardware, change func(*Hardware)) *Hardware {
	other := *hw
	change(&other)
	return &other
}

// gpuIDs are the IDs of n accelerators.
func gpuIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = "GPU" + strconv.Itoa(i+1)
	}
	return ids
}
