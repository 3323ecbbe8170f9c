package page

import (
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"ingot/model"
	"ingot/reconcile/report"
)

// maxHistory limits the commits of the status branch on the page of an object.
const maxHistory = 50

type objectPage struct {
	*report.Document // of a NIC without one: empty
	report.Overview
	Kind, Title string
	Facts       []report.Fact
	Chain       []*report.Document // the objects that it depends on
	File        link               // on the status branch
	Commits     link               // of the file
	API         string
	History     []Commit
	NIC         *report.Card
	Boot        *boot
	Server      *serverView // of a server
	BMC         *bmcView    // of a BMC, and of the one of a server
}

// serverView is the part of the page that only servers have.
type serverView struct {
	report.ServerStatus
	Uses []string
}

// bmcView is a BMC with its own web page, and the requests of this process.
type bmcView struct {
	*report.Document
	report.Overview
	URL      string
	Facts    []report.Fact
	Requests *Requests
}

var kinds = map[report.Folder]string{
	report.Servers: "Server", report.Claims: "Claim", report.BootConfigurations: "Boot configuration", report.BMCs: "BMC", report.Endpoints: "Endpoint",
}

func (p *page) serveObject(w http.ResponseWriter, r *http.Request, folder report.Folder, name string) {
	v := p.view()
	d, err := v.docs.Find(folder, name)
	if err != nil {
		v.serveUnknown(w, r, folder, name, err)
		return
	}
	file := d.Path()
	o := objectPage{
		Document: d, Overview: d.Overview(), Kind: kinds[folder], Title: d.Name(), Facts: v.docs.Facts(d), Chain: v.chain(d),
		File: link{file, v.Web.Branch(v.StatusBranch, file)}, Commits: link{"commits", v.Web.History(v.StatusBranch, file)},
		API: "/api/v1/" + string(folder) + "/" + escaped(d.Name()), History: p.Fleet.History(d.Name(), maxHistory),
	}
	server := d
	if folder != report.Servers {
		server = o.depends(report.Servers)
	}
	if server != nil {
		o.Boot = p.bootOf(server)
	}
	switch st := d.Status.(type) {
	case report.ServerStatus:
		o.Server = &serverView{st, p.Fleet.TicketUses(model.ServerName(d.Name()))}
		if bmc := o.depends(report.BMCs); bmc != nil {
			o.BMC, o.Chain = v.bmcView(bmc), o.Chain[1:]
		}
	case report.BMCStatus:
		o.BMC = v.bmcView(d)
		for _, s := range st.Servers {
			o.Facts = append(o.Facts, report.Fact{Name: "server", Value: string(s), Of: report.Servers})
		}
	}
	if spec, ok := d.Spec.(report.EndpointSpec); ok {
		o.NIC = v.nic(spec.MACAddress)
	}
	v.show(w, r, http.StatusOK, "object", o.Kind+" "+o.Title, o)
}

// serveUnknown answers for a name without a document. A NIC may have a log, and a claim that was removed
// from Git may still have its server.
func (v *view) serveUnknown(w http.ResponseWriter, r *http.Request, folder report.Folder, name string, err error) {
	if nic := v.nic(name); nic != nil && folder == report.Endpoints {
		v.show(w, r, http.StatusOK, "object", "NIC "+nic.MAC, objectPage{Document: &report.Document{}, Kind: "NIC", Title: nic.MAC, NIC: nic, API: "/api/v1/cards/" + escaped(nic.MAC)})
		return
	}
	code, help := http.StatusBadRequest, link{}
	if errors.Is(err, report.ErrUnknownObject) {
		code = http.StatusNotFound
	}
	if server := v.docs.RemovedClaim(name); server != nil && folder == report.Claims {
		err, help = errors.New("claim "+name+" is not in Git, but a server still has it"), toDocument(server)
	}
	v.problem(w, r, code, err.Error(), help)
}

// chain are the objects that an object depends on, and those that they depend on.
func (v *view) chain(d *report.Document) (all []*report.Document) {
	for {
		folder, name := d.DependsOn()
		if d = v.docs.Get(folder, name); d == nil || slices.Contains(all, d) {
			return all
		}
		all = append(all, d)
	}
}

// depends returns the object of a folder that the page's object depends on, nil if there is none.
func (o *objectPage) depends(on report.Folder) *report.Document {
	at := slices.IndexFunc(o.Chain, func(d *report.Document) bool { return d.Folder() == on })
	if at < 0 {
		return nil
	}
	return o.Chain[at]
}

// nic returns the log of a NIC, nil if it is unknown.
func (v *view) nic(mac string) *report.Card {
	if card, known := v.Fleet.Card(mac); known {
		return &card
	}
	return nil
}

func (v *view) bmcView(d *report.Document) *bmcView {
	b := &bmcView{Document: d, Overview: d.Overview(), URL: bmcPage(d.Overview()), Facts: v.docs.Facts(d)}
	if requests, known := v.Fleet.Requests(d.Name()); known {
		b.Requests = &requests
	}
	return b
}

// bmcPage is the address of a BMC's own web page, empty if its address is unknown or not allowed.
func bmcPage(o report.Overview) string {
	if len(o.Summary.Addresses) == 0 || o.First().Reason == model.ReasonAddressNotAllowed {
		return ""
	}
	if _, err := netip.ParseAddrPort(o.Summary.Addresses[0]); err != nil {
		return ""
	}
	return "https://" + strings.TrimSuffix(o.Summary.Addresses[0], ":443") + "/"
}
